"""Divides a corpus into pairs that train a model, pairs that validate it and pairs that test it.

A pair's side follows from a hash: of its document, or of its source as `compared`, so that all translations of a source
are on one side. The smallest hashes test and the largest validate, whatever the order of the text; when a corpus grows,
no test pair becomes a validation pair. Training pairs with a source too like one that measures are left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.data.corpus import Chunk, CorpusFiles, read_chunks
from headway.data.encoding import hash_of
from headway.data.filters import is_copy
from headway.data.lines import Layout
from headway.data.two_sided import Sides
from headway.errors import UserError
from headway.languages import read_code
from headway.text.characters import is_blank

PAIRS = 1000
"""About as many pairs validate, and as many test."""
SHARE = 10
"""A part has one pair in so many where there are fewer."""
LONGEST = 500
"""Most characters on a side of a pair that measures."""
LARGEST_DOCUMENT = 10 * PAIRS
"""Most pairs of a document that measures, where those with fewer than a part's don't suffice."""
SHINGLE, OVERLAP = 3, 0.6
"""Texts are near if their sets of so many consecutive letters have this share of their union in common."""
SHARED = 8
"""Rare members that near sets share; more make a search look at fewer sets, but at more members."""
RULE = {"pairs": PAIRS, "share": SHARE, "longest": LONGEST, "shingle": SHINGLE, "overlap": OVERLAP}
NEAR = "like a source that measures"
"""Why a pair doesn't train."""


def compared(text: str) -> str:
    """A text as others are compared with it: letters, marks and digits alone, without case and width (NFKC). A text
    that has none of these is itself."""
    return unicodedata.normalize("NFKC", text).casefold().translate(_COMPARED) or text.strip()


