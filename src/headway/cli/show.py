"""headway show, and the printing of JSON, of tables and of Markdown to a file or a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any

import typer

from headway.cli import options

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_BAR = re.compile(r"(?<!\\)\|")
"""The mark between cells of a Markdown table. In the last cell of a row it is text."""
_RULE = re.compile(r":?-+:?")
"""A cell of the line below the head of a table."""


def show(model: options.Model, as_json: options.JsonOutput = False) -> None:
    """Show a model's languages, size, scores and training.

    The JSON also has the shape of every weight.

    \b
    headway show runs/multi30k-de-en
    """
    from headway.model.shapes import weight_shapes
    from headway.storage import read_model

    stored = read_model(model)
    if as_json:
        document = {
            "folder": str(stored.folder),
            "source_language": stored.source_language,
            "target_language": stored.target_language,
            "parameters": stored.num_parameters,
            "model": stored.config.to_dict(),
            "training_flops": stored.training_flops,
            "decoding": stored.decoding,
            "alignment": stored.aligner and vars(stored.aligner),
            "int8": stored.int8 and vars(stored.int8),
            "weights": weight_shapes(stored.config),
        }
        print_json(document)
        return
    languages = f"{stored.source_language} -> {stored.target_language}"
    typer.echo(f"{stored.folder}\n{languages}, {stored.num_parameters:,} parameters\n")
    of_encoder = {"decoder_num_heads": stored.config.num_heads, "decoder_d_ff": stored.config.d_ff}
    sizes = stored.config.to_dict().items()
    print_table([(name, f"{of_encoder[name]} (as the encoder)" if size is None else str(size)) for name, size in sizes])
    card = "".join(char for char in stored.card if char.isprintable() or char in "\n\t").rstrip()
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        for block in _blocks(card):
            _print_to_terminal(Markdown(block, hyperlinks=False) if isinstance(block, str) else _terminal_table(block))
    elif card:
        typer.echo(f"\n{with_plain_tables(card)}")


def print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table on standard output, in a terminal with long cells folded."""
    if sys.stdout.isatty():
        _print_to_terminal(_terminal_table(rows))
    else:
        typer.echo("\n".join(f"  {line}" for line in aligned(rows)))


def _print_to_terminal(block: RenderableType) -> None:
    from rich.console import Console

    Console(highlight=False).print(block)


def with_plain_tables(markdown: str) -> str:
    """The text with the columns of its tables aligned; everything else stays as it is."""
    return "\n".join(block if isinstance(block, str) else "\n".join(aligned(block)) for block in _blocks(markdown))


def _blocks(markdown: str) -> Iterator[str | list[list[str]]]:
    """Text and tables in turn; a table is its rows of cells, without the rule and without a blank head."""
    for may_be_table, block in groupby(markdown.split("\n"), key=lambda line: line.startswith("|")):
        lines = list(block)
        columns = len(_BAR.split(lines[0])) - 2
        rows = [_BAR.split(line.rstrip().removesuffix("|")[1:], columns - 1) for line in lines] if columns > 1 else []
        if may_be_table and len(rows) > 1 and all(_RULE.fullmatch(cell.strip()) for cell in rows[1]):
            cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in (rows[0], *rows[2:])]
            yield [row for row in cells if any(row)]
        else:
            yield "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text with aligned columns. A row may lack its last cells."""
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]


def _terminal_table(rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False)
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table
