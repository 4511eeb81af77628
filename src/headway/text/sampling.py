"""Random segmentations of text into subwords (subword regularisation), each a function of its text and a seed.

BPE-dropout (Provilkov et al. 2020) for BPE, sampling among the likeliest segmentations (Kudo 2018) for unigram.
sentencepiece has both, but mixes its seed with a random number of the process, so draws can't be repeated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Any

from headway.text.tokenizer import UNK_ID, TokenizerKind

LIKELIEST = 64
"""Segmentations of a word that are drawn from, for unigram."""
WORDS = 2**16
"""Words whose likeliest segmentations are kept."""
_WORD = re.compile("▁?[^▁]+|▁")


class Sampler:
    """Draws segmentations word by word, as no piece that sentencepiece learns crosses a space."""

    def __init__(self, processor: Any, kind: TokenizerKind) -> None:
        """processor: sentencepiece's, with its model."""
        self._processor, self._kind = processor, kind
        ids = range(processor.get_piece_size())
        special = {id_ for id_ in ids if processor.is_control(id_) or processor.is_unknown(id_)}
        self._bytes = {processor.id_to_piece(id_): id_ for id_ in ids if processor.is_byte(id_)}
        special |= {*self._bytes.values(), *(id_ for id_ in ids if processor.is_unused(id_))}
        self._ids = {processor.id_to_piece(id_): id_ for id_ in ids if id_ not in special}
        self._scores = {piece: processor.get_score(id_) for piece, id_ in self._ids.items()}
        self._likeliest = lru_cache(WORDS)(self._find_likeliest)

    def sample(self, text: str, alpha: float, seed: int) -> list[int]:
        """The ids of a segmentation. alpha: as of `Tokenizer.sample`."""
        random = Random(seed)
        draw = self._merged if self._kind == "bpe" else self._drawn
        return [id_ for word in _WORD.findall(self._processor.normalize(text)) for id_ in draw(word, alpha, random)]

    def _merged(self, word: str, dropout: float, random: Random) -> Iterator[int]:
        """By BPE: the best pair of neighbours merges, until there is none. Before each merge, every pair is left out
        with the probability `dropout`."""
        symbols, scores = list(word), self._scores
        while len(symbols) > 1:
            best, place = -math.inf, -1
            for left in range(len(symbols) - 1):
                score = scores.get(symbols[left] + symbols[left + 1])
                if score is not None and score > best and random.random() >= dropout:
                    best, place = score, left
            if place < 0:
                break
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        for symbol in symbols:
            yield from self._ids_of(symbol)

    def _ids_of(self, symbol: str) -> list[int]:
        """That of a piece, or those of the bytes of a character that is none."""
        if symbol in self._ids:
            return [self._ids[symbol]]
        names = [f"<0x{byte:02X}>" for byte in symbol.encode("utf-8")]
        return [self._bytes.get(name, UNK_ID) for name in names]

    def _drawn(self, word: str, alpha: float, random: Random) -> list[int]:
        """One of the likeliest segmentations, with a probability in proportion to its own to the power of alpha."""
        segmentations, bounds = self._likeliest(word, alpha)
        return random.choices(segmentations, cum_weights=bounds)[0]

    def _find_likeliest(self, word: str, alpha: float) -> tuple[list[list[int]], list[float]]:
        """The segmentations, and their cumulative weights."""
        segmentations = self._processor.nbest_encode_as_ids(word.removeprefix("▁"), LIKELIEST) or [self._ids_of(word)]
        scores = [alpha * sum(map(self._processor.get_score, ids)) for ids in segmentations]
        return segmentations, list(accumulate(math.exp(score - max(scores)) for score in scores))
