"""Tables as text, for a file and for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text, the cells of a column one below the other. A row may lack its last cells."""
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]


def terminal_table(rows: Sequence[Sequence[str]]) -> Table:
    """As wide as the terminal at most; long cells are folded."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False)
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """On standard output, as suits it."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(terminal_table(rows))
    else:
        typer.echo("\n".join(f"  {line}" for line in aligned(rows)))
