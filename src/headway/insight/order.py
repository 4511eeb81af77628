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

from headway.insight.what_if import Tried, swapped

_WORD = re.compile(r"[\w'’]+")
TRIED_AT_ONCE, MOST_TRIED = 16, 96
"""Reorderings that are translated together, and all that are tried."""
MOST_OF_A_SENTENCE = 8
MOST_SENTENCES, LONGEST_SENTENCE = 500, 100
"""Of the model's domain, that are looked at, and their characters: long ones take long, and are hard to compare."""
SURE = 0.5
"""The least probability of the least likely word of translations that the model is sure of."""


@dataclass(frozen=True)
class WordOrder:
    """Two sentences of the same tokens in another order, and what a model makes of each."""

    sentences: tuple[str, str]
    with_positions: Sequence[Tried]
    without_positions: Sequence[Tried]
    tried: int = 1
    """How many reorderings were tried until this one was kept."""

    @property
    def proves(self) -> bool:
        """Whether the translations differ with positions and are the same without."""
        return _differ(self.with_positions) and not _differ(self.without_positions)

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """The higher, the better to be shown: first of all it proves."""
        return self.proves, *_rank(self.sentences[0], self.with_positions)

    @property
    def is_convincing(self) -> bool:
        """Whether no other needs to be looked for."""
        return all(self.rank[:3])


Tokens = Callable[[str], Sequence[int] | None]
Translate = Callable[[Sequence[str]], Sequence[Tried]]


def find_word_order(
    texts: Iterable[str],
    tokens: Tokens,
    translate: Translate,
    translate_without_positions: Translate,
    translate_fast: Translate,
) -> WordOrder | None:
    """Tries reorderings of the texts, some at once, until one proves what positions are for and the model is sure of
    it. Else the one of highest rank that does; else the first that was tried; None where no two words can change
    places. tokens: the ids of a text, None where the model can't read it. translate_fast: what is tried at first."""

    def whole(pair: tuple[str, str]) -> WordOrder:
        return WordOrder(pair, translate(pair), translate_without_positions(pair))

    best, tried = None, 0
    pairs = islice(_pairs(texts, tokens), MOST_TRIED)
    while batch := list(islice(pairs, TRIED_AT_ONCE)):
        found = translate_fast([sentence for pair in batch for sentence in pair])
        best = best or whole(batch[0])
        tried += len(batch)
        outcomes = [(pair, found[2 * i : 2 * i + 2]) for i, pair in enumerate(batch)]
        differing = [(_rank(pair[0], both), pair) for pair, both in outcomes if _differ(both)]
        for rank, pair in sorted(differing, reverse=True):
            if best.proves and rank <= best.rank[1:]:
                break
            best = max(best, whole(pair), key=lambda one: one.rank)
        if best.is_convincing:
            break
    return None if best is None else replace(best, tried=tried)


def reorderings(text: str) -> list[str]:
    """The text with two of its words in each other's place, words of one form, such as `03` and `04` or `Hund` and
    `Mann`: the longest first, which are seldom articles or prepositions. Punctuation stays where it is."""
    pairs = combinations(_WORD.finditer(text), 2)
    swaps = [(one, other) for one, other in pairs if one[0] != other[0] and _form(one[0]) == _form(other[0])]
    swaps.sort(key=lambda pair: -min(len(pair[0][0]), len(pair[1][0])))
    return [swapped(one, other) for one, other in swaps]


def _pairs(texts: Iterable[str], tokens: Tokens) -> Iterator[tuple[str, str]]:
    """Sentences of the same tokens: of every text its most promising one, then of each its second, and so on."""

    def of(text: str) -> Iterator[tuple[str, str]]:
        ids = sorted(tokens(text) or ())
        for other in islice(reorderings(text), MOST_OF_A_SENTENCE) if ids else ():
            if sorted(tokens(other) or ()) == ids:
                yield text, other

    for rank in zip_longest(*map(of, texts)):
        yield from filter(None, rank)


def _form(word: str) -> str:
    """`00` of 03, `Aa` of Mann, `a` of dog."""
    letters = ("0" if one.isdigit() else "A" if one.isupper() else "a" for one in word)
    return re.sub("a+", "a", "".join(letters))


def _rank(sentence: str, translations: Sequence[Tried]) -> tuple[bool, bool, float]:
    """The translations have as many words, as those of two sentences of one form do; the model is sure of them, as it
    seldom is of what is no sentence; the sentences are short, or the model is surer."""
    one, other = translations
    sureness = min((word.probability for word in (*one.words, *other.words)), default=0.0)
    last = -float(len(sentence)) if sureness >= SURE else sureness
    return len(one.words) == len(other.words), sureness >= SURE, last


def _differ(translations: Sequence[Tried]) -> bool:
    return len({one.text for one in translations}) > 1
