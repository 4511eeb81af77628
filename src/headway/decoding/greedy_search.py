"""Greedy search and sampling over an `Engine`, on ids alone: one hypothesis for each sentence, token by token."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, likeliest, read, rows_to_keep, without_end
from headway.decoding.options import Sampling
from headway.decoding.searcher import Hypothesis


def greedy(
    engine: Engine, source: Tensor, max_lengths: Sequence[int], constraints: Constraints | None = None
) -> list[Hypothesis]:
    """Takes the most likely token at each step, until <eos> or until a sentence has reached its max_length. None is
    empty.

    source: (batch, source length), padded and with <eos>. A finished sentence leaves the batch.
    """
    return _extend(engine, source, max_lengths, constraints, lambda values, _: likeliest(values, 1)[1][:, 0])


def sample(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    sampling: Sampling,
    generators: Sequence[np.random.Generator],
    constraints: Constraints | None = None,
) -> list[Hypothesis]:
    """Like `greedy`, but each token is sampled. Scores are those of the model, whatever the temperature.

    generators: one per sentence, so that a sample doesn't depend on the rest of the batch.
    """

    def draw(log_probabilities: Tensor, sentences: Sequence[int]) -> Tensor:
        chances = torch.tensor([[generators[sentence].random()] for sentence in sentences], dtype=torch.float64)
        device = log_probabilities.device
        place = torch.device("cpu") if device.type == "mps" else device  # it has no double precision
        return draw_tokens(log_probabilities.to(place), chances.to(place), sampling).to(device)

    return _extend(engine, source, max_lengths, constraints, draw)


def draw_tokens(log_probabilities: Tensor, chances: Tensor, sampling: Sampling) -> Tensor:
    """log_probabilities: (rows, vocabulary), chances: (rows, 1) uniform in [0, 1) -> tokens (rows,). On a device
    with numbers of double precision, which sums over a vocabulary need."""
    logarithms = (log_probabilities / sampling.temperature).log_softmax(-1)
    if not sampling.top_k and sampling.top_p == 1.0:
        return _drawn(logarithms.double().exp(), chances)
    ranked, tokens = logarithms.sort(dim=-1, descending=True)
    probabilities = ranked.double().exp()  # (rows, vocabulary), likeliest first
    if sampling.top_k:
        probabilities[:, sampling.top_k :] = 0.0
    before = probabilities.cumsum(-1) - probabilities
    probabilities = probabilities.masked_fill(before >= sampling.top_p, 0.0)
    return tokens.gather(1, _drawn(probabilities, chances)[:, None])[:, 0]


def _drawn(probabilities: Tensor, chances: Tensor) -> Tensor:
    """The place of one drawn in each row of weights: (rows, places), (rows, 1) -> (rows,). Never one of weight 0."""
    totals = probabilities.cumsum(-1)
    places = torch.searchsorted(totals, chances.double() * totals[:, -1:], right=True)  # (rows, 1)
    return places.minimum(totals.argmax(-1, keepdim=True))[:, 0]


def _extend(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    constraints: Constraints | None,
    choose: Callable[[Tensor, Sequence[int]], Tensor],
) -> list[Hypothesis]:
    """Adds to each row the token that `choose` takes from log-probabilities (rows, vocabulary) and sentences."""
    state = engine.start(source)
    hypotheses = [Hypothesis([], 0.0, "max_length") for _ in max_lengths]
    running = list(range(len(hypotheses)))  # the sentence of each row
    unfinished = list(running)  # rows
    tokens = torch.full((len(running), 1), engine.bos_id, device=source.device)  # (rows, length)
    while unfinished:
        log_probabilities = engine.step(state, tokens[:, -1])  # (rows, vocabulary)
        if tokens.size(1) == 1:
            log_probabilities = without_end(log_probabilities, engine.eos_id)
        if constraints is not None:
            log_probabilities = constraints.apply(log_probabilities, tokens, running)
        chosen = choose(log_probabilities, running)[:, None]  # (rows, 1)
        scores, ids = (found[:, 0].tolist() for found in read(log_probabilities.gather(1, chosen), chosen))
        tokens = torch.cat([tokens, chosen], dim=1)
        before, unfinished = unfinished, []
        for row in before:
            hypothesis = hypotheses[running[row]]
            if ids[row] == engine.eos_id:
                hypothesis.score, hypothesis.stopped = hypothesis.score + scores[row], "eos"
            elif len(hypothesis.ids) < max_lengths[running[row]]:
                hypothesis.score += scores[row]
                hypothesis.ids.append(ids[row])
                unfinished.append(row)
            else:
                hypothesis.score += log_probabilities[row, engine.eos_id].item()
        kept = rows_to_keep(unfinished, len(running))
        if len(kept) < len(running):
            running = [running[row] for row in kept]
            rows = torch.tensor(kept, dtype=torch.long, device=source.device)
            tokens, unfinished = tokens[rows], list(range(len(unfinished)))
            engine.select(state, rows[:, None])
    return hypotheses
