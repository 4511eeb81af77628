"""From the recipe's text files to tokenizers and ids on disk, made once for a run and kept in its folder `data/`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from headway.errors import UserError
from headway.storage.atomic import write_directory, write_json
from headway.storage.checksums import checksum
from headway.text.corpus import Pair, is_blank, is_plain, read_lines, read_pairs, same_text, unchanged
from headway.text.shards import ParallelIds, write_ids
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import CHARACTERS_PER_PIECE, CONTROL_PIECES, Tokenizer, is_too_long, language_tag
from headway.text.tokenizer_files import read_tokenizer
from headway.text.words import WordTokenizer
from headway.training.recipe import ParallelFiles, Recipe

VALID_TEXTS = "valid.json"
Notice = Callable[[str], None]
Tokenizers = tuple[Tokenizer, Tokenizer]
"""Of the source and of the target; one and the same where the vocabulary is joint."""


@dataclass
class PreparedData:
    """All that training reads."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: ParallelIds
    valid: ParallelIds
    valid_texts: list[tuple[str, str]]
    """The validation pairs as text, which BLEU is measured on; those with a blank or far too long side are left out."""
    fingerprint: str
    """Of all of this: equal for equal data."""


def prepare(
    recipe: Recipe,
    folder: Path,
    max_length: int,
    notice: Notice,
    tokenizers: Tokenizers | None = None,
    expected: str | None = None,
) -> PreparedData:
    """Reads the prepared data in `folder`, making it first where it isn't there: with the given tokenizers, or with
    ones learned from the training text. Raises UserError, also where it hasn't the `expected` fingerprint."""
    if not folder.exists():
        _check_files(recipe)
        with write_directory(folder) as temporary, unchanged(_files(recipe)):
            _warn_of_same_text(recipe, max_length, notice)
            tokenizers = tokenizers or _train_tokenizers(recipe, max_length, notice)
            _prepare(recipe, temporary, max_length, notice, tokenizers)
    fingerprint = _fingerprint(folder)
    if expected is not None and fingerprint != expected:
        raise UserError(
            f"{folder}: this isn't the data that the run began with; put its text back as it was and delete {folder}, "
            "or start a new run with another --out"
        )
    source_tokenizer, target_tokenizer = (_find_tokenizer(folder, side) for side in ("source", "target"))
    return PreparedData(
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        train=ParallelIds(folder / "train"),
        valid=ParallelIds(folder / "valid"),
        valid_texts=[(source, target) for source, target in json.loads((folder / VALID_TEXTS).read_bytes())],
        fingerprint=fingerprint,
    )


