"""Does an attribution say what the model needs? The tokens that it names first are deleted first.

A deletion curve (Samek et al. 2017, "Evaluating the Visualization of What a Deep Neural Network Has Learned"; DeYoung
et al. 2020, "ERASER", call its mean comprehensiveness): for each token of the translation the tokens of the source are
erased in the order in which the attribution ranks them, and the probability of the token is read again and again. The
faster it falls the better the ranking. A random order says how fast it falls by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.insight.analyses.reading import Reading, hidden_without
from headway.insight.maps import Floats
from headway.model import Transformer

POINTS = 10
"""Of a curve, without its beginning; fewer for a source of fewer tokens."""
RANDOM_ORDERS = 4


@dataclass(frozen=True)
class DeletionCurves:
    """For each attribution, and for `random`."""

    curves: dict[str, list[float]]
    """A mean over the tokens of the translation, at each point."""
    areas: dict[str, float]
    """The mean of the points after the first. An attribution is faithful where its area is below that of `random`."""


@dataclass(frozen=True)
class Faithfulness:
    """What is left of the translation while the source is deleted."""

    erased: list[int]
    """How many tokens of the source are erased at each point, from 0 to all but <eos>."""
    probability: DeletionCurves
    """Of the translation's tokens."""
    against_foil: DeletionCurves
    """p(token) / (p(token) + p(foil)): what a contrastive explanation explains. The foils are those of `contrast`."""


@torch.inference_mode()
def faithfulness(
    model: Transformer, reading: Reading, attributions: Mapping[str, Floats], foils: Sequence[int], seed: int = 1
) -> Faithfulness:
    """attributions: by name, each (target, source): what is most needed is largest; <eos>, the last column, is never
    deleted. foils: an id for each step."""
    words, steps = reading.words, len(reading.given)
    counts = sorted({round(share * words / POINTS) for share in range(POINTS + 1)})
    pairs = torch.stack([reading.given, reading.given.new_tensor(list(foils))], dim=1)  # (target, 2)
    orders = {name: [np.argsort(-one[:, :words], axis=1, kind="stable")] for name, one in attributions.items()}
    generator = np.random.default_rng(seed)
    every = np.tile(np.arange(words), (steps, 1))  # (target, words)
    orders["random"] = [generator.permuted(every, axis=1) for _ in range(RANDOM_ORDERS)]
    found = {
        name: np.mean([_curves(model, reading, order, counts, pairs) for order in some], axis=0)
        for name, some in orders.items()
    }
    return Faithfulness(counts, *(_summed({name: one[kind] for name, one in found.items()}) for kind in (0, 1)))


def _summed(curves: Mapping[str, NDArray[np.float64]]) -> DeletionCurves:
    return DeletionCurves(
        {name: curve.tolist() for name, curve in curves.items()},
        {name: float(curve[1:].mean() if len(curve) > 1 else curve[0]) for name, curve in curves.items()},
    )


def _curves(
    model: Transformer, reading: Reading, order: NDArray[np.intp], counts: Sequence[int], pairs: Tensor
) -> NDArray[np.float64]:
    """The mean probability of the tokens, and against their foils. order: for each step the source's tokens, first to
    be deleted first, (target, words); pairs: tokens and foils, (target, 2) -> (2, points)"""
    steps, words = order.shape
    rank = order.argsort(axis=1)  # of each token in its step's order
    erased = np.zeros((len(counts), steps, words + 1), dtype=bool)
    for point, count in enumerate(counts):
        erased[point, :, :words] = rank < count
    rows = torch.from_numpy(erased.reshape(-1, words + 1)).to(reading.source.device)
    hidden = hidden_without(model, reading, rows).unflatten(0, (len(counts), steps))
    own = hidden[:, range(steps), range(steps)]  # (points, target, d_model): step i of the row of step i
    both = model.output(own).softmax(dim=-1).gather(2, pairs.expand(len(counts), -1, -1))  # (points, target, 2)
    token = both[..., 0]
    return torch.stack([token, token / both.sum(dim=-1)]).double().mean(dim=2).cpu().numpy()
