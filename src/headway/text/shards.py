"""Ids on disk, memory-mapped: a corpus of any size is read as if it were in memory.

Raw little-endian arrays in one folder: `source.ids` and `target.ids` (int32, all sentences one after the other),
`source.offsets` and `target.offsets` (int64, where each begins, and the end) and `sizes` (int64, how many sentences
come from each corpus).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.text.corpus import Pair, is_blank
from headway.text.tokenizer import Tokenizer, is_too_long

IDS_DTYPE = np.dtype("<i4")
OFFSETS_DTYPE = np.dtype("<i8")
SIDES = ("source", "target")
LOOKED_AT_ONCE = 2**20
"""Sequences whose lengths are in memory together."""


@dataclass
class PairCounts:
    """What became of the pairs of a corpus."""

    kept: int = 0
    blank: int = 0
    too_long: int = 0
    first_too_long: list[str] = field(default_factory=list)
    """Where the first few of them are, as "file:line"."""

    def add_too_long(self, pair: Pair) -> None:
        self.too_long += 1
        if len(self.first_too_long) < 3:
            self.first_too_long.append(f"{pair.file}:{pair.line}")

    def summary(self) -> str:
        text = f"{self.kept:,} pairs"
        if self.blank:
            text += f", {self.blank:,} dropped because a side is blank"
        if self.too_long:
            text += f", {self.too_long:,} dropped because they are too long (first: {', '.join(self.first_too_long)})"
        return text


class Sequences:
    """Memory-mapped sequences of ids."""

    def __init__(self, folder: Path, side: str) -> None:
        self._ids = np.memmap(folder / f"{side}.ids", dtype=IDS_DTYPE, mode="r")
        self._offsets = np.memmap(folder / f"{side}.offsets", dtype=OFFSETS_DTYPE, mode="r")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self._ids[self._offsets[index] : self._offsets[index + 1]]

    def lengths_of(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lengths of these sequences."""
        return self._offsets[indices + 1] - self._offsets[indices]

    @property
    def total(self) -> int:
        """The ids of all sequences."""
        return int(self._offsets[-1])


class ParallelIds:
    """The ids of a parallel corpus: `source[i]` and `target[i]` belong together. No control ids are in them."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = (Sequences(folder, side) for side in SIDES)
        self.sizes: list[int] = np.fromfile(folder / "sizes", dtype=OFFSETS_DTYPE).tolist()
        """Sentences of each corpus; the corpora lie one after the other."""

    def __len__(self) -> int:
        return len(self.source)

    def lengths_of(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens of these pairs, sources and targets."""
        return self.source.lengths_of(pairs), self.target.lengths_of(pairs)

    def longest_pair(self) -> int:
        """The pair with the most tokens."""
        longest, most = 0, -1
        for start in range(0, len(self), LOOKED_AT_ONCE):
            source, target = self.lengths_of(np.arange(start, min(start + LOOKED_AT_ONCE, len(self))))
            if (tokens := source + target).max() > most:
                longest, most = start + int(tokens.argmax()), int(tokens.max())
        return longest

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """Tokens of a source and of a target, on average."""
        return self.source.total / len(self), self.target.total / len(self)


def write_ids(
    folder: Path,
    corpora: Sequence[Iterable[Pair]],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    max_length: int,
    max_tokens: int,
) -> PairCounts:
    """Encodes the pairs into `folder`. A pair with a blank side is dropped as a pair and counted; so is one with a side
    of more than `max_length` tokens, or of more than `max_tokens` on both sides, start or end symbol included.
    Raises UserError for a corpus without a usable pair."""
    counts, sizes = PairCounts(), []
    folder.mkdir(parents=True, exist_ok=True)
    offsets = (array("q", [0]), array("q", [0]))
    with open(folder / "source.ids", "wb") as source_file, open(folder / "target.ids", "wb") as target_file:
        for corpus in corpora:
            before = counts.kept
            for source, target in _encoded(corpus, source_tokenizer, target_tokenizer, counts, max_length, max_tokens):
                for ids, file, side_offsets in ((source, source_file, offsets[0]), (target, target_file, offsets[1])):
                    file.write(np.asarray(ids, dtype=IDS_DTYPE).tobytes())
                    side_offsets.append(side_offsets[-1] + len(ids))
            sizes.append(counts.kept - before)
    for side, side_offsets in zip(SIDES, offsets, strict=True):
        np.frombuffer(side_offsets, dtype=np.int64).astype(OFFSETS_DTYPE).tofile(folder / f"{side}.offsets")
    np.asarray(sizes, dtype=OFFSETS_DTYPE).tofile(folder / "sizes")
    return counts


def _encoded(
    corpus: Iterable[Pair],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    counts: PairCounts,
    max_length: int,
    max_tokens: int,
) -> Iterator[tuple[list[int], list[int]]]:
    place, kept_before = None, counts.kept
    for pair in corpus:
        place = pair.file
        if is_blank(pair.source) or is_blank(pair.target):
            counts.blank += 1
            continue
        if is_too_long(pair.source, max_length) or is_too_long(pair.target, max_length):
            counts.add_too_long(pair)
            continue
        source, target = source_tokenizer.encode(pair.source, tagged=True), target_tokenizer.encode(pair.target)
        if not source or not target:  # nothing but characters that normalisation removes
            counts.blank += 1
        elif max(len(source), len(target)) >= max_length or len(source) + len(target) + 2 > max_tokens:
            counts.add_too_long(pair)
        else:
            counts.kept += 1
            yield source, target
    if counts.kept == kept_before:
        raise UserError(
            f"{place or 'the corpus'}: holds no usable pair "
            f"({counts.blank} blank, {counts.too_long} longer than model.max_length={max_length} or "
            f"{max_tokens} tokens on both sides)"
        )
