"""Divides a corpus into pairs that train a model, pairs that validate it and pairs that test it. The folder of a split
corpus has a file for each part and side, and `split.json`, which says what it was made from.

A pair's part follows from a hash: of its document, or of its source as `compared`, so that all translations of a source
are in one part. The smallest hashes test and the largest validate, whatever the order of the text; when a corpus grows,
no test pair becomes a validation pair. Training pairs with a source too like one that measures are left out.
"""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from headway.corpora import SPLITS
from headway.data.compressed import unchanged
from headway.data.corpus import CorpusFiles, check_files, is_memory, read_chunks
from headway.data.encoding import BLANK, hash_of
from headway.data.filters import is_copy
from headway.data.lines import Layout
from headway.data.two_sided import Sides
from headway.errors import UserError
from headway.languages import check_languages, english_name, read_code
from headway.storage.atomic import write_directory, write_json
from headway.storage.checksums import checksum, find_damage, write_checksums
from headway.text.characters import is_blank

RECORD = "split.json"
FORMAT_VERSION = 1
PAIRS = 1000
"""Approximate number of pairs that validate, and of pairs that test."""
SHARE = 10
"""In a small corpus, one pair in so many goes to each part."""
LONGEST = 500
"""Most characters on a side of a pair that measures."""
LARGEST_DOCUMENT = 10 * PAIRS
"""Most pairs of a document that measures, if the documents with fewer pairs than a part don't suffice."""
SHINGLE, OVERLAP = 3, 0.6
"""Texts are near if their sets of so many consecutive letters have this share of their union in common."""
RULE = {"pairs": PAIRS, "share": SHARE, "longest": LONGEST, "shingle": SHINGLE, "overlap": OVERLAP}
MEASURING = ("valid", "test")
NEAR = "like a validation or test source"
"""A reason to leave out a pair."""


class OtherSplitError(UserError):
    """The folder for the parts has something else in it."""


def compared(text: str) -> str:
    """The letters, marks and digits of a text, without case and width (NFKC), or a text without any of these itself."""
    return "".join(filter(_is_compared, unicodedata.normalize("NFKC", text).casefold())) or text.strip()


