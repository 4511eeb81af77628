"""headway extend"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import Model
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.text.tokenizer import Tokenizer


def extend(
    model: Model,
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
    add_pieces: Annotated[
        int, typer.Option(min=0, metavar="N", help="Maximum number of new tokens (or words) in each vocabulary.")
    ] = 0,
    source: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="New text to learn tokens from, or a .tsv or .jsonl file with both sides. Repeat the option for "
            "more files.",
        ),
    ] = None,
    target: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="New text in the target language. Repeat for more files.")
    ] = None,
    add_language: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE", help="New target language; the tag >>CODE<< selects it. Repeat for more languages."
        ),
    ] = None,
) -> None:
    """Give a model a larger vocabulary, to train it further.

    Learns tokens that are frequent in new text, and adds tags of target languages; a model with tags needs one in
    front of each text. The new tokens and tags are useful only after `headway train --init-from`. Old text keeps
    its tokens.

    \b
    headway extend runs/mine --add-pieces 1000 --source new.de --target new.en --output models/larger
    headway extend models/de-en --add-language fr --add-pieces 2000 --target new.fr --output models/de-en-fr
    """
    from headway.storage import load_model, save_model
    from headway.training.extending import extend_model

    if not add_pieces and not add_language:
        raise UserError("nothing to add: give --add-pieces N with new text, or --add-language CODE")
    if bool(add_pieces) != bool(source or target):
        raise UserError(
            "--add-pieces needs new text to learn them from: --source or --target, or both"
            if add_pieces
            else "--source and --target are for --add-pieces, which is missing"
        )
    if output.exists():
        raise UserError(f"{output}: exists already")
    stored = load_model(model)
    source_texts, target_texts = _texts(source or [], target or [])
    extended = extend_model(stored, add_pieces, source_texts, target_texts, add_language or [])
    save_model(output, extended)
    for side, texts in (("source", source_texts), ("target", target_texts)):
        before, now = getattr(stored, f"{side}_tokenizer"), getattr(extended, f"{side}_tokenizer")
        line = f"{side}: {before.vocab_size:,} -> {now.vocab_size:,} tokens"
        if texts:
            line += f"; the new text has {_length(texts, before):,} -> {_length(texts, now):,}"
        typer.echo(line, err=True)
    if extended.source_tokenizer.target_tags:
        tags = " ".join(f">>{language}<<" for language in extended.source_tokenizer.target_tags)
        typer.echo(f"tags of target languages: {tags}", err=True)
    if stored.shortlist is not None:
        typer.echo(
            f"notice: without the shortlist of {model}; after training, make one by `headway shortlist`", err=True
        )
    typer.echo(f"{output}: written; go on with `headway train RECIPE --init-from {output}`", err=True)


def _texts(source: list[Path], target: list[Path]) -> tuple[list[str], list[str]]:
    """The lines of each side. Raises UserError."""
    from headway.text.corpus import is_two_sided, read_lines, read_pairs

    if target or not any(map(is_two_sided, source)):
        return _lines(map(read_lines, source)), _lines(map(read_lines, target))
    pairs = list(read_pairs(source, []))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _lines(files: Iterable[Iterable[str]]) -> list[str]:
    return [line for file in files for line in file]


def _length(texts: list[str], tokenizer: Tokenizer) -> int:
    return sum(map(len, tokenizer.encode_all(texts)))
