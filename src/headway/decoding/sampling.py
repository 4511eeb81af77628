"""Sampling over an `Engine`: each token is drawn by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine
from headway.decoding.greedy_search import extend
from headway.decoding.options import Sampling
from headway.decoding.searcher import Hypothesis


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
        return draw_tokens(log_probabilities.cpu(), chances, sampling).to(log_probabilities.device)

    return extend(engine, source, max_lengths, constraints, draw)


def draw_tokens(log_probabilities: Tensor, chances: Tensor, sampling: Sampling) -> Tensor:
    """log_probabilities: (rows, vocabulary), chances: (rows, 1) uniform in [0, 1) -> tokens (rows,). On CPU: not every
    device has numbers of double precision, which sums over a vocabulary need."""
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
