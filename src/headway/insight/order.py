"""What positions are for: two sentences of the same words, in another order, that a model translates differently.

Without positions the encoder gives the same states for both, in another order, and what attention sums up has no order;
so the model can't tell them apart. Where order is meaning depends on the text that the model was made for: reorderings
of such text are tried, and one is kept that proves it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, zip_longest

from headway.insight.what_if import Tried

_WORD = re.compile(r"[\w'’]+")
TRIED_AT_ONCE, MOST_TRIED = 16, 96
"""Reorderings that are translated together, and all that are tried."""
MOST_OF_A_SENTENCE = 8
SURE = 0.5
"""The least probability of the least likely word of translations that the model is sure of."""


@dataclass(frozen=True)
class WordOrder:
    """Two sentences of the same tokens in another order, and what a model makes of each."""

    sentences: tuple[str, str]
    with_positions: tuple[Tried, Tried]
    without_positions: tuple[Tried, Tried] | None = None
    """None where the translations are the same even with positions."""
    tried: int = 1
    """How many reorderings were tried until this one was kept."""

    @property
    def proves(self) -> bool:
        """Whether the translations differ with positions and are the same without."""
        if self.without_positions is None:
            return False
        return _differ(self.with_positions) and not _differ(self.without_positions)

    @property
    def sureness(self) -> float:
        """The probability of the least likely word of both translations; low, as a rule, for what is no sentence."""
        return min((word.probability for one in self.with_positions for word in one.words), default=0.0)

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """The higher, the better to be shown: it proves, the translations have as many words, the model is sure, the
        sentence is short or the model surer."""
        one, other = self.with_positions
        is_sure = self.sureness >= SURE
        last = -float(len(self.sentences[0])) if is_sure else self.sureness
        return self.proves, len(one.words) == len(other.words), is_sure, last

    @property
    def is_convincing(self) -> bool:
        """Whether no other needs to be looked for."""
        return all(self.rank[:3])


Translate = Callable[[Sequence[str]], Sequence[Tried]]


def find_word_order(
    texts: Iterable[str],
    tokens: Callable[[str], Sequence[int] | None],
    translate: Translate,
    translate_without_positions: Translate,
    translate_fast: Translate,
) -> WordOrder | None:
    """Tries reorderings of the texts, some at once, until one proves what positions are for and the model is sure of
    it. Else the one of highest rank that does; else the first that was tried; None where no two words can change
    places. tokens: the ids of a text, None where the model can't read it. translate_fast: what is tried at first."""
    best, first, tried = None, None, 0
    pairs = islice(_pairs(texts, tokens), MOST_TRIED)
    while batch := list(islice(pairs, TRIED_AT_ONCE)):
        found = translate_fast([sentence for pair in batch for sentence in pair])
        orders = [WordOrder(pair, (found[2 * i], found[2 * i + 1])) for i, pair in enumerate(batch)]
        first = first or orders[0]
        tried += len(batch)
        differing = [one for one in orders if _differ(one.with_positions)]
        for one in sorted(differing, key=lambda one: one.rank, reverse=True):
            if best is not None and one.rank[1:] <= best.rank[1:]:
                break
            outcomes = translate(one.sentences), translate_without_positions(one.sentences)
            again = WordOrder(one.sentences, *map(_two, outcomes))
            best = again if again.proves else best
        if best is not None and best.is_convincing:
            break
    if best is None and first is not None:
        best = replace(first, with_positions=_two(translate(first.sentences)))
    return None if best is None else replace(best, tried=tried)


def reorderings(text: str) -> list[str]:
    """The text with two of its words in each other's place, words of one form, such as `03` and `04` or `Hund` and
    `Mann`: the longest first, which are seldom articles or prepositions. Punctuation stays where it is."""
    words = list(_WORD.finditer(text))
    swaps = [(one, other) for one, other in combinations(words, 2) if one[0] != other[0]]
    swaps = [(one, other) for one, other in swaps if _form(one[0]) == _form(other[0])]
    swaps.sort(key=lambda pair: -min(len(pair[0][0]), len(pair[1][0])))
    return [
        text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]
        for one, other in swaps
    ]


def _pairs(texts: Iterable[str], tokens: Callable[[str], Sequence[int] | None]) -> Iterator[tuple[str, str]]:
    """Sentences of the same tokens: of every text its most promising one, then of each its second, and so on."""

    def of(text: str) -> Iterator[tuple[str, str]]:
        ids = sorted(tokens(text) or ())
        for other in islice(reorderings(text), MOST_OF_A_SENTENCE) if ids else ():
            if sorted(tokens(other) or ()) == ids:
                yield text, other

    for rank in zip_longest(*map(of, texts)):
        yield from (pair for pair in rank if pair is not None)


def _form(word: str) -> str:
    """`00` of 03, `Aa` of Mann, `a` of dog."""
    letters = ("0" if one.isdigit() else "A" if one.isupper() else "a" for one in word)
    return re.sub("a+", "a", "".join(letters))


def _differ(outcomes: Sequence[Tried]) -> bool:
    one, other = outcomes
    return one.text != other.text


def _two(outcomes: Sequence[Tried]) -> tuple[Tried, Tried]:
    one, other = outcomes
    return one, other
