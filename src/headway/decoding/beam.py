"""Beam search over an `Engine`, on ids alone, with the length penalty of GNMT (Wu et al., 2016, equation 14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.decoding.constraints import FREE, Constraints
from headway.decoding.engine import Engine
from headway.decoding.search import Hypothesis


@dataclass
class Beams:
    """The hypotheses in the making, `beam` places for each sentence; rows of the engine are (sentence, place)."""

    sentences: list[int]
    """Which sentence of the batch each belongs to; those that are done have left."""
    tokens: Tensor
    """(sentences, beam, length), <bos> first."""
    scores: Tensor
    """(sentences, beam) total log-probabilities, best first; -inf where a place is empty."""


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6) ** alpha; a hypothesis is ranked by its score divided by this. |Y| counts <eos>."""
    return ((5.0 + length) / 6.0) ** alpha


def beam_search(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    *,
    beam_size: int,
    alpha: float = 0.0,
    constraints: Constraints = FREE,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each sentence, best first, at most `beam_size` of them.

    source: (batch, source length), padded and with <eos>. At each step the `beam_size` likeliest continuations of a
    sentence go on; one that is <eos> is finished. A sentence is done when `beam_size` hypotheses are finished, or when
    they have its max_length of tokens: then <eos> is all that may follow, whatever its probability.
    """
    batch = source.size(0)
    finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
    state = engine.start(source)
    beams = Beams(
        sentences=list(range(batch)),
        tokens=torch.full((batch, 1, 1), engine.bos_id, device=source.device),
        scores=torch.zeros(batch, 1, device=source.device),
    )
    while beams.sentences:
        rows_tokens = beams.tokens.flatten(0, 1)  # (sentences * beam, length)
        row_sentences = [sentence for sentence in beams.sentences for _ in range(beams.tokens.size(1))]
        log_probabilities = engine.step(state, rows_tokens[:, -1])  # (sentences * beam, vocabulary)
        log_probabilities = constraints.apply(log_probabilities, rows_tokens, row_sentences)
        ending = _ending(beams, log_probabilities, engine.eos_id)
        beams, rows = _advance(beams, log_probabilities, engine.eos_id, beam_size, finished)
        going_on = _end_sentences(ending, beams, beam_size, max_lengths, finished)
        beams, rows = _keep(beams, rows, going_on)
        engine.select(state, rows)
    return [_ranked(hypotheses, alpha)[:beam_size] for hypotheses in finished]


def _ending(beams: Beams, log_probabilities: Tensor, eos_id: int) -> Beams:
    """The same hypotheses, each as it were if <eos> came next."""
    return Beams(beams.sentences, beams.tokens, beams.scores + log_probabilities[:, eos_id].view_as(beams.scores))


def _advance(
    beams: Beams, log_probabilities: Tensor, eos_id: int, beam_size: int, finished: list[list[Hypothesis]]
) -> tuple[Beams, Tensor]:
    """One token further. Returns the new beams and the row that each of their places came from, (sentences, beam)."""
    sentences, width = beams.scores.shape
    vocabulary = log_probabilities.size(-1)
    totals = (beams.scores[:, :, None] + log_probabilities.view(sentences, width, vocabulary)).flatten(1)
    scores, flat = totals.topk(min(2 * beam_size, totals.size(1)))  # as many as may be <eos>, and as many again
    places, tokens = flat // vocabulary, flat % vocabulary  # (sentences, candidates)
    ends = tokens == eos_id
    for i, rank in (ends[:, :beam_size] & scores[:, :beam_size].isfinite()).nonzero().tolist():
        ids = beams.tokens[i, places[i, rank], 1:].tolist()
        finished[beams.sentences[i]].append(Hypothesis(ids, scores[i, rank].item(), "eos"))
    order = ends.long().argsort(dim=1, stable=True)[:, :beam_size]  # the others, best first
    places, tokens = places.gather(1, order), tokens.gather(1, order)
    scores = scores.masked_fill(ends, -torch.inf).gather(1, order)
    history = beams.tokens.gather(1, places[:, :, None].expand(-1, -1, beams.tokens.size(2)))
    rows = places + torch.arange(sentences, device=places.device)[:, None] * width
    return Beams(beams.sentences, torch.cat([history, tokens[:, :, None]], dim=2), scores), rows


def _end_sentences(
    ending: Beams, beams: Beams, beam_size: int, max_lengths: Sequence[int], finished: list[list[Hypothesis]]
) -> list[int]:
    """The indices of the sentences that go on. Those that were at their cap before this step take <eos> in place of the
    token that it gave."""
    going_on = []
    length = ending.tokens.size(2) - 1
    alive = beams.scores[:, 0].isfinite().tolist()
    for i, sentence in enumerate(beams.sentences):
        if len(finished[sentence]) >= beam_size or not alive[i]:
            continue
        if length < max_lengths[sentence]:
            going_on.append(i)
            continue
        ended = [hypothesis.ids for hypothesis in finished[sentence]]
        for place in ending.scores[i].isfinite().nonzero().flatten().tolist():
            ids = ending.tokens[i, place, 1:].tolist()
            if ids not in ended:
                finished[sentence].append(Hypothesis(ids, ending.scores[i, place].item(), "max_length"))
    return going_on


def _keep(beams: Beams, rows: Tensor, going_on: list[int]) -> tuple[Beams, Tensor]:
    kept = torch.tensor(going_on, dtype=torch.long, device=rows.device)
    sentences = [beams.sentences[i] for i in going_on]
    return Beams(sentences, beams.tokens[kept], beams.scores[kept]), rows[kept]


def _ranked(hypotheses: list[Hypothesis], alpha: float) -> list[Hypothesis]:
    def worth(hypothesis: Hypothesis) -> float:
        return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)

    return sorted(hypotheses, key=worth, reverse=True)
