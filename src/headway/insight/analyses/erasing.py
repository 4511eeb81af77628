"""Erasure, contrast and faithfulness: what each token of the translation needs of the source.

A token of the source is erased as word dropout does it in training: its embedding is zero, its position stays, so that
the sequence keeps its length.

Erasure (Li et al. 2016, "Understanding Neural Networks through Representation Erasure"; for images it is called
occlusion, Zeiler and Fergus 2014): how much less likely is a token without a token of the source? It asks the model
itself, so it says what a word needs, where attention says where it looks. A pair of words that can stand in for each
other shows no need of either. With all words erased at once it says what the source as a whole is good for: pointwise
mutual information of token and source, given the tokens before (as Fernandes et al. 2021, "Measuring and Increasing
Context Usage in Context-Aware Machine Translation", measure it for context). A translation that gains little from its
source is a hallucination.

Contrast (Yin and Neubig 2022, "Interpreting Language Models with Contrastive Explanations", sections 3.1 and 3.3): why
this token, and not that one? What is explained is the difference of two logits, of the token that was given and of a
foil. So what speaks for both alike (that a noun must come) falls away, and what tells them apart stays. Their erasure
and gradient x input, here over the source's tokens, with the same baseline: a zero embedding whose position stays.

Faithfulness: does an attribution say what the model needs? The tokens that it names first are deleted first. A deletion
curve (Samek et al. 2017, "Evaluating the Visualization of What a Deep Neural Network Has Learned"; DeYoung et al. 2020,
"ERASER", call its mean comprehensiveness): for each token of the translation the tokens of the source are erased in the
order in which the attribution ranks them, and the probability of the token is read again and again. The faster it falls
the better the ranking. A random order says how fast it falls by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.insight.analyses.reading import Reading, decoded_from, log_probabilities_of_given
from headway.insight.maps import Floats
from headway.model import Transformer

NEED = 0.1
"""Nats by which a token must become less likely for the erased one to be called needed: a factor of 0.9."""
DETACHED = 2.0
"""Nats a token: where a translation gains less from its source, it is likely to be written without regard to it
(docs/results.md)."""
RANDOM_ORDERS = 3


@dataclass(frozen=True)
class Erasure:
    """What each token of the translation loses when a token of the source is erased."""

    effect: Floats
    """log p(token i) - log p(token i | source token j erased), in nats, (target, source). Below 0: likelier without."""
    needs: list[int | None]
    """For each token of the translation the source token, other than <eos>, that it loses most without; None where
    that is less than NEED."""
    gain: list[float]
    """log p(token) - log p(token | all of the source but <eos> erased), in nats."""

    @property
    def mean_gain(self) -> float:
        """A token of the translation without <eos>, which comes with or without a source."""
        return float(np.mean(self.gain[:-1] or self.gain))

    @property
    def detached(self) -> bool:
        """A warning: the translation gains less than DETACHED from its source."""
        return self.mean_gain < DETACHED


@torch.inference_mode()
def erasure(model: Transformer, reading: Reading) -> Erasure:
    """Erases each token of the source by itself, and all words together."""
    hidden = hidden_without(model, reading, erasures(reading))  # (2 + source, target, d_model)
    given = torch.stack([log_probabilities_of_given(model, reading, one) for one in hidden])  # (2 + source, target)
    effect = (given[0] - given[2:]).T.float().cpu().numpy()
    return Erasure(effect, needed(effect), gain=(given[0] - given[1]).tolist())


def needed(effect: Floats) -> list[int | None]:
    """For each row the column of its largest number, or None where that is less than NEED; the last column, <eos>,
    left out. (target, source) -> (target,)"""
    words = effect[:, :-1]
    return [int(row.argmax()) if row.max(initial=-np.inf) >= NEED else None for row in words]


@dataclass(frozen=True)
class Contrast:
    """What in the source speaks for each token and against its foil."""

    foils: list[int]
    """The id that each token is compared with."""
    difference: list[float]
    """log p(token) - log p(foil) of each step, in nats; below 0 where the foil was likelier."""
    erasure: Floats
    """By how much the difference falls when a source token is erased, (target, source)."""
    gradient_x_input: Floats
    """The same to first order: the gradient of the difference by a source token's embedding, times the embedding,
    (target, source)."""


def contrast(model: Transformer, reading: Reading, chosen: Mapping[int, int]) -> Contrast:
    """chosen: foils by the number of their step; of all other steps the foil is the likeliest other token."""
    with torch.inference_mode():
        nothing, _, *each = erasures(reading)
        hidden = hidden_without(model, reading, torch.stack([nothing, *each]))  # (1 + source, target, d_model)
        foils = model.output(hidden[0]).scatter(1, reading.given[:, None], -torch.inf).argmax(dim=1)  # (target,)
        for step, foil in chosen.items():
            foils[step] = foil
        pairs = torch.stack([reading.given, foils], dim=1)
        differences = torch.stack([_difference(model, one, pairs) for one in hidden])  # (1 + source, target)
    return Contrast(
        foils=foils.tolist(),
        difference=differences[0].tolist(),
        erasure=(differences[0] - differences[1:]).T.float().cpu().numpy(),
        gradient_x_input=_gradient_x_input(model, reading, pairs.clone()).float().cpu().numpy(),
    )


def _difference(model: Transformer, hidden: Tensor, pairs: Tensor) -> Tensor:
    """Of the logits of two tokens a step. hidden: (target, d_model), pairs: (target, 2) -> (target,)"""
    chosen = model.output(hidden).gather(1, pairs)
    return chosen[:, 0] - chosen[:, 1]


def _gradient_x_input(model: Transformer, reading: Reading, pairs: Tensor) -> Tensor:
    """A row of the batch for each step, so that one backward pass gives the gradients of many. pairs: each step's token
    and foil, (target, 2) -> (target, source)"""
    found = []
    for steps in torch.arange(len(pairs), device=pairs.device).split(reading.rows_at_once):
        with torch.no_grad():
            embeddings = model.source_embedding(reading.source).repeat(len(steps), 1, 1)
        with torch.enable_grad():
            embeddings.requires_grad_()
            hidden = decoded_from(model, reading, embeddings)[range(len(steps)), steps]  # (rows, d_model)
            difference = _difference(model, hidden, pairs[steps]).sum()
            [gradient] = torch.autograd.grad(difference, embeddings, materialize_grads=True)
        found.append((gradient * embeddings.detach()).sum(dim=-1))
    return torch.cat(found)


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
    ends = hidden_without(model, reading, erasures(reading)[:2])  # the same in any order
    first, last = (_means(model, hidden, pairs) for hidden in ends)
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


@torch.inference_mode()
def hidden_without(model: Transformer, reading: Reading, erased: Tensor) -> Tensor:
    """`decoded_from` of the source with tokens erased. erased: bool, (rows, source length)
    -> (rows, target length, d_model)"""
    words = model.source_embedding(reading.source)  # (source length, d_model)
    some = erased[..., None].split(reading.rows_at_once)
    return torch.cat([decoded_from(model, reading, words.masked_fill(rows, 0.0)) for rows in some])


def erasures(reading: Reading) -> Tensor:
    """Nothing erased; then all but <eos>; then each token by itself. -> bool, (2 + source length, source length)"""
    each = torch.eye(len(reading.source), dtype=torch.bool, device=reading.source.device)
    return torch.cat([torch.zeros_like(each[:1]), ~each[-1:], each])
