"""Proof of what positions are for: two sentences of the same words, in another order, with different translations.

Without positions the encoder gives the same states for both, in another order, and the sums of attention have no order;
so the model can't tell them apart. Where order has a meaning depends on the text that the model was made for:
reorderings of such text are tried, and one that proves it is kept.
"""

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
"""Limits of the sentences from the model's domain: their number and their characters."""
SURE = 0.5
"""Least probability of the least likely word in translations that the model is sure of."""


@dataclass(frozen=True)
class WordOrder:
    """Two sentences of the same tokens in another order, and their translations by a model."""

    sentences: tuple[str, str]
    with_positions: tuple[Tried, Tried]
    without_positions: tuple[Tried, Tried]
    tried: int = 1
    """Number of reorderings that were tried until this one was kept."""

    @property
    def proves(self) -> bool:
        """Whether the translations differ with positions and are the same without."""
        return _differ(self.with_positions) and not _differ(self.without_positions)

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """The higher, the better as an example: proof comes first."""
        return self.proves, *_rank(self.sentences[0], self.with_positions)

    @property
    def is_convincing(self) -> bool:
        """Whether the search can stop."""
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
    it. Otherwise returns the proof of highest rank; or the first reordering; or None if no two words can change places.
    tokens: the ids of a text, None if the model can't read it. translate_fast: for the first round."""

    def whole(pair: tuple[str, str]) -> WordOrder:
        (one, other), (without_one, without_other) = translate(pair), translate_without_positions(pair)
        return WordOrder(pair, (one, other), (without_one, without_other))

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
    """Sentences of the same tokens: the most promising reordering of every text, then the second of each, and so on."""

    def pairs_of(text: str) -> Iterator[tuple[str, str]]:
        ids = sorted(tokens(text) or ())
        for other in islice(reorderings(text), MOST_OF_A_SENTENCE) if ids else ():
            if sorted(tokens(other) or ()) == ids:
                yield text, other

    for rank in zip_longest(*map(pairs_of, texts)):
        yield from filter(None, rank)


def _form(word: str) -> str:
    """`00` for 03, `Aa` for Mann, `a` for dog."""
    letters = ("0" if one.isdigit() else "A" if one.isupper() else "a" for one in word)
    return re.sub("a+", "a", "".join(letters))


def _rank(sentence: str, translations: Sequence[Tried]) -> tuple[bool, bool, float]:
    """Best are translations with equally many words, which the model is sure of, as it seldom is if the source is no
    sentence; then short sentences, or surer translations."""
    one, other = translations
    sureness = min((word.probability for word in (*one.words, *other.words)), default=0.0)
    last = -float(len(sentence)) if sureness >= SURE else sureness
    return len(one.words) == len(other.words), sureness >= SURE, last


def _differ(translations: Sequence[Tried]) -> bool:
    return len({one.text for one in translations}) > 1
