"""Contrastive explanation: why this token, and not that one?

Yin and Neubig 2022, "Interpreting Language Models with Contrastive Explanations", sections 3.1 and 3.3: what is
explained is the difference of two logits, of the token that was given and of a foil. So what speaks for both alike
(that a noun must come) falls away, and what tells them apart stays. Their erasure and gradient x input, here over the
source's tokens, with the baseline of `erasure`: a zero embedding whose position stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.insight.analyses.reading import (
    TOKENS_AT_ONCE,
    Reading,
    decoded_from,
    each_erased,
    hidden_without,
    nothing_erased,
    source_embeddings,
)
from headway.insight.maps import Floats
from headway.model import Transformer


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
        rows = torch.cat([nothing_erased(reading), each_erased(reading)])
        hidden = hidden_without(model, reading, rows)  # (1 + source, target, d_model)
        foils = runners_up(model.output(hidden[0]), reading.given)
        for step, foil in chosen.items():
            foils[step] = foil
        differences = torch.stack([_difference(model, one, reading.given, foils) for one in hidden])
    return Contrast(
        foils=foils.tolist(),
        difference=differences[0].tolist(),
        erasure=(differences[0] - differences[1:]).T.float().cpu().numpy(),
        gradient_x_input=_gradient_x_input(model, reading, foils.clone()).float().cpu().numpy(),
    )


def runners_up(logits: Tensor, given: Tensor) -> Tensor:
    """The likeliest token other than the given one. (target, vocabulary), (target,) -> (target,)"""
    return logits.scatter(1, given[:, None], -torch.inf).argmax(dim=1)


def _difference(model: Transformer, hidden: Tensor, given: Tensor, foils: Tensor) -> Tensor:
    """Of the logits of two tokens a step. hidden: (target, d_model), given and foils: (target,) -> (target,)"""
    logits = model.output(hidden)  # (target, vocabulary)
    return (logits.gather(1, given[:, None]) - logits.gather(1, foils[:, None]))[:, 0]


def _gradient_x_input(model: Transformer, reading: Reading, foils: Tensor) -> Tensor:
    """A row of the batch for each step, so that one backward pass gives the gradients of many. -> (target, source)"""
    steps = torch.arange(len(reading.given), device=foils.device)
    rows = max(1, TOKENS_AT_ONCE // (len(reading.source) + len(reading.read)))
    found = []
    for some in steps.split(rows):
        with torch.no_grad():
            embeddings = source_embeddings(model, reading, nothing_erased(reading)).repeat(len(some), 1, 1)
        with torch.enable_grad():
            embeddings.requires_grad_()
            hidden = decoded_from(model, reading, embeddings)[range(len(some)), some]  # (rows, d_model)
            [gradient] = torch.autograd.grad(
                _difference(model, hidden, reading.given[some], foils[some]).sum(), embeddings, materialize_grads=True
            )
        found.append((gradient * embeddings.detach()).sum(dim=-1))
    return torch.cat(found)
