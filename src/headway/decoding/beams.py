"""The hypotheses in the making, and what they may go on with. `constrained_beams` has those that must have phrases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from headway.kernels.likeliest import likeliest


@dataclass
class Continuations:
    """What a step has to choose from, in the order of choice."""

    places: np.ndarray
    """The place of the hypothesis that each goes on from. (sentences, candidates)"""
    tokens: np.ndarray
    """(sentences, candidates)"""
    scores: np.ndarray
    """Total log-probabilities; -inf where there is no such continuation. (sentences, candidates)"""


@dataclass
class Beams:
    """The hypotheses in the making, `width` places for each sentence; rows of the engine are (sentence, place). They
    are arrays of numpy: small, and looked at by Python at every step."""

    sentences: np.ndarray
    """Which sentence of the batch each belongs to; those that are done have left. (sentences,)"""
    tokens: np.ndarray
    """(sentences, width, length), <bos> first."""
    scores: np.ndarray
    """Total log-probabilities; -inf where a place is empty. (sentences, width)"""

    @property
    def length(self) -> int:
        """Tokens that each has, without <bos>."""
        return self.tokens.shape[2] - 1

    def sentence_of_row(self) -> list[int]:
        return self.sentences.repeat(self.scores.shape[1]).tolist()

    def keep(self, kept: list[int]) -> Beams:
        """Those of some of the sentences."""
        return Beams(self.sentences[kept], self.tokens[kept], self.scores[kept])

    def give_up(self, kept: list[int]) -> None:
        """Empties the places of all other sentences."""
        others = np.ones(len(self.sentences), dtype=bool)
        others[kept] = False
        self.scores[others] = -np.inf

    def promise(self) -> np.ndarray:
        """What the total log-probability of each sentence's hypotheses will be at best. (sentences,)"""
        return self.scores.max(axis=1)

    def continuations(self, log_probabilities: Tensor, beam_size: int) -> Continuations:
        """The likeliest of each sentence, best first, up to twice as many as the beam is wide: half of them may be
        <eos>. log_probabilities: (sentences * width, vocabulary)"""
        sentences = len(self.sentences)
        candidates = min(beam_size + 1, log_probabilities.size(1))  # of each row: one of them may be <eos>
        values, ids = (found.cpu().numpy().reshape(sentences, -1) for found in likeliest(log_probabilities, candidates))
        totals = self.scores.repeat(candidates, axis=1) + values  # (sentences, width * candidates)
        order = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * beam_size]
        each = np.arange(sentences)[:, None]
        return Continuations(order // candidates, ids[each, order], totals[each, order])

    def extended(self, chosen: Continuations, ranks: np.ndarray, scores: np.ndarray) -> Beams:
        """One token further. ranks: which of the continuations go on, (sentences, width); scores: theirs."""
        return Beams(self.sentences, self._extended_tokens(chosen, ranks), scores)

    def _extended_tokens(self, chosen: Continuations, ranks: np.ndarray) -> np.ndarray:
        each = np.arange(len(self.sentences))[:, None]
        history = self.tokens[each, chosen.places[each, ranks]]
        return np.concatenate([history, chosen.tokens[each, ranks][:, :, None]], axis=2)
