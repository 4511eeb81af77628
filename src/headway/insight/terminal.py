"""Pictures and tables as text for a terminal; wide characters such as Hangul take their two columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from torch import Tensor

    Matrix = Tensor | NDArray[Any]
    """(rows, columns)"""

SHADES = " ░▒▓█"
DARKER_FROM = (0.08, 0.35, 0.6, 0.85)
"""Least weight of each shade; the first shows attention that is divided evenly among a dozen places."""
BAR_WIDTH = 60
PLOT_WIDTH, PLOT_HEIGHT = 64, 12
"""Characters and lines of a plot, without its labels."""


def draw_map(weights: Matrix, queries: Sequence[str], keys: Sequence[str]) -> str:
    """One line per query, one column per key; the darker, the larger the weight. weights: (query, key), from 0 to 1."""
    keys, queries = [shown(key) for key in keys], [shown(query) for query in queries]
    margin = max(cell_len(query) for query in queries)
    lines = [" " * margin + "  " + " ".join(keys)]
    for query, row in zip(queries, weights.tolist(), strict=True):
        cells = (shade(weight) * cell_len(key) for key, weight in zip(keys, row, strict=True))
        lines.append(" " * (margin - cell_len(query)) + query + "  " + " ".join(cells).rstrip())
    return "\n".join(lines)


def draw_shades(values: Matrix, rows: Sequence[str]) -> str:
    """One line per row, one shade for each value from 0 to 1."""
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
    """One line per value, not negative: its label, its number in the format `form`, and a bar."""
    margin, largest = max(map(len, labels)), max(values) or 1.0
    return "\n".join(
        f"{label:>{margin}}  {value:{form}}  {'█' * round(BAR_WIDTH * value / largest)}".rstrip()
        for label, value in zip(labels, values, strict=True)
    )


def draw_plot(curves: Mapping[str, Mapping[int, float]], form: str) -> str:
    """Curves in one plot, ys by x, with labels in the format `form`. Each is drawn with the one character that is its
    name, and with `*` where several meet."""
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


def draw_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells with aligned columns. A row may lack its last cells."""
    widths = [max(map(cell_len, column)) for column in zip_longest(*rows, fillvalue="")]
    return "\n".join("  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows)


def layer_name(number: int) -> str:
    """Layer 0 is the input of the first layer."""
    return f"layer {number}" if number else "input"
