"""Greedy search and sampling over an `Engine`, on ids alone: one hypothesis for each sentence, token by token."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from headway.decoding.constraints import Constraints
from headway.decoding.engine import BLOCK, Engine, likeliest, read, rows_to_keep, tensor_on, without_end
from headway.decoding.options import Sampling
from headway.decoding.searcher import Hypothesis

FEW = 256
"""Tokens among which a nucleus is looked for first on CPU, where sorting a vocabulary takes most of a step."""


def greedy(
    engine: Engine, source: Tensor, max_lengths: Sequence[int], constraints: Constraints | None = None
) -> list[Hypothesis]:
    """Takes the most likely token at each step, until <eos> or until a sentence has reached its max_length. No
    translation is empty.

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
        device = log_probabilities.device
        wide = np.float32 if device.type == "mps" else np.float64  # mps has no double precision
        chances = np.array([[generators[sentence].random()] for sentence in sentences], dtype=wide)
        return draw_tokens(log_probabilities, tensor_on(device, chances), sampling)

    return _extend(engine, source, max_lengths, constraints, draw)


def draw_tokens(log_probabilities: Tensor, chances: Tensor, sampling: Sampling) -> Tensor:
    """log_probabilities: (rows, vocabulary), chances: (rows, 1) uniform in [0, 1), of the type in which weights are
    added up -> tokens (rows,)"""
    weights = (log_probabilities - log_probabilities.amax(-1, keepdim=True)).div_(sampling.temperature).exp_()
    if not sampling.top_k and sampling.top_p == 1.0:
        return _drawn(weights, chances)
    vocabulary, is_cpu = weights.size(1), weights.is_cpu
    most = sampling.top_p * weights.sum(-1, keepdim=True, dtype=chances.dtype)  # (rows, 1)
    count = sampling.top_k or (FEW if is_cpu else vocabulary)
    ranked, tokens = likeliest(weights, min(count, vocabulary))
    drawn = _drawn_of_ranked(ranked, tokens, chances, most)
    if is_cpu and not sampling.top_k and (wide := ranked.sum(-1, dtype=chances.dtype) < most[:, 0]).any():
        drawn[wide] = _drawn_of_ranked(*weights[wide].sort(descending=True), chances[wide], most[wide])
    return drawn


def _drawn_of_ranked(ranked: Tensor, tokens: Tensor, chances: Tensor, most: Tensor) -> Tensor:
    """One of each row's tokens, of those that together just have the weight `most`. ranked: their weights, highest
    first, (rows, count) as tokens."""
    ranked = ranked.to(chances.dtype)
    before = ranked.cumsum(-1) - ranked
    ends = ranked.masked_fill(before >= most, 0.0).cumsum(-1)
    return tokens.gather(1, _place(ends, chances * ends[:, -1:]))[:, 0]


def _drawn(weights: Tensor, chances: Tensor) -> Tensor:
    """The place of one drawn in each row: (rows, places), (rows, 1) -> (rows,). First a block of places is drawn, so
    that few numbers are added up one after another."""
    blocks = F.pad(weights, (0, -weights.size(1) % BLOCK)).unflatten(1, (-1, BLOCK))  # (rows, blocks, BLOCK)
    ends = blocks.sum(-1).to(chances.dtype).cumsum(-1)  # (rows, blocks)
    point = chances * ends[:, -1:]
    block = _place(ends, point)
    inside = blocks.gather(1, block[..., None].expand(-1, -1, BLOCK))[:, 0].to(chances.dtype).cumsum(-1)
    before = ends.gather(1, block) - inside[:, -1:]  # (rows, 1)
    return (block * BLOCK + _place(inside, (point - before).clamp(min=0.0)))[:, 0]


def _place(ends: Tensor, point: Tensor) -> Tensor:
    """The first place of each row whose end is beyond the point, but none of weight 0: (rows, places), (rows, 1)
    -> (rows, 1)."""
    return (ends <= point).sum(-1, keepdim=True).minimum(ends.argmax(-1, keepdim=True))


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
        before, unfinished, ends = unfinished, [], list[float]()
        for row in before:
            hypothesis = hypotheses[running[row]]
            if ids[row] == engine.eos_id:
                hypothesis.score, hypothesis.stopped = hypothesis.score + scores[row], "eos"
            elif len(hypothesis.ids) < max_lengths[running[row]]:
                hypothesis.score += scores[row]
                hypothesis.ids.append(ids[row])
                unfinished.append(row)
            else:
                ends = ends or log_probabilities[:, engine.eos_id].tolist()
                hypothesis.score += ends[row]
        kept = rows_to_keep(unfinished, len(running))
        if len(kept) < len(running):
            running = [running[row] for row in kept]
            rows = tensor_on(source.device, np.array(kept, dtype=np.int64))
            tokens, unfinished = tokens[rows], list(range(len(unfinished)))
            engine.select(state, rows[:, None])
    return hypotheses
