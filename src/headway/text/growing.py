"""Larger vocabularies, by new pieces or words, learned from new text, and by tags of new target languages; and smaller
ones, of the pieces that some languages need.

New pieces are learned by going on with BPE's merges where the old tokenizer stops, so each of them can be reached
(Purason et al. 2025, https://arxiv.org/abs/2512.03989). Text that holds none of them keeps its pieces.
"""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

from headway.text.detection import script_of
from headway.text.sentencepiece_model import enlarged, read_model, shortened
from headway.text.subwords import SubwordTokenizer, Tokenizer
from headway.text.tokenizer import CONTROL_PIECES, UNK_ID, language_tag, language_token
from headway.text.words import WordTokenizer, split_words

LEAST_COUNT = 2
"""Minimum number of times that a new piece occurs in the text."""
UNKNOWN_PENALTY = 10.0
"""Difference below the lowest piece at which sentencepiece's unigram scores an unknown character."""
LEAST_GAIN = 0.1
"""Minimum by which a new piece of a unigram model scores above the pieces that it replaces."""


@dataclass(frozen=True)
class NewPiece:
    """A piece that is added to a vocabulary."""

    text: str
    parts: list[int]
    """The old ids that it replaces."""
    score: float = 0.0
    """The score in a sentencepiece model."""


@dataclass(frozen=True)
class Changed:
    """A tokenizer with a larger or smaller vocabulary."""

    tokenizer: Tokenizer
    rows: list[list[int]]
    """For each id the old ids that it comes from: an old piece's own, for a tag those of the earlier tags, or of all
    pieces if there are none."""


def learn_pieces(tokenizer: Tokenizer, texts: Iterable[str], most: int) -> list[NewPiece]:
    """Up to `most` pieces, or words, that the texts have most often and the tokenizer lacks; the most frequent first. A
    piece joins letters of one script, or is a character."""
    if isinstance(tokenizer, WordTokenizer):
        counts = Counter(word for text in texts for word in split_words(text, tokenizer.lowercase))
        known = set(tokenizer.vocabulary)
        new = sorted((-count, word) for word, count in counts.items() if count >= LEAST_COUNT and word not in known)
        return [NewPiece(word, [UNK_ID]) for _, word in new[:most]]
    return _Merging(tokenizer, texts).learn(most)


def grow(
    tokenizer: Tokenizer, pieces: Sequence[NewPiece], languages: Sequence[str] = (), never_found: Container[str] = ()
) -> Changed:
    """The tokenizer with new pieces at the end of its vocabulary, and tags of languages after its own tags. Pieces in
    `never_found` are those of the other side in a shared vocabulary: this tokenizer never finds them in text."""
    old = [[id_] for id_ in range(tokenizer.vocab_size)]
    new = [piece.parts for piece in pieces]
    if isinstance(tokenizer, WordTokenizer):
        words = [*tokenizer.vocabulary[len(CONTROL_PIECES) :], *(piece.text for piece in pieces)]
        return Changed(WordTokenizer(words, tokenizer.lowercase), [*old, *new])
    text_begins = tokenizer.text_begins
    like_a_tag = range(len(CONTROL_PIECES), text_begins) or range(text_begins, tokenizer.vocab_size)
    tags = [(language_token if tokenizer.many_sources else language_tag)(language) for language in languages]
    scores = [(piece.text, None if piece.text in never_found else piece.score) for piece in pieces]
    rows = [*old[:text_begins], *([*like_a_tag] for _ in tags), *old[text_begins:], *new]
    return Changed(SubwordTokenizer(enlarged(tokenizer.to_bytes(), tags, text_begins, scores)), rows)


def needed_ids(tokenizer: SubwordTokenizer, texts: Iterable[str]) -> set[int]:
    """The ids that texts in the languages of these need: of every piece whose characters, each three in a row, are in
    their words (so of their own pieces, and of those that BPE joins to them), of all characters and bytes, alone or at
    the start of a word, of control symbols and tags, and of the piece by whose score unknown characters are scored."""
    model = read_model(tokenizer.to_bytes())
    words = {"".join(word) for text in texts for word in _words(tokenizer.symbols(text))}
    parts = {word[start : start + size] for word in words for start in range(len(word) - 1) for size in (2, 3)}
    found = {
        id_
        for id_, piece in enumerate(model.pieces)
        if len(piece.removeprefix("▁")) < 2
        or all(piece[start : start + 3] in parts for start in range(max(1, len(piece) - 2)))
    }
    return found | {*range(tokenizer.text_begins), *model.byte, model.scores.index(min(model.scores))}


