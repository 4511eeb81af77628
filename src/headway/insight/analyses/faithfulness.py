"""Faithfulness: does an attribution say what the model needs?

Deletion curves (Samek et al. 2017, "Evaluating the Visualization of What a Deep Neural Network Has Learned"; DeYoung et
al. 2020, "ERASER", call their mean comprehensiveness): for each token of the translation the tokens of the source are
erased in the order of an attribution, and the probability of the token is read again and again. The faster it falls the
better the ranking. A random order is the baseline.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.insight.analyses.analysis import Analysis, Analyst, Request, TokenNames
from headway.insight.analyses.contrast import AskContrast
from headway.insight.analyses.contributions import AskContributions
from headway.insight.analyses.erasure import AskErasure
from headway.insight.analyses.reading import Reading, hidden_without
from headway.insight.maps import Floats, attention_names
from headway.insight.terminal import draw_table
from headway.model import Transformer

RANDOM_ORDERS = 3


@dataclass(frozen=True)
class DeletionCurves:
    """Curves of each attribution, and of `random`."""

    curves: dict[str, list[float]]
    """A mean over the tokens of the translation, at each point."""
    areas: dict[str, float]
    """The mean of the points after the first. An attribution is faithful if its area is below that of `random`."""


@dataclass(frozen=True)
class Faithfulness(Analysis):
    """The probability of the translation while the source is deleted."""

    erased: list[int]
    """Number of source tokens that are erased at each point: 0, 1, 2, 4, 8, ... and all but <eos>."""
    probability: DeletionCurves
    """p(token) of the translation."""
    against_foil: DeletionCurves
    """p(token) / (p(token) + p(foil)), which a contrastive explanation explains. The foils are those of `contrast`."""

    def text(self, names: TokenNames) -> Iterator[str]:
        rows = [["", "probability", "against foil"]]
        for name, area in self.probability.areas.items():
            rows.append([name, f"{area:.3f}", f"{self.against_foil.areas[name]:.3f}"])
        yield f"faithfulness: area below the deletion curve; the smaller, the more faithful\n\n{draw_table(rows)}"


class AskFaithfulness(Request):
    """Deletion curves of the attention, the mean of all layers and heads, and of every attribution."""

    kind: Literal["faithfulness"] = "faithfulness"

    def compute(self, analyst: Analyst) -> Faithfulness:
        contrast = analyst.result(AskContrast)
        attributions = {
            "contributions": analyst.result(AskContributions).source,
            "erasure": analyst.result(AskErasure).effect,
            "contrast_erasure": contrast.erasure,
        }
        if names := attention_names(analyst.model.config)["cross"]:
            attention = np.stack([analyst.arrays[name] for name in names]).mean(axis=(0, 1))
            attributions = {"attention": attention, **attributions}
        return faithfulness(analyst.model, analyst.reading, attributions, contrast.foils)


@torch.inference_mode()
def faithfulness(
    model: Transformer, reading: Reading, attributions: Mapping[str, Floats], foils: Sequence[int]
) -> Faithfulness:
    """attributions: by name, each (target, source), the most needed token the largest; <eos>, the last column, is never
    deleted. foils: an id for each step."""
    words = reading.words
    counts = [0, *(1 << power for power in range(words.bit_length()) if 1 << power < words), words]
    pairs = torch.stack([reading.given, reading.given.new_tensor(list(foils))], dim=1)  # (target, 2)
    orders = {name: [np.argsort(-one[:, :words], axis=1, kind="stable")] for name, one in attributions.items()}
    generator = np.random.default_rng(1)
    every = np.tile(np.arange(words), (len(pairs), 1))  # (target, words)
    orders["random"] = [generator.permuted(every, axis=1) for _ in range(RANDOM_ORDERS)]
    first, last = (_mean_without(model, reading, every[:, :count], pairs) for count in (0, words))  # in any order
    found = {}
    for name, some in orders.items():
        between = [
            np.mean([_mean_without(model, reading, order[:, :count], pairs) for order in some], axis=0)
            for count in counts[1:-1]
        ]
        found[name] = np.stack([first, *between, last])  # (points, 2)
    both = (
        DeletionCurves(
            {name: one[:, kind].tolist() for name, one in found.items()},
            {name: float(one[1:, kind].mean()) for name, one in found.items()},
        )
        for kind in (0, 1)
    )
    return Faithfulness(counts, *both)


def _mean_without(
    model: Transformer, reading: Reading, deleted: NDArray[np.intp], pairs: Tensor
) -> NDArray[np.float64]:
    """The mean probability of the tokens, and the mean against their foils, without some tokens of the source. deleted:
    their places, for each step others, (target, count); pairs: tokens and foils, (target, 2) -> (2,)"""
    erased = np.zeros((len(deleted), len(reading.source)), dtype=bool)  # row i is for step i
    np.put_along_axis(erased, deleted, True, axis=1)
    steps = range(len(deleted))
    hidden = hidden_without(model, reading, torch.from_numpy(erased).to(reading.source.device))[steps, steps]
    both = model.output(hidden).softmax(dim=-1).gather(1, pairs)
    shares = torch.stack([both[:, 0], both[:, 0] / both.sum(dim=1)], dim=1).cpu()  # where there is double precision
    return shares.double().mean(dim=0).numpy()
