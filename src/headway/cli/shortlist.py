"""headway shortlist"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import Model
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.text.tokenizer import Tokenizer


def shortlist(
    model: Model,
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
    source: Annotated[
        Path, typer.Option(help="Training text, one sentence a line; or a .tsv or .jsonl file that holds both sides.")
    ],
    target: Annotated[Path | None, typer.Option(help="Its translation, line for line.")] = None,
) -> None:
    """Make a model translate faster on CPU.

    Learns from training text which target tokens each source token may become, and writes the model with this list.
    Greedy and beam search then compute only the tokens that the list has for a sentence.

    \b
    headway shortlist runs/mine --source train.de --target train.en --output models/mine-short
    """
    from headway.storage import load_model, save_model
    from headway.text.corpus import is_blank, read_pairs
    from headway.text.shortlist import learn_shortlist
    from headway.text.tokenizer import is_too_long

    if output.exists():
        raise UserError(f"{output}: exists already")
    stored = load_model(model)
    longest = stored.model.config.max_length
    sides = stored.source_tokenizer, stored.target_tokenizer

    def ids(text: str, tokenizer: Tokenizer, *, tagged: bool) -> list[int]:
        return [] if is_too_long(text, longest) else tokenizer.encode(text, tagged=tagged)

    pairs = (
        (ids(pair.source, sides[0], tagged=True), ids(pair.target, sides[1], tagged=False))
        for pair in read_pairs([source], [target] if target else [])
        if not is_blank(pair.source) and not is_blank(pair.target)
    )
    found = learn_shortlist(pairs, *sides)
    save_model(output, replace(stored, shortlist=found))
    typer.echo(f"{output}: written, with a shortlist", err=True)