@cache
def _is_compared(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


def shingles(key: str) -> frozenset[str]:
    """The runs of SHINGLE letters in a compared text, Hangul as its jamo; numbers only if there is nothing else."""
    letters = unicodedata.normalize("NFD", re.sub(r"\d+", "", key) or key)
    return frozenset(letters[start : start + SHINGLE] for start in range(max(1, len(letters) - SHINGLE + 1)))


class NearTexts:
    """Finds texts near to given ones."""

    def __init__(self, keys: Iterable[str]) -> None:
        """keys: the given texts, as `compared`."""
        sizes, places = [], defaultdict[str, list[int]](list)
        for place, key in enumerate(keys):
            given = shingles(key)
            sizes.append(len(given))
            for one in given:
                places[one].append(place)
        self._sizes = np.array(sizes)
        self._places = {one: np.array(found) for one, found in places.items()}
        """The texts that have a shingle."""

    def __contains__(self, key: str) -> bool:
        """Whether a compared text is near to a given one."""
        own = shingles(key)
        found = [self._places[one] for one in own if one in self._places]
        if not found:
            return False
        shared = np.bincount(np.concatenate(found), minlength=len(self._sizes))
        return bool((shared >= OVERLAP * (len(own) + self._sizes - shared)).any())


class Splitter:
    """Divides a corpus, in three readings of its files: the first takes a hash of each pair into memory, the second the
    parts that measure, the third passes through the pairs that train."""

    def __init__(self, corpus: CorpusFiles, languages: Sides, document: Layout | None = None) -> None:
        """document: the place of a document's name in a line."""
        self._corpus, self._document = corpus, document
        self._may_copy = read_code(languages[0]).language == read_code(languages[1]).language
        self._parts: dict[int, str] = {}
        """The part of each unit that measures."""
        self._measuring = set[str]()
        self.left_out = Counter[str]()
        """Pairs in no part, by reason. Complete once all parts were read."""

    def measuring(self) -> dict[str, list[Sides]]:
        """The pairs that measure, of `valid` and of `test`. Raises UserError."""
        self._parts = self._chosen()
        found: dict[str, dict[str, tuple[int, Sides]]] = {part: {} for part in MEASURING}
        for pair, key, unit in self._pairs():
            if (part := self._parts.get(unit)) is None:
                continue
            if reason := self._rejection_reason(pair):
                self.left_out[reason] += 1
                continue
            best = (hash_of("\n".join(pair)), pair)  # of several translations one, whatever their order
            if key in found[part]:
                self.left_out["another translation or a repeat"] += 1
                best = min(best, found[part][key])
            found[part][key] = best
        for key in found["valid"].keys() & found["test"].keys():  # of two documents
            del found["valid"][key]
            self.left_out["in both parts"] += 1
        self._measuring = set[str]().union(*found.values())
        return {part: [pair for _, pair in pairs.values()] for part, pairs in found.items()}

    def training(self, *, near: bool = True) -> Iterator[Sides]:
        """The other pairs with text, without sources near to one that measures; near=False: the same as one."""
        unwanted = NearTexts(self._measuring) if near else self._measuring
        self.left_out[NEAR] = self.left_out[BLANK] = 0  # of all blank pairs, also those that `measuring` saw
        for pair, key, unit in self._pairs():
            if any(map(is_blank, pair)):
                self.left_out[BLANK] += 1
            elif unit not in self._parts:
                if key in unwanted:
                    self.left_out[NEAR] += 1
                else:
                    yield pair

    def _pairs(self) -> Iterator[tuple[Sides, str, int]]:
        """The pairs, each with its source as `compared` and the hash of what stays in one part, document or source."""
        for chunk in read_chunks([self._corpus]):
            documents: Iterable[str] = repeat("")
            if self._document is not None:
                layout = replace(self._document, quoted=chunk.form is not None and chunk.form.quoted)
                numbers, texts = zip(*chunk.source_lines(), strict=True)
                lines = list(layout.lines(texts))
                if fault := next((line for line in lines if line.fault), None):
                    reason = f"names no {layout.field}" if is_memory(chunk.source_file) else fault.fault
                    raise UserError(f"{chunk.source_file}, line {numbers[fault.number - 1]}: {reason}")
                documents = [line.text.strip() for line in lines]
            for pair, document in zip(chunk.pairs(), documents, strict=False):
                key = compared(pair.source)
                yield (pair.source, pair.target), key, hash_of(f"document\n{document}" if document else key)

    def _rejection_reason(self, pair: Sides) -> str | None:
        if any(map(is_blank, pair)):
            return BLANK
        if not self._may_copy and is_copy(*pair):
            return "copied"
        return "long" if max(map(len, pair)) > LONGEST else None

    def _chosen(self) -> dict[int, str]:
        usable = (unit for pair, _, unit in self._pairs() if self._rejection_reason(pair) is None)
        units, sizes = np.unique(np.fromiter(usable, dtype=np.uint64), return_counts=True)
        if self._document is None:
            sizes[:] = 1  # each source once
        file, total = self._corpus.sources[0], int(sizes.sum())
        wanted = min(PAIRS, total // SHARE)
        if wanted == 0:
            raise UserError(f"{file}: has {total} different usable sources; to set some apart, {SHARE} are needed")
        largest = wanted
        if sizes[sizes <= largest].sum() < 2 * len(MEASURING) * wanted:
            largest = min(LARGEST_DOCUMENT, total // SHARE)
        units, sizes = units[sizes <= largest], sizes[sizes <= largest]
        chosen: dict[int, str] = {}
        for part in MEASURING:
            order = slice(None) if part == "test" else slice(None, None, -1)
            sums = np.cumsum(sizes[order])
            if not len(sums) or sums[-1] < wanted:
                raise UserError(
                    f"{file}: the documents with up to {largest:,} pairs have too few to set {wanted:,} apart for each "
                    "part; without naming documents, single pairs are set apart"
                )
            taken = int(np.searchsorted(sums, wanted)) + 1
            chosen |= dict.fromkeys(units[order][:taken].tolist(), part)
            units, sizes = units[order][taken:][order], sizes[order][taken:][order]
        return chosen


@dataclass(frozen=True)
class Split:
    """A corpus in parts: `train`, `valid` and `test`."""

    parts: dict[str, CorpusFiles]
    counts: dict[str, int]
    left_out: dict[str, int]

    def summary(self) -> str:
        read = sum(self.counts.values()) + sum(self.left_out.values())
        line = f"{read:,} pairs: " + ", ".join(f"{part} {count:,}" for part, count in self.counts.items())
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self.left_out.items())
        return f"{line}; left out: {reasons}" if reasons else line


def split_corpus(
    corpus: CorpusFiles,
    folder: Path,
    languages: Sides,
    *,
    document: Layout | None = None,
    tell: Callable[[str], None],
) -> Split:
    """Writes the parts of a corpus into a new folder, or finds them in one that was made from the same. document: the
    place of a document's name in a line; documents then stay whole. Raises UserError."""
    check_languages(languages)
    files = [*corpus.sources, *corpus.targets]
    check_files(corpus.sources, corpus.targets)
    if document is not None and corpus.targets:
        raise UserError(f"{corpus.sources[0]}: only files with both sides can name their documents")
    _check_repeatable(files)
    corpus = replace(corpus, languages=languages)
    if read_code(languages[0]) == read_code(languages[1]):
        tell(f"warning: source and target are both {english_name(languages[0])}; to translate, name two languages")
    with unchanged(files):
        made_from = {
            "format_version": FORMAT_VERSION,
            "languages": list(languages),
            "parts": list(MEASURING),
            "columns": corpus.columns and [column + 1 for column in corpus.columns],
            "document": document and (document.column or document.field),
            "rule": RULE,
            "inputs": [{"file": file.name, "sha256": checksum(file)} for file in files],
        }
        if folder.is_file() or (folder.exists() and any(folder.iterdir())):
            record = _read_record(folder, made_from)
            tell(f"{folder}: is split already")
            return Split(_parts_in(folder, languages), record["counts"], record["left_out"])
        for notice in corpus.notices():
            tell(f"notice: {notice}")
        splitter = Splitter(corpus, languages, document)
        with write_directory(folder, sum(file.stat().st_size for file in files)) as new:
            parts = _parts_in(new, languages)
            measuring = {part: _write(pairs, parts[part]) for part, pairs in splitter.measuring().items()}
            train = _write(splitter.training(), parts["train"])
            if train < splitter.left_out[NEAR]:
                tell("notice: most sources are like a validation or test source; only identical ones are left out")
                train = _write(splitter.training(near=False), parts["train"])
            if not train:
                raise UserError(f"{corpus.sources[0]}: no pair is left to train on; give more text")
            counts = {"train": train, **measuring}
            left_out = {reason: count for reason, count in splitter.left_out.most_common() if count}
            write_json(new / RECORD, {**made_from, "counts": counts, "left_out": left_out})
            write_checksums(new)
    return Split(_parts_in(folder, languages), counts, left_out)


def _check_repeatable(files: Sequence[Path]) -> None:
    for file in files:
        if not file.is_file():
            raise UserError(f"{file}: {'can be read only once; give a file' if file.exists() else 'no such file'}")


def write_columns(corpora: dict[str, CorpusFiles], folder: Path, languages: Sides) -> dict[str, CorpusFiles]:
    """Writes the chosen columns of whole corpora, by part, into a new folder: a file for each part and side. Raises
    UserError."""
    files = [file for corpus in corpora.values() for file in corpus.sources]
    _check_repeatable(files)
    with write_directory(folder, sum(file.stat().st_size for file in files)) as new:
        for part, written in _parts_in(new, languages, corpora).items():
            _write(((pair.source, pair.target) for pair in corpora[part].pairs()), written)
    return _parts_in(folder, languages, corpora)


def _read_record(folder: Path, made_from: dict[str, Any]) -> dict[str, Any]:
    """The record of a folder. Raises OtherSplitError unless it is whole and was made from the same."""
    if not (folder / RECORD).is_file():
        raise OtherSplitError(f"{folder}: is there already and holds no split corpus; choose another folder")
    if damage := find_damage(folder):
        raise OtherSplitError(f"{folder}: {damage}; delete the folder and split again, or choose another one")
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    for key, value in made_from.items():
        if record.get(key) != value:
            raise OtherSplitError(
                f"{folder}: was split from other text or in another way ({key}); choose another folder"
            )
    return record


def _parts_in(folder: Path, languages: Sides, parts: Iterable[str] = SPLITS) -> dict[str, CorpusFiles]:
    source, target = languages if languages[0] != languages[1] else ("source", "target")
    return {
        part: CorpusFiles([folder / f"{part}.{source}"], [folder / f"{part}.{target}"], languages) for part in parts
    }


def _write(pairs: Iterable[Sides], files: CorpusFiles) -> int:
    count = 0
    with (
        open(files.sources[0], "w", encoding="utf-8", newline="\n") as source,
        open(files.targets[0], "w", encoding="utf-8", newline="\n") as target,
    ):
        for one, other in pairs:
            count += 1
            source.write(f"{one}\n")
            target.write(f"{other}\n")
    return count
