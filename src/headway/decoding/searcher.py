"""The protocol by which a translator uses search, and what all searchers share: a translation as ids, the phrases that
it must have, its rank, and batches of similar length, so that little of a batch is padding."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from headway.decoding.options import SearchOptions

Stopped = Literal["eos", "max_length"]
Item = TypeVar("Item")
Lengths = tuple[int, ...]
"""The lengths of an item's sequences, such as source and target."""
TOKENS_PER_BATCH = 4096
"""Maximum number of padded source tokens in a batch of a search."""


@dataclass
class Hypothesis:
    """A translation as ids, without control ids."""

    ids: list[int]
    score: float
    """Total log-probability, <eos> included, even if the length limit ended the hypothesis."""
    stopped: Stopped


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


class Searcher(Protocol):
    """Finds the translations of many sources, as ids. Sources are neither empty nor too long, and have no <eos>."""

    takes_phrases: bool
    """Whether its translations can be made to have required phrases."""

    def search(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
        required: RequiredPhrases | None = None,
    ) -> list[list[Hypothesis]]:
        """The `n_best` hypotheses of each source, best first, with options that the searcher has (`ABILITIES`).

        caps: the maximum number of tokens in each translation; prefixes: the ids that each begins with. required:
        at least one phrase for each source; the beam has a place for each number of phrases, even if `options` make it
        narrower. If a cap leaves no room for the phrases, they are left out.
        """
        ...

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included."""
        ...


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6) ** alpha, GNMT's (Wu et al., 2016, equation 14): a hypothesis is ranked by its score
    divided by this. |Y| counts <eos>."""
    return ((5.0 + length) / 6.0) ** alpha


def normalized_score(hypothesis: Hypothesis, alpha: float) -> float:
    """The score divided by the length penalty."""
    return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)


def ranked(finished: Iterable[Hypothesis], beam_size: int, alpha: float) -> list[Hypothesis]:
    """The `beam_size` likeliest, best first by their normalised scores. CTranslate2 knows no others."""
    likeliest = sorted(finished, key=lambda one: one.score, reverse=True)[:beam_size]
    return sorted(likeliest, key=lambda one: normalized_score(one, alpha), reverse=True)


def batches_by_length(
    items: Iterable[Item],
    lengths_of: Callable[[Item], Lengths],
    fits: Callable[[int, Lengths], bool],
    *,
    longest_first: bool = False,
) -> list[list[Item]]:
    """All items, sorted by their lengths, in batches of as many as fit. fits: whether so many items, padded to these
    lengths, may be in one batch; an item alone always may."""
    batches: list[list[Item]] = []
    padded: Lengths = ()
    for item in sorted(items, key=lengths_of, reverse=longest_first):
        lengths = lengths_of(item)
        together = tuple(map(max, padded, lengths))
        if batches and fits(len(batches[-1]) + 1, together):
            batches[-1].append(item)
            padded = together
        else:
            batches.append([item])
            padded = lengths
    return batches


def search_batches(
    numbers: Sequence[int], length_of: Callable[[int], int], most: int, scale: int = 1
) -> list[list[int]]:
    """The numbers in batches of similar length, at most `most` in each, longest first. Lengths don't count <eos>.
    scale: how many times as large batches may be."""
    return batches_by_length(
        numbers,
        lambda i: (length_of(i) + 1,),
        lambda count, longest: count <= scale * most and count * longest[0] <= scale * TOKENS_PER_BATCH,
        longest_first=True,
    )
