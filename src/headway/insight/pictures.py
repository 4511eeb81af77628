"""Pictures of attention, positions, masks and schedules as SVG or PNG, by matplotlib (extra `plot`).

Text is drawn as shapes, so that a picture looks the same everywhere. Hangul comes from NanumGothic (SIL Open Font
License), which the extra brings with the package koreanize-matplotlib.
"""

from __future__ import annotations

import importlib.util
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from headway.errors import UserError, needing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headway.insight.maps import AttentionKind, AttentionMaps

FORMATS = (".svg", ".png")
CELL, LABEL, LETTER, BAR = 0.24, 0.16, 0.1, 0.6
"""Inches: of a token, of its label at least, of a letter in a title, and of the bar of colours."""
MARGIN = 8
"""Cells around a map for its labels and title."""
PALETTES = {
    "share": ("#ffffff", "#d6e4f5", "#8fb8e6", "#3a7cc9", "#144a8c", "#07274f"),
    "sign": ("#8a3b00", "#d9822b", "#f6d3ac", "#ffffff", "#b5d2f2", "#3a7cc9", "#0b3a75"),
}
"""The page's colours (page/views/colours.js): for shares, and for numbers below and above zero."""
AXES = {
    "encoder": ("source token that asks", "source token that answers"),
    "decoder": ("token that is written", "token that is read"),
    "cross": ("token that is written", "source token"),
}
"""Meaning of the rows and columns of a kind of attention."""


@dataclass(frozen=True)
class HeatMap:
    """A matrix to draw, with a label for each row and column, and names of the axes."""

    title: str
    values: NDArray[Any]  # (rows, columns)
    rows: Sequence[str]
    columns: Sequence[str]
    row_axis: str = ""
    column_axis: str = ""


def heat_maps(
    maps: AttentionMaps,
    kind: AttentionKind = "cross",
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> list[list[HeatMap]]:
    """A row for each layer with this number, from 1 on, or for every layer: the heads with these numbers, or the mean
    of all. Raises ValueError for a number that doesn't exist."""
    numbers = range(1, len(maps.attention[kind]) + 1) if layers is None else layers
    axes = *maps.labels(kind), *AXES[kind]
    return [[HeatMap(title, one, *axes) for title, one in maps.of_layer(kind, i, heads).items()] for i in numbers]


def draw_heat_maps(
    maps: Sequence[Sequence[HeatMap]],
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    colours: Literal["share", "sign"] = "share",
    colour_bar: bool = True,
    longest_edge: float = 40.0,
) -> Figure:
    """A grid of heat maps, the same colours for all. `limits` are the values of the first and the last colour. If a
    picture would be longer than `longest_edge` inches, its cells are smaller."""
    figure_class = _matplotlib()
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    palette = LinearSegmentedColormap.from_list(colours, PALETTES[colours])
    widths = [max(len(row[column].columns) for row in maps if column < len(row)) for column in range(len(maps[0]))]
    heights = [max(len(one.rows) for one in row) for row in maps]
    width, height = (sum(cells) + MARGIN * len(cells) for cells in (widths, heights))  # cells
    cell = min(CELL, longest_edge / width, longest_edge / height)
    size = max(3.0, width * cell), max(2.5, height * cell)  # inches
    figure = figure_class(figsize=size, layout="constrained")
    axes = figure.subplots(
        len(maps), len(widths), squeeze=False, gridspec_kw={"width_ratios": widths, "height_ratios": heights}
    )
    for row, row_axes in zip(maps, axes, strict=True):
        for axis in row_axes[len(row) :]:
            axis.set_visible(False)
        for one, axis in zip(row, row_axes, strict=False):
            axis.imshow(one.values, palette, Normalize(*limits), aspect="auto", interpolation="nearest")
            room = (size[0] - BAR) * (len(one.columns) + MARGIN) / width
            axis.set_title(textwrap.fill(one.title, max(12, int(room / LETTER))), fontsize=10)
            axis.set_ylabel(one.row_axis, fontsize=9)
            axis.set_xlabel(one.column_axis, fontsize=9)
            axis.set_yticks(*_ticks(one.rows, cell), fontsize=9)
            axis.set_xticks(*_ticks(one.columns, cell), rotation=90, fontsize=9)
            axis.tick_params(length=0)
    if colour_bar:
        figure.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.6, aspect=30, fraction=0.03)
    return figure


def draw_curves(panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]], x_label: str) -> Figure:
    """Lines through points, (xs, ys) by name, in a panel for each unit, which is its name."""
    figure = _matplotlib()(figsize=(8, 1.0 + 3.5 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, sharex=True)[:, 0]
    for axis, (y_label, curves) in zip(axes, panels.items(), strict=True):
        for number, (name, (xs, ys)) in enumerate(curves.items()):
            marker = "o" if len(xs) == 1 else ""
            label = _plain(f" {name}" if name.startswith("_") else name)  # the legend leaves out names with a _ first
            axis.plot(xs, ys, ("-", "--", ":", "-.")[number % 4], marker=marker, label=label)
        axis.set_ylabel(y_label)
        axis.grid(alpha=0.3)
        if len(curves) > 1:
            axis.legend()
    axes[-1].set_xlabel(x_label)
    return figure


def check_picture_path(path: Path, others: Sequence[str] = ()) -> None:
    """Raises UserError if no picture can be made there. others: suffixes of other files that are allowed."""
    suffix = path.suffix.lower()
    if suffix not in (*FORMATS, *others):
        raise UserError(f"{path}: the name must end in {', '.join((*FORMATS, *others))}")
    if suffix in FORMATS:
        _matplotlib()


def save_picture(figure: Figure, path: Path) -> None:
    """Writes the picture as .svg or .png."""
    import matplotlib as mpl

    fonts = ["DejaVu Sans", *_hangul_font()]
    with mpl.rc_context({"font.family": fonts, "svg.fonttype": "path", "svg.hashsalt": "headway"}):
        for text in figure.findobj(lambda artist: hasattr(artist, "set_fontfamily")):
            text.set_fontfamily(fonts)  # type: ignore[attr-defined]
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _ticks(labels: Sequence[str], cell: float) -> tuple[list[int], list[str]]:
    """Places and labels: all, or every n-th if they would run into each other."""
    places = list(range(0, len(labels), math.ceil(LABEL / cell)))
    return places, [_plain(labels[place]) for place in places]


def _plain(label: str) -> str:
    """The label as plain text: `$` starts no formula, and control characters are dots."""
    return "".join(char if char.isprintable() else "·" for char in label).replace("$", r"\$")


def _hangul_font() -> list[str]:
    """The name of a font with Hangul in matplotlib, if there is one."""
    from matplotlib import font_manager

    package = importlib.util.find_spec("koreanize_matplotlib")  # its import would change all of matplotlib's settings
    if package is None or package.origin is None:
        return []
    file = Path(package.origin).parent / "fonts" / "NanumGothic.ttf"
    font_manager.fontManager.addfont(str(file))
    return [font_manager.FontProperties(fname=str(file)).get_name()]


def _matplotlib() -> type[Figure]:
    with needing_extra("plot"):
        from matplotlib.figure import Figure
    return Figure
