"""Filters and tokenises chunks of text, and counts the pairs that are dropped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headway.data.corpus import Chunk
from headway.data.filters import Test, filter_tests
from headway.data.noise import VERSIONS
from headway.data.packing import Joined
from headway.data.pair_noise import sentences_of
from headway.data.two_sided import Sides
from headway.text.characters import is_blank, is_too_long
from headway.text.subwords import Tokenizer
from headway.text.tokenizer import language_tag

if TYPE_CHECKING:
    from headway.data.options import FiltersSection, NoiseSection

IDS_DTYPE = np.dtype("<i4")
SMALL_IDS_DTYPE = np.dtype("<u2")
"""For vocabularies that fit into it: half the bytes."""
BLANK, TOO_LONG = "blank", "too long"
"""Reasons to drop a pair, besides the filters."""
NAMED = 3
"""Dropped pairs that are named, for each reason."""
SHOWN = 40
"""Maximum number of characters of each side that are shown of such a pair."""

Texts = list[Sides]
PairIds = tuple[list[int], list[int]]
"""The ids of a source and a target."""


@dataclass
class PairCounts:
    """Numbers of kept and dropped pairs of a corpus."""

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Pairs for each reason: `BLANK`, `TOO_LONG` or the key of a filter."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    """The first few for each reason, as "file:line", followed by the texts where a filter dropped them."""

    @property
    def read(self) -> int:
        return self.kept + sum(self.dropped.values())

    @property
    def by_filters(self) -> dict[str, int]:
        return {reason: count for reason, count in self.dropped.items() if reason not in (BLANK, TOO_LONG)}

    def add(self, others: PairCounts) -> None:
        self.kept += others.kept
        for reason, count in others.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count
            places = self.examples.setdefault(reason, [])
            places += others.examples[reason][: NAMED - len(places)]

    def summary(self) -> str:
        """One line, without the filters, which have `filter_lines`."""
        line = f"{self.kept:,} pairs"
        if blank := self.dropped.get(BLANK):
            line += f", {blank:,} dropped because a side is blank"
        if too_long := self.dropped.get(TOO_LONG):
            line += f", {too_long:,} dropped because they are too long (first: {', '.join(self.examples[TOO_LONG])})"
        return line

    def filter_lines(self) -> list[str]:
        """The number of pairs that each filter drops, and the first of them."""
        lines = list[str]()
        for reason, count in self.by_filters.items():
            lines += [
                f"filter {reason}: {count:,} pairs dropped, such as",
                *(f"  {one}" for one in self.examples[reason]),
            ]
        return lines


def total(counts: Iterable[PairCounts]) -> PairCounts:
    together = PairCounts()
    for one in counts:
        together.add(one)
    return together


@dataclass(frozen=True)
class EncodingSettings:
    """Everything that decides the ids of a text. It can be sent to other processes."""

    tokenizers: tuple[Tokenizer, Tokenizer]
    max_length: int
    max_tokens: int
    corpora: tuple[tuple[str, tuple[str, str]], ...]
    """The tag of each corpus, and its source and target language."""
    filters: FiltersSection
    held_out: tuple[tuple[str, str], ...] = ()
    """The pairs, without tags, that the filter `overlap` compares with."""
    valid: tuple[tuple[str, str], ...] = ()
    """The pairs, with tags, to look for among the kept ones."""
    noise: NoiseSection | None = None
    """Noise of the pairs. Each is encoded as often as it has versions."""
    dictionary: Mapping[str, str] = field(default_factory=dict)
    """Words that translate each other, where the noise needs them."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return ids_dtype(max(tokenizer.vocab_size for tokenizer in self.tokenizers))


@dataclass
class EncodedChunk:
    """The kept pairs of a chunk, as ids without control symbols, each pair with all its versions."""

    corpus: int
    done: float
    counts: PairCounts
    source: Joined
    target: Joined
    valid: list[int]
    """The indices of the validation pairs found in the chunk. Each process reports a pair once."""
    hashes: NDArray[np.uint64]
    """The hashes that duplicates were found by: (kinds of duplicates, pairs that passed the filters)."""


