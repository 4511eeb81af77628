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

from headway.insight.analyses.reading import Reading, hidden_without, nothing_erased, words_erased
from headway.insight.maps import Floats
from headway.model import Transformer

RANDOM_ORDERS = 3


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
    """How many tokens of the source are erased at each point: 0, 1, 2, 4, 8, ... and all but <eos>."""
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
    words = reading.words
    counts = [0, *(1 << power for power in range(words.bit_length()) if 1 << power < words), words]
    pairs = torch.stack([reading.given, reading.given.new_tensor(list(foils))], dim=1)  # (target, 2)
    orders = {name: [np.argsort(-one[:, :words], axis=1, kind="stable")] for name, one in attributions.items()}
    generator = np.random.default_rng(seed)
    every = np.tile(np.arange(words), (len(pairs), 1))  # (target, words)
    orders["random"] = [generator.permuted(every, axis=1) for _ in range(RANDOM_ORDERS)]
    ends = torch.cat([nothing_erased(reading), words_erased(reading)])  # the same in any order
    first, last = (_means(model, hidden, pairs) for hidden in hidden_without(model, reading, ends))
    found = {}
    for name, some in orders.items():
        between = [
            np.mean([_mean_without(model, reading, order, count, pairs) for order in some], axis=0)
            for count in counts[1:-1]
        ]
        found[name] = np.stack([first, *between, last])  # (points, 2)
    return Faithfulness(counts, *(_curves({name: one[:, kind] for name, one in found.items()}) for kind in (0, 1)))


def _curves(found: Mapping[str, NDArray[np.float64]]) -> DeletionCurves:
    return DeletionCurves(
        {name: curve.tolist() for name, curve in found.items()},
        {name: float(curve[1:].mean()) for name, curve in found.items()},
    )


def _mean_without(
    model: Transformer, reading: Reading, order: NDArray[np.intp], count: int, pairs: Tensor
) -> NDArray[np.float64]:
    """`_means` with the first `count` tokens of the source erased. order: for each step the source's tokens, first to
    be deleted first, (target, words)"""
    erased = np.zeros((len(order), len(reading.source)), dtype=bool)  # row i is for step i
    np.put_along_axis(erased, order[:, :count], True, axis=1)
    hidden = hidden_without(model, reading, torch.from_numpy(erased).to(reading.source.device))
    steps = range(len(order))
    return _means(model, hidden[steps, steps], pairs)


def _means(model: Transformer, hidden: Tensor, pairs: Tensor) -> NDArray[np.float64]:
    """The mean probability of the tokens, and that against their foils. hidden: (target, d_model); pairs: tokens and
    foils, (target, 2) -> (2,)"""
    both = model.output(hidden).softmax(dim=-1).gather(1, pairs)
    shares = torch.stack([both[:, 0], both[:, 0] / both.sum(dim=1)], dim=1).cpu()  # where there is double precision
    return shares.double().mean(dim=0).numpy()
