"""Beam search over an `Engine`, on ids alone, with the length penalty of GNMT (Wu et al., 2016, equation 14)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from torch import Tensor

from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, likeliest, read, rows_to_keep, tensor_on, without_end
from headway.decoding.searcher import Hypothesis, length_penalty, normalized_score, ranked


@dataclass(frozen=True)
class BeamStep:
    """The candidates of one step, best first: at most twice the beam size, and of each hypothesis at most one more than
    the beam size."""

    sentences: np.ndarray
    """The sentence of the batch that each row is about. (sentences,)"""
    places: np.ndarray
    """The hypothesis that each candidate extends, as its place in the previous beam. (sentences, candidates)"""
    tokens: np.ndarray
    """(sentences, candidates)"""
    scores: np.ndarray
    """Total log-probabilities; -inf for a candidate that doesn't exist. (sentences, candidates)"""
    ended: np.ndarray
    """Whether the candidate is finished. (sentences, candidates)"""
    kept: np.ndarray
    """Its place in the beam after this step; -1 if it is dropped or finished. (sentences, candidates)"""


BeamWatch = Callable[[BeamStep], None]


@dataclass
class Continuations:
    """The candidates of a step, in the order of choice."""

    places: np.ndarray
    """The place of the hypothesis that each extends. (sentences, candidates)"""
    tokens: np.ndarray
    """(sentences, candidates)"""
    scores: np.ndarray
    """Total log-probabilities; -inf where there is no such continuation. (sentences, candidates)"""
    phrases: np.ndarray | None = None
    """The required phrase whose next token each is, or -1. (sentences, candidates)"""