def keep(tokenizer: SubwordTokenizer, ids: Iterable[int]) -> Changed:
    """The tokenizer with these ids alone, in their order."""
    kept = sorted(ids)
    return Changed(SubwordTokenizer(shortened(tokenizer.to_bytes(), kept)), [[id_] for id_ in kept])


class _Merging:
    """The words of a text as symbols, which are joined as new pieces are learned. A symbol is a piece, or a character
    without one. A candidate is a new character, or two neighbours that may be joined."""

    def __init__(self, tokenizer: SubwordTokenizer, texts: Iterable[str]) -> None:
        model = read_model(tokenizer.to_bytes())
        self._bpe = model.kind == "bpe"
        self._known = set(model.pieces)
        self._fixed = {model.pieces[id_] for id_ in model.user_defined}
        counts = Counter(word for text in texts for word in _words(tokenizer.symbols(text)))
        self._words, self._counts = [list(word) for word in counts], list(counts.values())
        self._total = sum(len(word) * count for word, count in counts.items())
        ids = {piece: id_ for id_, piece in enumerate(model.pieces)}
        self._lowest = min(model.scores)
        self._parts: dict[str, list[int]] = {}
        self._scores: dict[str, float] = {}
        for symbol in {symbol for word in counts for symbol in word}:
            id_ = ids.get(symbol)
            spelt = [model.byte[byte] for byte in symbol.encode()] if model.byte else [UNK_ID]
            self._parts[symbol] = spelt if id_ is None else [id_]
            self._scores[symbol] = self._lowest - UNKNOWN_PENALTY if id_ is None else model.scores[id_]
        self._frequency: Counter[str] = Counter()
        self._places: defaultdict[str, set[int]] = defaultdict(set)
        for place in range(len(self._words)):
            self._count(place, 1)

    def learn(self, most: int) -> list[NewPiece]:
        """The pieces, the most frequent first, the longer first of two that are as frequent."""
        learned: list[NewPiece] = []
        queue = [(-count, -len(text), text) for text, count in self._frequency.items()]
        heapify(queue)
        while queue and len(learned) < most:
            count, _, text = heappop(queue)
            if -count < LEAST_COUNT:
                break
            if text in self._known or self._frequency[text] != -count:
                continue  # the queue has its present count as well
            changed = self._join(text)
            share = math.log(-count / self._total)
            score = self._lowest - 1 - len(learned) if self._bpe else max(share, self._scores[text], self._lowest)
            self._scores[text] = score
            learned.append(NewPiece(text, self._parts[text], score))
            for other in changed:
                heappush(queue, (-self._frequency[other], -len(other), other))
        return learned

    def _join(self, text: str) -> set[str]:
        """Joins neighbours that make up the text and returns the candidates whose frequencies have changed."""
        places, changed = sorted(self._places[text]), set()
        for place in places:
            changed |= self._count(place, -1)
        self._known.add(text)
        for place in places:
            joined: list[str] = []
            for symbol in self._words[place]:
                if joined and joined[-1] + symbol == text:
                    self._parts[text] = self._parts[joined[-1]] + self._parts[symbol]
                    self._scores[text] = self._scores[joined[-1]] + self._scores[symbol] + LEAST_GAIN
                    joined[-1] = text
                else:
                    joined.append(symbol)
            self._words[place] = joined
            changed |= self._count(place, 1)
        return changed - {text}

    def _count(self, place: int, sign: int) -> set[str]:
        """Adds a word's candidates to the frequencies, or removes them, and returns them."""
        word = self._words[place]
        pairs = (left + right for left, right in pairwise(word) if self._fixed.isdisjoint((left, right)))
        found = (*word, *filter(_is_of_one_script, pairs))
        candidates = [one for one in found if one not in self._known and one.isprintable()]
        for one in candidates:
            self._frequency[one] += sign * self._counts[place]
            (self._places[one].add if sign > 0 else self._places[one].discard)(place)
        return set(candidates)


@lru_cache(1 << 16)
def _is_of_one_script(text: str) -> bool:
    """Whether the text is letters of one script with their marks, perhaps after a space. sentencepiece, too, learns no
    pieces of several scripts."""
    letters = text.removeprefix("▁")
    if not all(char.isalpha() or unicodedata.category(char).startswith("M") for char in letters):
        return False
    return len({script for char in letters if (script := script_of(char))}) == 1


def _words(symbols: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The symbols of each word; no piece crosses words."""
    begins = [0, *(place for place, symbol in enumerate(symbols) if place and symbol.startswith("▁")), len(symbols)]
    return (tuple(symbols[begin:end]) for begin, end in pairwise(begins) if begin < end)