@dataclass
class FilteredChunk:
    """The pairs of a chunk that pass the filters: not blank, not far too long, dropped by no filter."""

    corpus: int
    done: float
    file: Path
    """The source file."""
    lines: list[int]
    texts: Texts
    """The pairs, with tags."""
    dropped: list[tuple[int, str, Sides]]
    """The line of each other pair, the reason to drop it, and its texts."""
    hashes: NDArray[np.uint64]
    """The hashes to find duplicates by: (kinds of duplicates, pairs)."""


class ChunkEncoder:
    """Filters and tokenises chunks."""

    def __init__(self, settings: EncodingSettings) -> None:
        self._settings = settings
        self._source, self._target = settings.tokenizers
        languages = dict.fromkeys(pair for _, pair in settings.corpora)
        tests = {pair: filter_tests(settings.filters, pair, settings.held_out) for pair in languages}
        self._corpora = [(f"{language_tag(tag)} " if tag else "", tests[pair]) for tag, pair in settings.corpora]
        """For each corpus the beginning of its sources, and its filters."""
        self._valid = {pair: place for place, pair in enumerate(settings.valid)}

    def filtered(self, chunk: Chunk) -> FilteredChunk:
        """Filters the pairs. Raises UserError for a fault in the text."""
        prefix, tests = self._corpora[chunk.corpus]
        lines, texts, dropped = list[int](), Texts(), list[tuple[int, str, Sides]]()
        for pair in chunk.pairs():
            if reason := rejection_reason(pair.source, pair.target, self._settings.max_length, tests):
                dropped.append((pair.line, reason, (pair.source, pair.target)))
            else:
                lines.append(pair.line)
                texts.append((prefix + pair.source, pair.target))
        kinds = self._settings.filters.duplicates
        hashes = np.array([[hash_of(_compared(pair, kind)) for pair in texts] for kind in kinds], dtype=np.uint64)
        hashes = hashes.reshape(len(kinds), len(texts))
        return FilteredChunk(chunk.corpus, chunk.done, chunk.source_file, lines, texts, dropped, hashes)

    def encode(self, chunk: FilteredChunk, first: NDArray[np.bool_] | None = None) -> EncodedChunk:
        """Encodes the pairs. first: whether each of the hashes is new, to drop duplicates."""
        new: list[bool] = [True] * len(chunk.texts) if first is None else np.all(first, axis=0).tolist()
        rows, dropped = list[tuple[int, Sides]](), [*chunk.dropped]
        for line, text, is_new in zip(chunk.lines, chunk.texts, new, strict=True):
            if is_new:
                rows.append((line, text))
            else:
                dropped.append((line, "duplicates", text))
        texts = [text for _, text in rows]
        valid = [self._valid.pop(pair) for pair in texts if pair in self._valid]
        sources = self._source.encode_all([source for source, _ in texts], tagged=True)
        targets = self._target.encode_all([target for _, target in texts])
        kept, pairs = Texts(), list[PairIds]()
        for (line, text), source, target in zip(rows, sources, targets, strict=True):
            ids = source, self._opened(text[0], target)
            if reason := self._rejection_of_ids(ids):
                dropped.append((line, reason, text))
            else:
                kept.append(text)
                pairs.append(ids)
        counts = PairCounts(kept=len(kept))
        for line, reason, text in sorted(dropped):
            shown = "" if reason in (BLANK, TOO_LONG) else "  " + " | ".join(map(_abridged, text))
            counts.add(PairCounts(0, {reason: 1}, {reason: [f"{chunk.file}:{line}{shown}"]}))
        if self._settings.noise is not None:
            pairs = self._versions(self._settings.noise, kept, pairs, self._corpora[chunk.corpus][0])
        source, target = (self._joined([pair[side] for pair in pairs]) for side in (0, 1))
        return EncodedChunk(chunk.corpus, chunk.done, counts, source, target, valid, chunk.hashes)

    def _versions(self, noise: NoiseSection, texts: Texts, ids: list[PairIds], prefix: str) -> list[PairIds]:
        """All versions of each pair. The noise depends on the text and the number of the version alone, and that which
        joins sentences on the chunk. If a noisy pair is too long, the usual one replaces it. prefix: the tag at the
        beginning of the sources."""
        made: list[PairIds] = []
        pairs = [(text[len(prefix) :], target) for text, target in texts]
        sentences = sentences_of(pairs) if "joined" in noise.pairs else []
        for pair, usual in zip(pairs, ids, strict=True):
            for number in range(VERSIONS):
                source, target = noise.applied_to_pair(pair, number, self._settings.dictionary, sentences)
                noisy = (
                    usual[0] if source == pair[0] else self._source.encode(prefix + source, tagged=True),
                    usual[1] if target == pair[1] else self._opened(prefix + source, self._target.encode(target)),
                )
                made.append(usual if self._rejection_of_ids(noisy) else noisy)
        return made

    def _opened(self, source: str, target: list[int]) -> list[int]:
        """The ids of the target after those that a translation of this source begins with."""
        return [*self._source.opening(source), *target] if target else target

    def _rejection_of_ids(self, pair: PairIds) -> str | None:
        """The reason to drop the pair: a side has more than `max_length` tokens, or both sides together more than
        `max_tokens`, including the start or end symbol. None for a usable pair."""
        source, target = map(len, pair)
        if not source or not target:  # normalisation removed every character
            return BLANK
        too_long = max(source, target) >= self._settings.max_length or source + target + 2 > self._settings.max_tokens
        return TOO_LONG if too_long else None

    def _joined(self, sentences: list[list[int]]) -> Joined:
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        return Joined(np.fromiter(chain.from_iterable(sentences), self._settings.dtype, int(lengths.sum())), lengths)


