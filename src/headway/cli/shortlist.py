"""headway shortlist"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.inputs import parallel_pairs
from headway.cli.options import Model
from headway.errors import UserError


def shortlist(
    model: Model,
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
    source: Annotated[
        Path, typer.Option(help="Training text, one sentence per line; or a .tsv or .jsonl file with both sides.")
    ],
    target: Annotated[Path | None, typer.Option(help="Its translation, line for line.")] = None,
) -> None:
    """Make a model translate faster on CPU.

    Learns from training text which target tokens each source token may become, and writes the model with this list.
    Greedy and beam search then compute only the tokens on the list of a sentence, or, with the engine ctranslate2,
    of the sentences of a batch.

    \b
    headway shortlist runs/mine --source train.de --target train.en --output models/mine-short
    """
    from headway.storage import load_model, save_model
    from headway.text.shortlist import shortlist_of_pairs

    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    stored = load_model(model)
    sides = stored.source_tokenizer, stored.target_tokenizer
    pairs = parallel_pairs([source], [target] if target else [], model)
    found = shortlist_of_pairs(pairs, *sides, stored.model.config.max_length)
    save_model(output, replace(stored, shortlist=found))
    typer.echo(f"{output}: written, with a shortlist", err=True)
