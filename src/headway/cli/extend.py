"""headway extend"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.inputs import parallel_pairs
from headway.cli.options import Model
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.storage import StoredModel
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
        raise UserError(f"{output}: is there already; choose another --output")
    stored = load_model(model)
    source_texts, target_texts = _texts(source or [], target or [], model)
    if add_pieces and not any(text.strip() for text in (*source_texts, *target_texts)):
        raise UserError(f"{[*(source or []), *(target or [])][0]}: has no text to learn tokens from")
    extended = extend_model(stored, add_pieces, source_texts, target_texts, add_language or [])
    save_model(output, extended)
    for line in _report(stored, extended, source_texts, target_texts):
        typer.echo(line, err=True)
    typer.echo(f"{output}: written; go on with `headway train RECIPE --init-from {output}`", err=True)


def _report(
    stored: StoredModel, extended: StoredModel, source_texts: list[str], target_texts: list[str]
) -> Iterator[str]:
    """What the model has got and what it has lost, in lines."""
    for side, texts in (("source", source_texts), ("target", target_texts)):
        before, now = getattr(stored, f"{side}_tokenizer"), getattr(extended, f"{side}_tokenizer")
        line = f"{side}: {before.vocab_size:,} -> {now.vocab_size:,} tokens"
        if texts:
            line += f"; the new text has {_length(texts, before):,} -> {_length(texts, now):,}"
        yield line
    if extended.source_tokenizer.target_tags:
        tags = " ".join(f">>{language}<<" for language in extended.source_tokenizer.target_tags)
        yield f"tags of target languages: {tags}"
    for name, old, command in (
        ("shortlist", stored.shortlist, "shortlist"),
        ("calibration", stored.calibration, "calibrate"),
    ):
        if old is not None:
            yield f"notice: the {name} is left out; after training, make one by `headway {command}`"


def _texts(source: list[Path], target: list[Path], model: Path) -> tuple[list[str], list[str]]:
    """The lines of each side. Raises UserError."""
    from headway.text.corpus import is_two_sided, read_lines

    two_sided = next(filter(is_two_sided, [*source, *target]), None)
    if two_sided is None:
        return _lines(map(read_lines, source)), _lines(map(read_lines, target))
    if target:
        raise UserError(f"{two_sided}: holds both sides; give it as --source, without --target")
    pairs = list(parallel_pairs(source, [], model))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _lines(files: Iterable[Iterable[str]]) -> list[str]:
    return [line for file in files for line in file]


def _length(texts: list[str], tokenizer: Tokenizer) -> int:
    return sum(map(len, tokenizer.encode_all(texts)))
