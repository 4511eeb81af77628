"""Pictures and analyses as text for a terminal; wide characters such as Hangul take their two columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from headway.insight.maps import KINDS

if TYPE_CHECKING:
    from torch import Tensor

    from headway.insight import analyses

    Matrix = Tensor | NDArray[Any]
    """(rows, columns)"""

SHADES = " ░▒▓█"
DARKER_FROM = (0.08, 0.35, 0.6, 0.85)
"""Where the next shade begins; the first low enough that attention to a dozen places alike still shows."""
BAR_WIDTH = 60
PLOT_WIDTH, PLOT_HEIGHT = 64, 12
"""Characters and lines of a plot, without its labels."""


def draw_map(weights: Matrix, queries: Sequence[str], keys: Sequence[str]) -> str:
    """One line a query, one column a key; the darker, the larger the weight. weights: (query, key), rows of sum 1."""
    keys, queries = [shown(key) for key in keys], [shown(query) for query in queries]
    margin = max(cell_len(query) for query in queries)
    lines = [" " * margin + "  " + " ".join(keys)]
    for query, row in zip(queries, weights.tolist(), strict=True):
        cells = (shade(weight) * cell_len(key) for key, weight in zip(keys, row, strict=True))
        lines.append(" " * (margin - cell_len(query)) + query + "  " + " ".join(cells).rstrip())
    return "\n".join(lines)


def draw_shades(values: Matrix, rows: Sequence[str]) -> str:
    """One line a row, one shade a value from 0 to 1."""
    margin = max(map(len, rows))
    return "\n".join(
        f"{row:>{margin}}  {''.join(map(shade, line))}" for row, line in zip(rows, values.tolist(), strict=True)
    )


def draw_numbers(values: Matrix, rows: Sequence[str], columns: Sequence[str]) -> str:
    """A table with five decimals."""
    margin = max(map(len, rows))
    lines = [" " * margin + "".join(f"{column:>10}" for column in columns)]
    for row, line in zip(rows, values.tolist(), strict=True):
        lines.append(f"{row:>{margin}}" + "".join(f"{value:10.5f}" for value in line))
    return "\n".join(lines)


def draw_bars(values: Sequence[float], labels: Sequence[str], form: str) -> str:
    """One line a value, not negative: its label, itself as `form` says, and a bar; the longest is the largest."""
    margin, largest = max(map(len, labels)), max(values) or 1.0
    return "\n".join(
        f"{label:>{margin}}  {value:{form}}  {'█' * round(BAR_WIDTH * value / largest)}".rstrip()
        for label, value in zip(labels, values, strict=True)
    )


def draw_plot(curves: Mapping[str, Mapping[int, float]], form: str) -> str:
    """Curves in one plot, ys by x, with values as `form` says. Each is drawn with the one character that is its name,
    and with `*` where several meet."""
    xs = [x for curve in curves.values() for x in curve]
    ys = [y for curve in curves.values() for y in curve.values()]
    left, wide, bottom, high = min(xs), (max(xs) - min(xs)) or 1, min(ys), (max(ys) - min(ys)) or 1.0
    cells = [[" "] * PLOT_WIDTH for _ in range(PLOT_HEIGHT)]
    for name, curve in curves.items():
        columns = [(x - left) / wide * (PLOT_WIDTH - 1) for x in curve]
        first, last = round(min(columns)), round(max(columns))
        for column, y in enumerate(np.interp(range(first, last + 1), columns, list(curve.values())), first):
            row = cells[round((bottom + high - y) / high * (PLOT_HEIGHT - 1))]
            row[column] = name if row[column] in (" ", name) else "*"
    labels = {0: f"{bottom + high:{form}}", PLOT_HEIGHT - 1: f"{bottom:{form}}"}
    margin = max(map(len, labels.values()))
    lines = [f"{labels.get(number, ''):>{margin}} │{''.join(row)}".rstrip() for number, row in enumerate(cells)]
    left_label, right_label = f"{min(xs):,}", f"{max(xs):,}"
    axis = f"{left_label}{right_label:>{PLOT_WIDTH - len(left_label)}}"
    return "\n".join([*lines, f"{'':{margin}} └{'─' * PLOT_WIDTH}", f"{'':{margin}}  {axis}"])


def shade(weight: float) -> str:
    """One character for a weight from 0 to 1."""
    return SHADES[bisect_right(DARKER_FROM, weight)]


def shown(piece: str) -> str:
    """A piece as a label: never empty, and no control character that would move the cursor."""
    return "".join(char if char.isprintable() else "·" for char in piece) or "·"


@dataclass(frozen=True)
class Teller:
    """The names of the tokens that the analyses are of, <eos> last, and the target's vocabulary by id."""

    source: Sequence[str]
    target: Sequence[str]
    vocabulary: Sequence[str]

    def tell(self, found: analyses.Analyses) -> Iterator[str]:
        """A title and lines, for each that there is."""
        for name, one in found.found().items():
            yield from getattr(self, name)(one)

    def contributions(self, found: analyses.Contributions) -> Iterator[str]:
        yield f"contributions of the source (ALTI+)\n\n{draw_map(found.source, self.target, self.source)}"
        rows = [[shown(piece), f"{share:.0%}"] for piece, share in zip(self.target, found.source_share, strict=True)]
        yield f"the source's share of the contributions to each token\n\n{_table(rows)}"

    def erasure(self, found: analyses.Erasure) -> Iterator[str]:
        lost = 1.0 - np.exp(-np.maximum(found.effect, 0.0))  # (target, source)
        title = "erasure: the share of its probability that each token loses without a token of the source"
        yield f"{title}\n\n{draw_map(lost, self.target, self.source)}"
        rows = [[shown(piece), f"{gain:+.2f}"] for piece, gain in zip(self.target, found.gain, strict=True)]
        warning = "; so little that it may have nothing to do with the source" if found.detached else ""
        title = "what each token gains in log-probability from the source as a whole"
        yield f"{title}, {found.mean_gain:.2f} on average{warning}\n\n{_table(rows)}"

    def contrast(self, found: analyses.Contrast) -> Iterator[str]:
        rows = []
        for piece, foil, difference, row in zip(self.target, found.foils, found.difference, found.erasure, strict=True):
            best = int(row.argmax())  # the source token that speaks most for the token and against its foil
            pair = [shown(piece), "rather than", self._piece(foil), f"{difference:+.2f}"]
            rows.append([*pair, "because of", shown(self.source[best]), f"{row[best]:+.2f}"])
        yield f"contrast: log-probability over a foil, and what it falls by without a source token\n\n{_table(rows)}"

    def logit_lens(self, found: analyses.LogitLens) -> Iterator[str]:
        rows = [[_layer(number), *(self._piece(step[0]) for step in layer)] for number, layer in enumerate(found.ids)]
        yield f"logit lens: the likeliest token after each decoder layer\n\n{_table(rows)}"

    def decoder_lens(self, found: analyses.DecoderLens) -> Iterator[str]:
        rows = [[_layer(number), one.text, f"{one.score:.2f}"] for number, one in enumerate(found.translations)]
        yield f"DecoderLens: what the decoder makes of each encoder layer\n\n{_table(rows)}"

    def patching(self, found: analyses.Patching) -> Iterator[str]:
        flip = f"{self._piece(found.word)} -> {self._piece(found.other_word)}"
        title = f"patching from {found.other!r}: how far each place moves {flip}"
        yield f"{title}, encoder\n\n{_layers(found.encoder, self.source)}"
        read = ["<sos>", *self.target][: found.step + 1]
        yield f"{title}, decoder\n\n{_layers(found.decoder, read)}"

    def head_importance(self, found: analyses.HeadImportance) -> Iterator[str]:
        over = f"over {found.sentences} sentences, nats a token"
        for kind, name in KINDS.items():
            for how, values in (("ablation", found.ablation), ("gradient", found.gradient)):
                if kind in values:
                    layers, heads = (range(1, count + 1) for count in values[kind].shape)
                    rows, columns = [f"layer {layer}" for layer in layers], [f"head {head}" for head in heads]
                    table = draw_numbers(values[kind], rows, columns)
                    yield f"{name}, importance of heads by {how}, {over}\n\n{table}"

    def faithfulness(self, found: analyses.Faithfulness) -> Iterator[str]:
        rows = [["", "probability", "against foil"]]
        for name, area in found.probability.areas.items():
            rows.append([name, f"{area:.3f}", f"{found.against_foil.areas[name]:.3f}"])
        yield f"faithfulness: area below the deletion curve; the smaller, the more faithful\n\n{_table(rows)}"

    def _piece(self, id_: int) -> str:
        return shown(self.vocabulary[id_].removeprefix("▁"))


def _layer(number: int) -> str:
    return f"layer {number}" if number else "input"


def _layers(values: NDArray[np.float32], columns: Sequence[str]) -> str:
    """Shares of which 1 is dark. (layers + 1, positions)"""
    return draw_map(np.clip(values, 0.0, 1.0), list(map(_layer, range(len(values)))), columns)


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows)
