"""Filters and tokenises chunks of text, and counts the pairs that are dropped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headway.data.corpus import Chunk
from headway.data.filters import HeldOut, Test, filter_tests
from headway.data.noise import VERSIONS
from headway.data.pair_noise import sentences_of
from headway.data.two_sided import Sides
from headway.text.characters import is_blank, is_too_long
from headway.text.tokenizer import Tokenizer, language_tag

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
    def blank(self) -> int:
        return self.dropped.get(BLANK, 0)

    @property
    def too_long(self) -> int:
        return self.dropped.get(TOO_LONG, 0)

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
        blank = f", {self.blank:,} dropped because a side is blank" if self.blank else ""
        if not self.too_long:
            return f"{self.kept:,} pairs{blank}"
        first = ", ".join(self.examples[TOO_LONG])
        return f"{self.kept:,} pairs{blank}, {self.too_long:,} dropped because they are too long (first: {first})"

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
    source: NDArray[Any]
    """The ids of all pairs, concatenated."""
    target: NDArray[Any]
    source_lengths: NDArray[np.int64]
    target_lengths: NDArray[np.int64]
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
    dropped: dict[int, tuple[str, Sides]]
    """The reason to drop each of the other lines, and its texts."""
    hashes: NDArray[np.uint64]
    """The hashes to find duplicates by: (kinds of duplicates, pairs)."""


class ChunkEncoder:
    """Filters and tokenises chunks."""

    def __init__(self, settings: EncodingSettings) -> None:
        self._settings = settings
        self._source, self._target = settings.tokenizers
        held_out = HeldOut.of(settings.held_out)
        languages = dict.fromkeys(pair for _, pair in settings.corpora)
        tests = {pair: filter_tests(settings.filters, pair, held_out) for pair in languages}
        self._corpora = [(f"{language_tag(tag)} " if tag else "", tests[pair]) for tag, pair in settings.corpora]
        """For each corpus the beginning of its sources, and its filters."""
        self._valid = {pair: place for place, pair in enumerate(settings.valid)}

    def filtered(self, chunk: Chunk) -> FilteredChunk:
        """Filters the pairs. Raises UserError for a fault in the text."""
        prefix, tests = self._corpora[chunk.corpus]
        passed, dropped = dict[int, Sides](), dict[int, tuple[str, Sides]]()
        for line, (source, target) in chunk.numbered_texts():
            if reason := rejection_reason(source, target, self._settings.max_length, tests):
                dropped[line] = reason, (source, target)
            else:
                passed[line] = prefix + source, target
        lines, texts, kinds = list(passed), list(passed.values()), self._settings.filters.duplicates
        hashes = np.array([[hash_of(_compared(pair, kind)) for pair in texts] for kind in kinds], dtype=np.uint64)
        hashes = hashes.reshape(len(kinds), len(texts))
        return FilteredChunk(chunk.corpus, chunk.done, chunk.source_file, lines, texts, dropped, hashes)

    def encode(self, chunk: FilteredChunk, first: NDArray[np.bool_] | None = None) -> EncodedChunk:
        """Encodes the pairs. first: whether each of the hashes is new, to drop duplicates."""
        new: list[bool] = [True] * len(chunk.texts) if first is None else np.all(first, axis=0).tolist()
        dropped = chunk.dropped | {
            line: ("duplicates", pair)
            for line, pair, is_new in zip(chunk.lines, chunk.texts, new, strict=True)
            if not is_new
        }
        lines, texts = list(compress(chunk.lines, new)), list(compress(chunk.texts, new))
        found = (self._valid.pop(pair, None) for pair in texts) if self._valid else ()
        valid = [place for place in found if place is not None]
        sources = self._source.encode_all([source for source, _ in texts], tagged=True)
        targets = [
            self._opened(source, ids)
            for (source, _), ids in zip(texts, self._target.encode_all([target for _, target in texts]), strict=True)
        ]
        reasons = list(map(self._rejection_of_ids, sources, targets))
        dropped |= {line: (reason, pair) for line, pair, reason in zip(lines, texts, reasons, strict=True) if reason}
        kept = [reason is None for reason in reasons]
        texts, sources = list(compress(texts, kept)), list(compress(sources, kept))
        targets = list(compress(targets, kept))
        counts = PairCounts(kept=len(sources))
        for line, (reason, pair) in sorted(dropped.items()):
            shown = "" if reason in (BLANK, TOO_LONG) else "  " + " | ".join(map(_abridged, pair))
            counts.add(PairCounts(0, {reason: 1}, {reason: [f"{chunk.file}:{line}{shown}"]}))
        if self._settings.noise is not None:
            prefix = self._corpora[chunk.corpus][0]
            sources, targets = self._versions(self._settings.noise, texts, sources, targets, prefix)
        return EncodedChunk(
            corpus=chunk.corpus,
            done=chunk.done,
            counts=counts,
            source=self._flat(sources),
            target=self._flat(targets),
            source_lengths=np.fromiter(map(len, sources), dtype=np.int64, count=len(sources)),
            target_lengths=np.fromiter(map(len, targets), dtype=np.int64, count=len(targets)),
            valid=valid,
            hashes=chunk.hashes,
        )

    def _versions(
        self, noise: NoiseSection, texts: Texts, sources: list[list[int]], targets: list[list[int]], prefix: str
    ) -> tuple[list[list[int]], list[list[int]]]:
        """All versions of each pair. The noise depends on the text and the number of the version alone, and that which
        joins sentences on the chunk. If a noisy pair is too long, the usual one replaces it. prefix: the tag at the
        beginning of the sources."""
        noisy_sources: list[list[int]] = []
        noisy_targets: list[list[int]] = []
        pairs = [(text[len(prefix) :], target) for text, target in texts]
        sentences = sentences_of(pairs) if "joined" in noise.pairs else []
        for pair, source, target in zip(pairs, sources, targets, strict=True):
            for number in range(VERSIONS):
                noisy = noise.applied_to_pair(pair, number, self._settings.dictionary, sentences)
                text = prefix + noisy[0]
                source_ids = source if noisy[0] == pair[0] else self._source.encode(text, tagged=True)
                target_ids = target if noisy[1] == pair[1] else self._opened(text, self._target.encode(noisy[1]))
                rejected = self._rejection_of_ids(source_ids, target_ids)
                noisy_sources.append(source if rejected else source_ids)
                noisy_targets.append(target if rejected else target_ids)
        return noisy_sources, noisy_targets

    def _opened(self, source: str, target: list[int]) -> list[int]:
        """The ids of the target after those that a translation of this source begins with."""
        return [*self._source.opening(source), *target] if target else target

    def _rejection_of_ids(self, source: list[int], target: list[int]) -> str | None:
        """The reason to drop the pair: a side has more than `max_length` tokens, or both sides together more than
        `max_tokens`, including the start or end symbol. None for a usable pair."""
        if not source or not target:  # normalisation removed every character
            return BLANK
        longest, total = max(len(source), len(target)), len(source) + len(target) + 2
        return TOO_LONG if longest >= self._settings.max_length or total > self._settings.max_tokens else None

    def _flat(self, sentences: list[list[int]]) -> NDArray[Any]:
        return np.fromiter(chain.from_iterable(sentences), dtype=self._settings.dtype, count=sum(map(len, sentences)))


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
