"""Attention maps as text for a terminal; wide characters such as Hangul take their two columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from torch import Tensor

SHADES = " ░▒▓█"


def draw_map(weights: Tensor, queries: Sequence[str], keys: Sequence[str]) -> str:
    """One line a query, one column a key; the darker, the larger the weight. weights: (query, key), rows of sum 1."""
    keys, queries = [shown(key) for key in keys], [shown(query) for query in queries]
    margin = max(cell_len(query) for query in queries)
    lines = [" " * margin + "  " + " ".join(keys)]
    for query, row in zip(queries, weights.tolist(), strict=True):
        cells = (shade(weight) * cell_len(key) for key, weight in zip(keys, row, strict=True))
        lines.append(" " * (margin - cell_len(query)) + query + "  " + " ".join(cells).rstrip())
    return "\n".join(lines)


def shade(weight: float) -> str:
    """One character for a weight from 0 to 1."""
    return SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]


def shown(piece: str) -> str:
    """A piece as a label: never empty, and no control character that would move the cursor."""
    return "".join(char if char.isprintable() else "·" for char in piece) or "·"
