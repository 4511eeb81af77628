"""Does an attribution say what the model needs? The tokens that it names first are deleted first.

A deletion curve (Samek et al. 2017, "Evaluating the Visualization of What a Deep Neural Network Has Learned"; DeYoung et
al. 2020, "ERASER", call its mean comprehensiveness): for each token of the translation the tokens of the source are
erased in the order in which the attribution ranks them, and the probability of the token is read again and again. The
faster it falls the better the ranking. A random order says how fast it falls by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headway.insight.analyses.reading import Reading, hidden_without
from headway.insight.maps import Floats
from headway.model import Transformer

POINTS = 10
"""Of a curve, without its beginning; fewer for a source of fewer tokens."""
RANDOM_ORDERS = 4


@dataclass(frozen=True)
class Faithfulness:
    """Deletion curves: means over the tokens of the translation."""

    erased: list[int]
    """How many tokens of the source are erased at each point, from 0 to all but <eos>."""
    curves: dict[str, list[float]]
    """For each attribution, and `random`, the mean probability of the translation's tokens at each point."""
    areas: dict[str, float]
    """The mean of each curve's points after the first. An attribution is faithful where its area is below `random`'s."""


@torch.inference_mode()
def faithfulness(model: Transformer, reading: Reading, attributions: Mapping[str, Floats], seed: int = 1) -> Faithfulness:
    """attributions: by name, each (target, source): what is most needed is largest; <eos>, the last column, is never
    deleted."""
    words, steps = reading.words, len(reading.given)
    counts = sorted({round(share * words / POINTS) for share in range(POINTS + 1)})
    orders = {name: np.argsort(-one[:, :words], axis=1, kind="stable") for name, one in attributions.items()}
    curves = {name: _curve(model, reading, order, counts) for name, order in orders.items()}
    generator = np.random.default_rng(seed)
    shuffled = [generator.permuted(np.tile(np.arange(words), (steps, 1)), axis=1) for _ in range(RANDOM_ORDERS)]
    curves["random"] = np.mean([_curve(model, reading, order, counts) for order in shuffled], axis=0)
    return Faithfulness(
        counts,
        {name: curve.tolist() for name, curve in curves.items()},
        {name: float(curve[1:].mean()) if len(counts) > 1 else float(curve[0]) for name, curve in curves.items()},
    )


def _curve(
    model: Transformer, reading: Reading, order: NDArray[np.intp], counts: list[int]
) -> NDArray[np.float64]:
    """order: for each step the source's tokens, first to be deleted first, (target, words) -> (points,)"""
    steps, words = order.shape
    rank = order.argsort(axis=1)  # of each token in its step's order
    erased = np.zeros((len(counts), steps, words + 1), dtype=bool)
    for point, count in enumerate(counts):
        erased[point, :, :words] = rank < count
    rows = torch.from_numpy(erased.reshape(-1, words + 1)).to(reading.source.device)
    hidden = hidden_without(model, reading, rows).unflatten(0, (len(counts), steps))
    own = hidden[:, range(steps), range(steps)]  # (points, target, d_model): step i of the row of step i
    given = reading.given.expand(len(counts), -1)[..., None]
    probability = model.output(own).softmax(dim=-1).gather(2, given)[..., 0]  # (points, target)
    return probability.double().mean(dim=1).cpu().numpy()