class _Compared(dict[int, int | None]):
    """For `str.translate`: leaves out punctuation, symbols, white space, controls and what shows nothing."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code))[0] in "PSZC" else code
        return self[code]


_COMPARED = _Compared()


def shingles(key: str) -> frozenset[str]:
    """The runs of SHINGLE letters in a compared text. Numbers are left out, unless there is nothing else, and Hangul is
    taken as its letters: a syllable has as many as a syllable of other scripts."""
    letters = unicodedata.normalize("NFD", re.sub(r"\d+", "", key) or key)
    return frozenset(letters[start : start + SHINGLE] for start in range(max(1, len(letters) - SHINGLE + 1)))


class NearTexts:
    """Finds texts near to given ones, exactly, without comparing all: two sets with so much in common share several of
    their rarest members (prefix filter; Bayardo et al., 2007, Scaling Up All Pairs Similarity Search)."""

    def __init__(self, keys: Iterable[str]) -> None:
        """keys: the given texts, as `compared`."""
        self._sets = [shingles(key) for key in keys]
        uses = Counter(chain.from_iterable(self._sets))
        self._ranks = {one: rank for rank, one in enumerate(sorted(uses, key=lambda one: (uses[one], one)))}
        """The members of all sets, the rarest first."""
        self._places: list[list[int]] = [[] for _ in uses]
        """The sets that have a member among their rarest."""
        for place, given in enumerate(self._sets):
            for rank in self._rarest(given):
                self._places[rank].append(place)

    def __contains__(self, key: str) -> bool:
        """Whether a compared text is near to one of those given."""
        own = shingles(key)
        shared = Counter(chain.from_iterable(self._places[rank] for rank in self._rarest(own)))
        least = min(SHARED, ceil(OVERLAP * len(own)))
        return any(
            len(own & self._sets[place]) >= OVERLAP * len(own | self._sets[place])
            for place, count in shared.items()
            if count >= least
        )

    def _rarest(self, own: frozenset[str]) -> list[int]:
        """The ranks of so many of the rarest members that a near set has SHARED of them. Members of no given set are
        the rarest of all."""
        ranks = sorted([self._ranks[one] for one in own if one in self._ranks])
        return ranks[: max(0, len(ranks) - ceil(OVERLAP * len(own)) + SHARED)]


class Placed(NamedTuple):
    """A pair, and what decides where it goes."""

    source: str
    target: str
    key: str
    """The source as `compared`."""
    unit: int
    """The hash of what stays on one side."""


class Splitter:
    """Divides a corpus, in three readings of its files: the first takes a hash of each pair into memory, the second the
    parts that measure, the third passes through the pairs that train."""

    def __init__(
        self,
        corpus: CorpusFiles,
        languages: Sides,
        document: Layout | None = None,
        held_out: Iterable[CorpusFiles] = (),
    ) -> None:
        """document: where a line of the files names its document. held_out: other text that measures. Raises
        UserError."""
        self._corpus, self._document = corpus, document
        self._may_copy = read_code(languages[0]).language == read_code(languages[1]).language
        pairs = chain.from_iterable(one.pairs() for one in held_out)
        self._held_out = {compared(pair.source) for pair in pairs if not is_blank(pair.source)}
        self._sides: dict[int, str] = {}
        """The part of each unit that measures."""
        self._measuring: set[str] = self._held_out
        """The sources that measure."""
        self.left_out: Counter[str] = Counter()
        """Pairs in no part, by reason. Complete once all parts were read."""

    def measuring(self, parts: Sequence[str]) -> dict[str, list[Sides]]:
        """The pairs of the parts, which are named `test` or `valid`. Raises UserError."""
        self._sides = self._chosen(parts) if parts else {}
        found: dict[str, dict[str, tuple[int, Sides]]] = {part: {} for part in parts}
        for placed in self._pairs() if parts else ():
            if (part := self._sides.get(placed.unit)) is None:
                continue
            pair = placed.source, placed.target
            if reason := self._unfit(placed):
                self.left_out[reason] += 1
                continue
            best = (hash_of("\n".join(pair)), pair)  # of several translations one, whatever their order
            if placed.key in found[part]:
                self.left_out["another translation or a repeat"] += 1
                best = min(best, found[part][placed.key])
            found[part][placed.key] = best
        for key in found.get("valid", {}).keys() & found.get("test", {}).keys():  # of two documents
            del found["valid"][key]
            self.left_out["in both parts"] += 1
        self._measuring = self._held_out.union(*found.values())
        return {part: [pair for _, pair in pairs.values()] for part, pairs in found.items()}

    def training(self, *, near: bool = True) -> Iterator[Sides]:
        """The other pairs, without those whose source is near to one that measures; near=False: is the same as one."""
        unwanted = NearTexts(self._measuring) if near else self._measuring
        self.left_out[NEAR] = 0
        for placed in self._pairs():
            if placed.unit in self._sides:
                continue
            if placed.key in unwanted:
                self.left_out[NEAR] += 1
            else:
                yield placed.source, placed.target

    def _pairs(self) -> Iterator[Placed]:
        for chunk in read_chunks([self._corpus]):
            for (source, target), document in zip(chunk.texts(), self._documents(chunk), strict=False):
                key = compared(source)
                yield Placed(source, target, key, hash_of(f"document\n{document}" if document else key))

    def _documents(self, chunk: Chunk) -> Iterator[str]:
        """The name of each pair's document; empty for a pair without one."""
        if self._document is None:
            yield from repeat("")
            return
        layout = replace(self._document, quoted=chunk.form is not None and chunk.form.quoted)
        for line in layout.lines(chunk.source_lines(), chunk.first):
            if line.fault:
                raise UserError(f"{chunk.source_file}, line {line.number}: {line.fault}")
            yield line.text.strip()

    def _unfit(self, placed: Placed) -> str | None:
        """Why the pair can't measure."""
        source, target = placed.source, placed.target
        if is_blank(source) or is_blank(target):
            return "blank"
        if not self._may_copy and is_copy(source, target):
            return "copied"
        if max(len(source), len(target)) > LONGEST:
            return "long"
        return "in text that was given" if placed.key in self._held_out else None

    def _chosen(self, parts: Sequence[str]) -> dict[int, str]:
        """The units of each part."""
        fit = (placed.unit for placed in self._pairs() if self._unfit(placed) is None)
        units, sizes = np.unique(np.fromiter(fit, dtype=np.uint64), return_counts=True)
        if self._document is None:
            sizes[:] = 1  # each source once
        file, total = self._corpus.sources[0], int(sizes.sum())
        wanted = min(PAIRS, total // SHARE)
        if wanted == 0:
            raise UserError(f"{file}: has {total} different usable sources; to set some apart, {SHARE} are needed")
        largest = wanted
        if sizes[sizes <= largest].sum() < 2 * len(parts) * wanted:
            largest = min(LARGEST_DOCUMENT, total // SHARE)
        units, sizes = units[sizes <= largest], sizes[sizes <= largest]
        chosen: dict[int, str] = {}
        for part in parts:
            order = slice(None) if part == "test" else slice(None, None, -1)
            taken = _first(sizes[order], wanted)
            if not taken:
                raise UserError(
                    f"{file}: the documents with up to {largest:,} pairs have too few to set {wanted:,} apart for each "
                    "part; without naming documents, single pairs are set apart"
                )
            chosen |= dict.fromkeys(units[order][:taken].tolist(), part)
            units, sizes = units[order][taken:][order], sizes[order][taken:][order]
        return chosen


def _first(sizes: NDArray[np.int64], wanted: int) -> int:
    """How many of these units together have the wanted size; 0 if all have not."""
    sums = np.cumsum(sizes)
    return int(np.searchsorted(sums, wanted)) + 1 if len(sums) and sums[-1] >= wanted else 0
