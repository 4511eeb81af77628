"""headway aligner"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.options import Device, Model
from headway.errors import UserError

PAIRS = 500
"""Read at most."""


def aligner(
    model: Model,
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
    source: Annotated[
        Path, typer.Option(help="Text, one sentence per line; or a .tsv or .jsonl file with both sides.")
    ],
    target: Annotated[Path | None, typer.Option(help="Its translation, line for line.")] = None,
    device: Device = "auto",
) -> None:
    """Choose the attention that aligns words best.

    For imported models; training makes the choice itself. Reads the first 500 pairs that have text on both
    sides, needs no known alignments, and writes the model with the choice.

    \b
    headway aligner models/en-de --source valid.en --target valid.de --output models/en-de-aligned
    """
    from headway.cli.inputs import parallel_pairs
    from headway.cli.loading import load_translator
    from headway.storage import save_model
    from headway.text.characters import is_blank
    from headway.translator.lines import tag_fault

    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    translator = load_translator(model, device)
    pairs = (pair for pair in parallel_pairs([source], [target] if target else [], model) if not is_blank(pair.source))
    texts = list(islice((pair for pair in pairs if not is_blank(pair.target)), PAIRS))
    for pair in texts:
        if fault := tag_fault(translator, pair.source):
            raise UserError(f"{pair.file}, line {pair.line}: {fault}")
    chosen = translator.choose_aligner([pair.source for pair in texts], [pair.target for pair in texts])
    save_model(output, replace(translator.stored, aligner=chosen))
    typer.echo(f"{output}: written, words are aligned by {chosen}", err=True)
