"""The folder of a corpus that was split: text files of its parts, and split.json, which says what it was made from."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.corpora import SPLITS
from headway.data import splitting
from headway.data.compressed import unchanged
from headway.data.corpus import CorpusFiles, check_files
from headway.data.lines import Layout
from headway.data.two_sided import Sides
from headway.errors import UserError
from headway.storage.atomic import write_directory, write_json
from headway.storage.checksums import checksum, find_damage, write_checksums

RECORD = "split.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Split:
    """The parts of a corpus."""

    train: CorpusFiles
    valid: CorpusFiles | None
    test: CorpusFiles | None
    counts: dict[str, int]
    """The pairs of each part."""
    left_out: dict[str, int]
    """The pairs in no part, by reason."""

    def summary(self) -> str:
        """One line."""
        read = sum(self.counts.values()) + sum(self.left_out.values())
        line = f"{read:,} pairs: " + ", ".join(f"{part} {count:,}" for part, count in self.counts.items())
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.left_out.items())
        return f"{line}; left out: {reasons}" if reasons else line


def split_corpus(
    corpus: CorpusFiles,
    folder: Path,
    languages: Sides,
    *,
    document: Layout | None = None,
    valid: bool = True,
    test: bool = True,
    held_out: Sequence[CorpusFiles] = (),
    tell: Callable[[str], None],
) -> Split:
    """Writes the parts of a corpus into a new folder, or finds them in one that was made from the same. document: where
    a line names its document, which then stays whole. valid, test: whether to set this part apart. held_out: what
    measures besides, such as a part that is given; training pairs near to it are left out. Raises UserError."""
    files = [file for one in (corpus, *held_out) for file in (*one.sources, *one.targets)]
    check_files(corpus.sources, corpus.targets)
    if document is not None and corpus.targets:
        raise UserError(f"{corpus.sources[0]}: only lines of .tsv and .jsonl files can name their documents")
    for file in files:
        if not file.is_file():
            raise UserError(f"{file}: {'is no file, which can be read again' if file.exists() else 'no such file'}")
    for code in languages:
        if Path(code).name != code:
            raise UserError(f"{code}: is no code of a language, such as de")
    corpus = replace(corpus, languages=languages)
    parts = [name for name, wanted in (("valid", valid), ("test", test)) if wanted]
    with unchanged(files):
        made_from = {
            "format_version": FORMAT_VERSION,
            "languages": list(languages),
            "parts": parts,
            "columns": corpus.columns and [column + 1 for column in corpus.columns],
            "document": document and (document.column or document.field),
            "rule": splitting.RULE,
            "inputs": [{"file": file.name, "sha256": checksum(file)} for file in files],
        }
        if folder.is_file() or (folder.exists() and any(folder.iterdir())):
            split = _found(folder, made_from)
            tell(f"{folder}: is split already")
            return split
        for notice in corpus.notices():
            tell(f"notice: {notice}")
        splitter = splitting.Splitter(corpus, languages, document, held_out)
        with write_directory(folder, sum(file.stat().st_size for file in files)) as new:
            measuring = {part: _write(pairs, new, part, languages) for part, pairs in splitter.measuring(parts).items()}
            train = _write(splitter.training(), new, "train", languages)
            if train < splitter.left_out[splitting.NEAR]:
                tell("notice: most sources are like one that measures; only the same ones are left out of training")
                train = _write(splitter.training(near=False), new, "train", languages)
            if not train:
                raise UserError(f"{corpus.sources[0]}: no pair is left to train on; give more text")
            counts = {"train": train, **measuring}
            left_out = {reason: count for reason, count in splitter.left_out.most_common() if count}
            write_json(new / RECORD, {**made_from, "counts": counts, "left_out": left_out})
            write_checksums(new)
    return _split(folder, languages, counts, left_out)


def _split(folder: Path, languages: Sides, counts: dict[str, int], left_out: dict[str, int]) -> Split:
    files = {part: _paths(folder, part, languages) for part in counts}
    train, valid, test = (
        CorpusFiles([files[part][0]], [files[part][1]], languages) if part in files else None for part in SPLITS
    )
    assert train is not None
    return Split(train, valid, test, counts, left_out)


def _found(folder: Path, made_from: dict[str, Any]) -> Split:
    """What the folder holds, if it is whole and was made from the same. Raises UserError."""
    if not (folder / RECORD).is_file():
        raise UserError(f"{folder}: is there already and holds no split corpus; choose another folder")
    if damage := find_damage(folder):
        raise UserError(f"{folder}: {damage}; delete the folder and split again, or choose another one")
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    for key, value in made_from.items():
        if record.get(key) != value:
            raise UserError(f"{folder}: was split from other text or in another way ({key}); choose another folder")
    return _split(folder, tuple(made_from["languages"]), record["counts"], record["left_out"])


def _paths(folder: Path, part: str, languages: Sides) -> tuple[Path, Path]:
    suffixes = languages if languages[0] != languages[1] else ("source", "target")
    return folder / f"{part}.{suffixes[0]}", folder / f"{part}.{suffixes[1]}"


def _write(pairs: Iterable[Sides], folder: Path, part: str, languages: Sides) -> int:
    """Returns how many pairs there are."""
    count = 0
    with ExitStack() as stack:
        paths = _paths(folder, part, languages)
        files = [stack.enter_context(open(path, "w", encoding="utf-8", newline="\n")) for path in paths]
        for pair in pairs:
            count += 1
            for file, text in zip(files, pair, strict=True):
                file.write(f"{text}\n")
    return count
