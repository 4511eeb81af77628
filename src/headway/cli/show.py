"""headway show"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from headway.cli.options import JsonOutput, Model
from headway.cli.tables import aligned, terminal_table

if TYPE_CHECKING:
    from headway.model import ModelConfig

_BAR = re.compile(r"(?<!\\)\|")
"""Between the cells of a Markdown table. A row has as many cells as the head: surplus bars are text of the last."""
_RULE = re.compile(r":?-+:?")
"""A cell of the line below a table's head."""


def show(
    model: Model,
    as_json: JsonOutput = False,
) -> None:
    """Show a model's languages, size, scores and training.

    The JSON also has the shape of every weight.

    \b
    headway show runs/multi30k-de-en
    """
    import json

    from headway.model.shapes import weight_shapes
    from headway.storage import read_model

    stored = read_model(model)
    document = {
        "folder": str(stored.folder),
        "source_language": stored.source_language,
        "target_language": stored.target_language,
        "parameters": stored.num_parameters,
        "model": stored.config.to_dict(),
        "training_flops": stored.training_flops,
        "decoding": stored.decoding,
        "alignment": stored.aligner and stored.aligner.to_dict(),
        "weights": weight_shapes(stored.config),
    }
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    size = f"{stored.num_parameters:,} parameters"
    typer.echo(f"{stored.folder}\n{stored.source_language} -> {stored.target_language}, {size}\n")
    card = "".join(char for char in stored.card if char.isprintable() or char in "\n\t").rstrip()  # not escapes
    if sys.stdout.isatty():
        _print_in_terminal(field_rows(stored.config), card)
    else:
        typer.echo("\n".join(f"  {line}" for line in aligned(field_rows(stored.config))))
        if card:
            typer.echo(f"\n{with_plain_tables(card)}")


def field_rows(config: ModelConfig) -> list[tuple[str, str]]:
    """Name and value of each field; where the decoder is as the encoder, the encoder's value."""
    of_encoder = {"decoder_num_heads": config.num_heads, "decoder_d_ff": config.d_ff}
    return [
        (name, f"{of_encoder[name]} (as the encoder)" if value is None else str(value))
        for name, value in config.to_dict().items()
    ]


def blocks_of(markdown: str) -> Iterator[str | list[list[str]]]:
    """Text and tables in turn; a table as its rows of cells, without its rule and without a blank head."""
    for may_be_table, block in groupby(markdown.split("\n"), key=lambda line: line.startswith("|")):
        lines = list(block)
        columns = len(_BAR.split(lines[0])) - 2
        rows = [_BAR.split(line.rstrip().removesuffix("|")[1:], columns - 1) for line in lines] if columns > 1 else []
        if may_be_table and len(rows) > 1 and all(_RULE.fullmatch(cell.strip()) for cell in rows[1]):
            cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in (rows[0], *rows[2:])]
            yield [row for row in cells if any(row)]
        else:
            yield "\n".join(lines)


def with_plain_tables(markdown: str) -> str:
    """The text with the columns of its tables aligned; everything else stays as it is."""
    return "\n".join(block if isinstance(block, str) else "\n".join(aligned(block)) for block in blocks_of(markdown))


def _print_in_terminal(rows: Sequence[tuple[str, str]], card: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(highlight=False)
    console.print(terminal_table(rows))
    for block in blocks_of(card):
        console.print(Markdown(block, hyperlinks=False) if isinstance(block, str) else terminal_table(block))
