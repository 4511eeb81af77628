"""Packed batches: several sentences share a row, one after the other, so that hardly any place is padding. A mask keeps
attention within a sentence, and positions are counted from each sentence's own beginning."""

from dataclasses import dataclass
from typing import Self

from torch import Tensor


@dataclass(frozen=True)
class Packed:
    """One side of a batch, source or target. The tensors are integers, (rows, length). The two sides of a pair have the
    same row and the same number in it."""

    ids: Tensor
    sentences: Tensor
    """The number of each place's sentence in its row, from 1; 0: padding."""
    positions: Tensor
    """The place of each token in its sentence, from 0."""
    longest: int
    """Tokens of the longest sentence."""

    def visible_to(self, queries: Self) -> Tensor:
        """The mask of attention from `queries` to these keys: each place sees those of its own sentence.
        -> (rows, 1, query, key)

        Padding sees everything: what it holds has no meaning, and no query is left without a key.
        """
        query, key = queries.sentences[:, None, :, None], self.sentences[:, None, None, :]
        return (query == key) | (query == 0)