def ids_dtype(vocab_size: int) -> np.dtype[Any]:
    """The smallest type of the two that holds all ids of the vocabulary."""
    return SMALL_IDS_DTYPE if vocab_size <= 2**16 else IDS_DTYPE


def rejection_reason(source: str, target: str, max_length: int, tests: Sequence[tuple[str, Test]]) -> str | None:
    """The reason to drop the pair before it is tokenised; None for a usable one. tests: the filters."""
    if is_blank(source) or is_blank(target):
        return BLANK
    if is_too_long(source, max_length) or is_too_long(target, max_length):
        return TOO_LONG
    return next((name for name, test in tests if test(source, target)), None)


def _abridged(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _compared(pair: tuple[str, str], kind: str) -> str:
    """The text to hash. The line end separates the sides, because no text contains one."""
    source, target = pair[0].strip(), pair[1].strip()
    return f"{source}\n{target}" if kind == "pair" else source if kind == "source" else target


def hash_of(text: str) -> int:
    """64 bits of BLAKE2b. Among a billion texts the chance that any two different ones share a hash is 3%."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


class SeenHashes:
    """The hashes seen so far, in sorted arrays, each at least twice as long as the next. Each takes 8 bytes of memory,
    and for a moment twice that while arrays are merged."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.uint64]] = []

    def first(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Says for each hash whether it is new. Of equal hashes only the first one is."""
        unique, places = np.unique(hashes, return_index=True)
        new = np.ones(len(unique), dtype=bool)
        for seen in self._sorted:
            found = np.minimum(np.searchsorted(seen, unique), len(seen) - 1)
            new &= seen[found] != unique
        if new.any():
            self._sorted.append(unique[new])
        while len(self._sorted) > 1 and len(self._sorted[-2]) < 2 * len(self._sorted[-1]):
            both = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            both.sort(kind="stable")  # merges, because both parts are sorted
            self._sorted.append(both)
        first = np.zeros(len(hashes), dtype=bool)
        first[places[new]] = True
        return first