@dataclass
class Beams:
    """Unfinished hypotheses, `width` places for each sentence; rows of the engine are (sentence, place). The arrays are
    small, and Python reads them at every step, so they are numpy's."""

    sentences: np.ndarray
    """The unfinished sentences, as their numbers in the batch. (sentences,)"""
    tokens: np.ndarray
    """(sentences, width, length), <bos> first."""
    scores: np.ndarray
    """Total log-probabilities; -inf where a place is empty. (sentences, width)"""

    @property
    def length(self) -> int:
        """Tokens of each hypothesis, without <bos>."""
        return self.tokens.shape[2] - 1

    def keep(self, kept: list[int]) -> Self:
        """The hypotheses of some of the sentences."""
        return replace(self, sentences=self.sentences[kept], tokens=self.tokens[kept], scores=self.scores[kept])

    def mask_finished(self, kept: list[int]) -> None:
        """Empties the places of all other sentences."""
        self.scores[np.delete(np.arange(len(self.scores)), kept)] = -np.inf

    def upper_bound(self) -> np.ndarray:
        """The upper bound of the final score of each sentence's hypotheses. (sentences,)"""
        return self.scores.max(axis=1)

    def continuations(self, log_probabilities: Tensor, beam_size: int) -> Continuations:
        """The likeliest of each sentence, best first, at most twice the beam size: half of them may be <eos>.
        log_probabilities: (sentences * width, vocabulary)"""
        sentences = len(self.sentences)
        candidates = min(beam_size + 1, log_probabilities.size(1))  # of each row: one of them may be <eos>
        values, ids = (found.reshape(sentences, -1) for found in read(*likeliest(log_probabilities, candidates)))
        totals = self.scores.repeat(candidates, axis=1) + values  # (sentences, width * candidates)
        order = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * beam_size]
        each = np.arange(sentences)[:, None]
        return Continuations(order // candidates, ids[each, order], totals[each, order])

    def extended(self, chosen: Continuations, ranks: np.ndarray, scores: np.ndarray) -> Self:
        """The hypotheses with a token more. ranks: the chosen continuations, with their scores, (sentences, width)."""
        each = np.arange(len(self.sentences))[:, None]
        history = self.tokens[each, chosen.places[each, ranks]]
        tokens = np.concatenate([history, chosen.tokens[each, ranks][:, :, None]], axis=2)
        return replace(self, tokens=tokens, scores=scores)


@dataclass
class FinishedHypotheses:
    """The finished hypotheses of one sentence."""

    beam_size: int
    n_best: int
    alpha: float
    cap: int
    hypotheses: list[Hypothesis] = field(default_factory=list)
    leader_ended: bool = False

    def add(self, hypothesis: Hypothesis, *, leads: bool = False) -> None:
        """Adds a hypothesis unless it is there already. leads: it was the best candidate of its step."""
        self.leader_ended |= leads
        if all(other.ids != hypothesis.ids for other in self.hypotheses):
            self.hypotheses.append(hypothesis)

    def ranked(self) -> list[Hypothesis]:
        """The n best, best first."""
        return ranked(self.hypotheses, self.beam_size, self.alpha)[: self.n_best]

    def wants_more(self, score: float) -> bool:
        """Whether the search must continue with hypotheses, the best of which has this score. It only falls, so at best
        it is divided by the penalty of the longest translation. Without a leader among the finished, all may be bad."""
        if len(self.hypotheses) >= self.beam_size and self.leader_ended:
            return False
        if len(self.hypotheses) < self.n_best:
            return score > -math.inf
        reachable = score / length_penalty(self.cap + 1, self.alpha)
        return reachable > normalized_score(self.ranked()[-1], self.alpha)


def beam_search(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    *,
    beam_size: int,
    n_best: int = 1,
    alpha: float = 0.0,
    constraints: Constraints | None = None,
    beams: Beams | None = None,
    watch: BeamWatch | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence, best first, or fewer if there are no more. No hypothesis is empty.

    source: (batch, source length), padded and with <eos>. Each step keeps the `beam_size` most likely continuations of
    a sentence; a continuation with <eos> is finished. The search for a sentence ends when `beam_size` hypotheses are
    finished, one of them as the best candidate of its step (CTranslate2's rule without a length penalty), when no
    unfinished one can become one of the `n_best`, or at the sentence's max_length, where only <eos> may follow,
    whatever its probability. `beams`: where the search starts, of `ConstrainedBeams` for translations that must have
    phrases; a sentence has no hypothesis if its max_length leaves no room for them. `watch` is called with the
    candidates of every step.
    """
    batch = source.size(0)
    finished = [FinishedHypotheses(beam_size, n_best, alpha, cap) for cap in max_lengths]
    state = engine.start(source)
    beams = beams or Beams(np.arange(batch), np.full((batch, 1, 1), engine.bos_id), np.zeros((batch, 1)))
    while True:
        tokens = tensor_on(source.device, beams.tokens).flatten(0, 1)  # (sentences * width, length)
        log_probabilities = engine.step(state, tokens[:, -1])  # (sentences * width, vocabulary)
        if beams.length == 0:
            log_probabilities = without_end(log_probabilities, engine.eos_id)
        if constraints is not None:
            sentences = beams.sentences.repeat(beams.scores.shape[1]).tolist()  # (sentences * width,)
            log_probabilities = constraints.apply(log_probabilities, tokens, sentences)
        before = beams
        beams, rows = _advance(before, log_probabilities, engine.eos_id, beam_size, finished, watch)
        kept, of_end = list[int](), None
        for i, best in enumerate(beams.upper_bound().tolist()):
            ended = finished[beams.sentences[i]]
            if not ended.wants_more(best):
                continue
            if before.length < ended.cap:
                kept.append(i)
                continue
            if of_end is None:
                of_end = log_probabilities[:, engine.eos_id].cpu().numpy().reshape(before.scores.shape)
            scores = before.scores[i] + of_end[i]  # (width,)
            for place in np.flatnonzero(np.isfinite(scores)):  # <eos> ends each hypothesis, whatever its probability
                ids = before.tokens[i, place, 1:].tolist()
                ended.add(Hypothesis(ids, float(scores[place]), "max_length"))
        if not kept:
            return [hypotheses.ranked() for hypotheses in finished]
        beams.mask_finished(kept)
        staying = rows_to_keep(kept, len(rows))
        beams, rows = beams.keep(staying), rows[staying]
        engine.select(state, tensor_on(source.device, rows))


def _advance(
    beams: Beams,
    log_probabilities: Tensor,
    eos_id: int,
    beam_size: int,
    finished: list[FinishedHypotheses],
    watch: BeamWatch | None,
) -> tuple[Beams, np.ndarray]:
    """Extends all hypotheses by a token. Returns the new beams and the row that each place came from."""
    found = beams.continuations(log_probabilities, beam_size)
    ends = found.tokens == eos_id
    for i, rank in zip(*np.nonzero(ends[:, :beam_size] & np.isfinite(found.scores[:, :beam_size])), strict=True):
        history = beams.tokens[i, found.places[i, rank], 1:].tolist()
        hypothesis = Hypothesis(history, float(found.scores[i, rank]), "eos")
        finished[beams.sentences[i]].add(hypothesis, leads=rank == 0)
    others = np.argsort(ends, axis=1, kind="stable")[:, :beam_size]  # in the order of choice
    if watch is not None:
        there, kept = np.isfinite(found.scores), np.full(ends.shape, -1)
        np.put_along_axis(kept, others, np.arange(others.shape[1])[None], 1)
        ended = ends & there & (np.arange(ends.shape[1]) < others.shape[1])
        kept = np.where(there & ~ends, kept, -1)
        watch(BeamStep(beams.sentences, found.places, found.tokens, found.scores, ended, kept))
    sentences, width = beams.scores.shape
    each = np.arange(sentences)[:, None]
    scores = np.where(ends, -np.inf, found.scores)[each, others]
    return beams.extended(found, others, scores), found.places[each, others] + each * width
