"""One optimizer step: gradients of all its micro-batches, clipped, and the update. Tensors in, tensors out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from headway.devices import autocast
from headway.training.batches import Batch, WeightedBatch


@dataclass(frozen=True)
class StepResult:
    """What a step found. Reading it waits for the device."""

    losses: Tensor
    """(micro-batches,): the sum of each one's losses, in nats, or what `sums` made of that."""
    gradient_norm: Tensor
    """(): of the gradients together, before they were clipped."""


def train_step(
    loss_of: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    batches: Iterable[Batch | WeightedBatch],
    *,
    divisor: float,
    rate: float,
    max_gradient_norm: float,
    dtype: torch.dtype,
    sums: Callable[[Tensor], Tensor] = lambda losses: losses,
) -> StepResult:
    """Updates the weights by the sum of all batches' losses over the `divisor`, such as the number of target tokens.

    Gradients are scaled down to `max_gradient_norm`; 0: never. Where a loss or a gradient is not finite, weights and
    optimizers stay as they were; the result shows it. dtype: of matrix products. Where several ranks share a step,
    their gradients are averaged: each divides by its share of the divisor of all of them then, and `sums` adds up their
    losses.
    Optimizers must know `found_inf`, as fused ones do: only those leave a step out on the device.
    """
    loss_of.train()
    losses = sums(accumulate(loss_of, batches, divisor, dtype))
    norm = torch.nn.utils.clip_grad_norm_(loss_of.parameters(), max_gradient_norm or math.inf)
    finite = losses.isfinite().all() & norm.isfinite()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        optimizer.step()
        optimizer.zero_grad()
    return StepResult(losses, norm)


def accumulate(
    loss_of: nn.Module, batches: Iterable[Batch | WeightedBatch], divisor: float, dtype: torch.dtype
) -> Tensor:
    """Forward and backward of each batch in turn. Adds the gradients of the sum of their losses over the `divisor` to
    the weights' own, and returns the sum of each batch's losses: (batches,). Ranks exchange gradients once, at the
    end."""
    device = next(loss_of.parameters()).device
    losses, todo = [], list(batches)
    for number, batch in enumerate(todo, start=1):
        with _among_ranks(loss_of, exchange=number == len(todo)):
            with autocast(device, dtype):
                loss = loss_of(*batch)
            (loss / divisor).backward()
        losses.append(loss.detach())
    return torch.stack(losses)


def _among_ranks(loss_of: nn.Module, *, exchange: bool) -> AbstractContextManager[None]:
    """Meanwhile gradients stay on their rank, unless they are to be exchanged."""
    if isinstance(loss_of, DistributedDataParallel) and not exchange:
        return loss_of.no_sync()
    return nullcontext()
