"""Phrases that translations must have, as ids: the terms of a glossary, and marks that stand for protected text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Phrase:
    """Ids that follow each other in a translation."""

    ids: tuple[int, ...]
    ends_word: bool = False
    """Whether the token after it may not be a part of its last word."""
    initial: tuple[int, ...] = ()
    """Ids that may stand in place of these where a translation begins with them; empty: none."""


@dataclass(frozen=True)
class Demands:
    """What the translations of some sources must have. A phrase that stands twice is demanded twice."""

    phrases: Sequence[tuple[Phrase, ...]]
    """Those of each source."""
    word_parts: NDArray[np.bool_]
    """Which target tokens go on with the word before them. (target vocabulary,)"""

    def are_met(self, source: int, ids: Sequence[int]) -> bool:
        """Whether a translation of the source has its phrases: each phrase takes ids of its own, the first that are
        there, long phrases before short ones. False may also mean that there is another way to place them."""
        free = [True] * len(ids)
        for phrase in sorted(self.phrases[source], key=lambda one: len(one.ids), reverse=True):
            for span in self._spans(phrase, ids):
                if all(free[place] for place in span):
                    break
            else:
                return False
            for place in span:
                free[place] = False
        return True

    def _spans(self, phrase: Phrase, ids: Sequence[int]) -> Iterator[range]:
        """Where the phrase stands."""
        for start in range(len(ids)):
            for form in (phrase.ids, phrase.initial if start == 0 else ()):
                end = start + len(form)
                goes_on = phrase.ends_word and end < len(ids) and self.word_parts[ids[end]]
                if form and tuple(ids[start:end]) == form and not goes_on:
                    yield range(start, end)

    def of(self, sources: Sequence[int]) -> Demands:
        """Those of some of the sources."""
        return Demands([self.phrases[i] for i in sources], self.word_parts)
