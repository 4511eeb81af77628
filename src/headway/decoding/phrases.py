"""Phrases that translations must have, as ids: the terms of a glossary, and marks that stand for protected text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Phrase:
    """Consecutive ids in a translation."""

    ids: tuple[int, ...]
    ends_word: bool = False
    """Whether the next token must begin a word."""
    initial: tuple[int, ...] = ()
    """Ids that may replace these at the beginning of a translation; empty if there are none."""


@dataclass(frozen=True)
class RequiredPhrases:
    """The phrases that the translations of some sources must have. A phrase that is listed twice must occur twice."""

    phrases: Sequence[tuple[Phrase, ...]]
    """The phrases for each source."""
    word_parts: NDArray[np.bool_]
    """Whether each target token continues the word before it. (target vocabulary,)"""

    def found_in(self, source: int, ids: Sequence[int]) -> bool:
        """Whether a translation of the source contains its phrases without overlaps. Each phrase takes its first free
        occurrence, long phrases first, so that False is possible although another assignment would fit."""
        taken: set[int] = set()
        for phrase in sorted(self.phrases[source], key=lambda one: len(one.ids), reverse=True):
            span = next((span for span in self._spans(phrase, ids) if taken.isdisjoint(span)), None)
            if span is None:
                return False
            taken.update(span)
        return True

    def _spans(self, phrase: Phrase, ids: Sequence[int]) -> Iterator[range]:
        """All occurrences of the phrase."""
        for start in range(len(ids)):
            for form in (phrase.ids, phrase.initial if start == 0 else ()):
                end = start + len(form)
                continues = phrase.ends_word and end < len(ids) and self.word_parts[ids[end]]
                if form and tuple(ids[start:end]) == form and not continues:
                    yield range(start, end)

    def of(self, sources: Sequence[int]) -> Self:
        """The phrases for some of the sources."""
        return replace(self, phrases=[self.phrases[i] for i in sources])
