"""Search over an `Engine`, one token after the other, on ids alone: the likeliest each time, or one drawn by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from headway.decoding.constraints import FREE, Constraints
from headway.decoding.engine import Engine
from headway.decoding.options import Sampling

Stopped = Literal["eos", "max_length"]


@dataclass
class Hypothesis:
    """A translation as ids, without control ids."""

    ids: list[int]
    score: float
    """Total log-probability, that of <eos> included, also where the cap on its length ended it."""
    stopped: Stopped


def greedy(
    engine: Engine, source: Tensor, max_lengths: Sequence[int], constraints: Constraints = FREE
) -> list[Hypothesis]:
    """Takes the likeliest token at each step until <eos>, or until a sentence has its max_length of tokens and <eos>
    is not the next.

    source: (batch, source length), padded and with <eos>. A finished sentence leaves the batch.
    """
    return _extend(
        engine, source, max_lengths, constraints, lambda log_probabilities, _: likeliest(log_probabilities, 1)[1][:, 0]
    )


def sample(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    sampling: Sampling,
    generators: Sequence[np.random.Generator],
    constraints: Constraints = FREE,
) -> list[Hypothesis]:
    """As `greedy`, but each token is drawn by chance. Scores are those of the model, whatever the temperature.

    generators: one a sentence, so that what is drawn doesn't depend on the others of the batch.
    """

    def draw(log_probabilities: Tensor, sentences: Sequence[int]) -> Tensor:
        chances = torch.tensor([[generators[sentence].random()] for sentence in sentences], dtype=torch.float64)
        return draw_tokens(log_probabilities.cpu(), chances, sampling).to(log_probabilities.device)

    return _extend(engine, source, max_lengths, constraints, draw)


def draw_tokens(log_probabilities: Tensor, chances: Tensor, sampling: Sampling) -> Tensor:
    """log_probabilities: (rows, vocabulary), chances: (rows, 1) uniform in [0, 1) -> tokens (rows,). On CPU: not every
    device has numbers of double precision, which sums over a vocabulary need."""
    ranked, tokens = (log_probabilities / sampling.temperature).log_softmax(-1).sort(dim=-1, descending=True)
    probabilities = ranked.double().exp()  # (rows, vocabulary), likeliest first
    if sampling.top_k:
        probabilities[:, sampling.top_k :] = 0.0
    before = probabilities.cumsum(-1) - probabilities
    probabilities = probabilities.masked_fill(before >= sampling.top_p, 0.0)
    totals = probabilities.cumsum(-1)
    places = torch.searchsorted(totals, chances.double() * totals[:, -1:], right=True)  # (rows, 1)
    last = (probabilities > 0).sum(-1, keepdim=True) - 1
    return tokens.gather(1, places.minimum(last))[:, 0]


BLOCK = 64
"""Neighbours in a vocabulary of which only the best is looked at first."""


def likeliest(log_probabilities: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """As `torch.topk`: the largest values of each row, best first, and their ids; both (rows, count).

    Several times as fast on CPU: the `count` largest of a row are in the `count` blocks with the largest maxima, and
    maxima of whole blocks are cheap.
    """
    vocabulary = log_probabilities.size(1)
    blocks = vocabulary // BLOCK
    if blocks <= 2 * count:
        return log_probabilities.topk(count)
    maxima = log_probabilities[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK)).amax(dim=-1)  # (rows, blocks)
    within = torch.arange(BLOCK, device=maxima.device)
    ids = (maxima.topk(count)[1][:, :, None] * BLOCK + within).flatten(1)  # (rows, count * BLOCK)
    rest = torch.arange(blocks * BLOCK, vocabulary, device=maxima.device).expand(len(ids), -1)
    ids = torch.cat([ids, rest], dim=1)
    values, places = log_probabilities.gather(1, ids).topk(count)
    return values, ids.gather(1, places)


def _extend(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    constraints: Constraints,
    choose: Callable[[Tensor, Sequence[int]], Tensor],
) -> list[Hypothesis]:
    """Adds to each row the token that `choose` takes from log-probabilities (rows, vocabulary) and sentences."""
    state = engine.start(source)
    hypotheses = [Hypothesis([], 0.0, "max_length") for _ in max_lengths]
    running = list(range(len(hypotheses)))  # the sentence of each row
    going_on = list(running)  # the rows that are not at their end
    tokens = torch.full((len(running), 1), engine.bos_id, device=source.device)  # (rows, length)
    while going_on:
        log_probabilities = constraints.apply(engine.step(state, tokens[:, -1]), tokens, running)
        chosen = choose(log_probabilities, running)[:, None]  # (rows, 1)
        scores = log_probabilities.gather(1, chosen)
        tokens = torch.cat([tokens, chosen], dim=1)
        chosen_tokens, chosen_scores = chosen[:, 0].tolist(), scores[:, 0].tolist()
        before, going_on = going_on, []
        for row in before:
            hypothesis, token, score = hypotheses[running[row]], chosen_tokens[row], chosen_scores[row]
            if token == engine.eos_id:
                hypothesis.score, hypothesis.stopped = hypothesis.score + score, "eos"
            elif len(hypothesis.ids) < max_lengths[running[row]]:
                hypothesis.score += score
                hypothesis.ids.append(token)
                going_on.append(row)
            else:
                hypothesis.score += log_probabilities[row, engine.eos_id].item()
        staying = those_who_stay(going_on, len(running))
        if len(staying) < len(running):
            running = [running[row] for row in staying]
            rows = torch.tensor(staying, dtype=torch.long, device=source.device)
            tokens, going_on = tokens[rows], list(range(len(going_on)))
            engine.select(state, rows[:, None])
    return hypotheses


LOT = 4
"""The number of sentences in a batch is a multiple of this as long as it is more."""


def those_who_stay(going_on: Sequence[int], count: int) -> list[int]:
    """Which of `count` sentences stay in the batch: all, or those that go on, which then come first, and a few that are
    done. They leave some at a time and by lots, because each new number of rows costs: the state is copied, and oneDNN
    compiles its products anew, and keeps them."""
    spare = -len(going_on) % LOT
    if not going_on or count - len(going_on) <= max(count // 8, spare):
        return list(range(count))
    done = sorted(set(range(count)).difference(going_on))
    return [*going_on, *done[:spare]]