def _fingerprint(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    names_and_sums = "".join(f"{file.relative_to(folder).as_posix()} {checksum(file)}\n" for file in files)
    return hashlib.sha256(names_and_sums.encode()).hexdigest()


def _prepare(recipe: Recipe, folder: Path, max_length: int, notice: Notice, tokenizers: Tokenizers) -> None:
    for side, tokenizer in zip(("source", "target"), tokenizers, strict=True):
        (folder / f"{side}{tokenizer.suffix}").write_bytes(tokenizer.to_bytes())
    for split, files in (("train", recipe.data.train), ("valid", recipe.data.valid)):
        counts = write_ids(
            folder / split,
            [tagged_pairs(corpus) for corpus in files],
            *tokenizers,
            max_length=max_length,
            max_tokens=recipe.training.tokens_per_batch,
        )
        notice(f"{split}: {counts.summary()}")
    texts = list(_texts(recipe.data.valid, max_length))
    write_json(folder / VALID_TEXTS, texts)


def _train_tokenizers(recipe: Recipe, max_length: int, notice: Notice) -> Tokenizers:
    """Learned from the training pairs alone, those with a blank or far too long side left out."""
    options = recipe.tokenizer

    def lines(*sides: str) -> Iterator[str]:
        for corpus in recipe.data.train:
            for pair in read_pairs(corpus.source, corpus.target):
                if _has_text(pair, max_length):
                    yield from (getattr(pair, side) for side in sides)

    def learn(*sides: str) -> Tokenizer:
        if next(lines(*sides), None) is None:
            most = CHARACTERS_PER_PIECE * max_length
            raise UserError(
                f"{recipe.data.train[0].source[0]}: holds no pair with text on both sides, of at most {most:,} "
                "characters"
            )
        if options.kind == "word":
            words = WordTokenizer.train(lines(*sides), options.vocab_size, options.min_frequency, options.lowercase)
            if words.vocab_size == len(CONTROL_PIECES):
                raise UserError(
                    f"no word is left in the vocabulary; lower tokenizer.min_frequency={options.min_frequency} "
                    f"or raise tokenizer.vocab_size={options.vocab_size}"
                )
            return words
        tags = recipe.data.tags if "source" in sides else []
        return SubwordTokenizer.train(lines(*sides), options.kind, options.vocab_size, tags)

    source = learn("source", "target") if options.joint else learn("source")
    target = source if options.joint else learn("target")
    sizes = [source.vocab_size] if options.joint else [source.vocab_size, target.vocab_size]
    pieces = " and ".join(f"{size:,}" for size in sizes)
    notice(f"tokenizer: {options.kind}, {pieces} {'words' if options.kind == 'word' else 'pieces'}")
    if options.kind != "word" and min(sizes) < options.vocab_size:
        notice(
            f"tokenizer: the text doesn't give tokenizer.vocab_size={options.vocab_size} pieces, "
            "so the vocabulary is smaller"
        )
    return source, target


def _check_files(recipe: Recipe) -> None:
    """Raises UserError for a file that can't be opened, before hours may be spent on the others."""
    for corpus in (*recipe.data.train, *recipe.data.valid):
        for files in (corpus.source, corpus.target):
            found = [_has_lines(file) for file in files]  # of each, so that each is opened
            if found and not any(found):
                for _ in read_pairs(corpus.source, corpus.target):
                    pass  # names both counts where the other side has lines
                raise UserError(f"{files[0]}: is empty; give a file with a sentence a line")


def _has_lines(file: Path) -> bool:
    if not is_plain(file):
        raise UserError(f"{file}: is a pipe or device, but training reads its text several times; give a file")
    with closing(read_lines(file)) as lines:
        return next(lines, None) is not None


def _files(recipe: Recipe) -> list[Path]:
    return [file for corpus in (*recipe.data.train, *recipe.data.valid) for file in (*corpus.source, *corpus.target)]


def _warn_of_same_text(recipe: Recipe, max_length: int, notice: Notice) -> None:
    """By what is in the files, whatever their names are."""
    for split, corpora in (("training", recipe.data.train), ("validation", recipe.data.valid)):
        for corpus in corpora:
            if same_text(read_pairs(corpus.source, corpus.target)):
                notice(f"warning: source and target of the {split} text are the same ({corpus.source[0]})")
    held_out = set(_texts(recipe.data.valid, max_length))
    for texts in _texts(recipe.data.train, max_length):
        if texts in held_out:
            held_out.remove(texts)
            if not held_out:
                notice("warning: every validation pair is a training pair too, so the scores below mean nothing")
                return


def _texts(corpora: Sequence[ParallelFiles], max_length: int) -> Iterator[tuple[str, str]]:
    """The pairs that have text on both sides."""
    for corpus in corpora:
        for pair in tagged_pairs(corpus):
            if _has_text(pair, max_length):
                yield pair.source, pair.target


def _has_text(pair: Pair, max_length: int) -> bool:
    return not any(is_blank(side) or is_too_long(side, max_length) for side in (pair.source, pair.target))


def tagged_pairs(corpus: ParallelFiles) -> Iterator[Pair]:
    """The pairs of a corpus; where it has a tag, the source texts begin with it."""
    prefix = f"{language_tag(corpus.tag)} " if corpus.tag else ""
    for pair in read_pairs(corpus.source, corpus.target):
        yield pair if is_blank(pair.source) else replace(pair, source=prefix + pair.source)


def _find_tokenizer(folder: Path, side: str) -> Tokenizer:
    for suffix in (SubwordTokenizer.suffix, WordTokenizer.suffix):
        if (folder / f"{side}{suffix}").exists():
            return read_tokenizer(folder / f"{side}{suffix}")
    raise UserError(f"{folder}: has no {side} tokenizer; delete the folder to make it again")
