"""Phrases that translations must have, as ids: the terms of a glossary, and marks that stand for protected text."""

from __future__ import annotations

from collections.abc import Sequence
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

    def of(self, sources: Sequence[int]) -> Demands:
        """Those of some of the sources."""
        return Demands([self.phrases[i] for i in sources], self.word_parts)
