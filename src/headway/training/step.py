"""One optimizer step: what it trains on, the gradients of all its micro-batches, clipped, and the update. Where memory
runs out, the error names the batch and what to lower."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from headway.devices import autocast
from headway.errors import UserError
from headway.model import ModelConfig
from headway.text.batches import MicroBatch
from headway.training.batches import Batch, Batches, WeightedBatch
from headway.training.checkpoint import random_states, restore_random_states
from headway.training.ranks import Alone
from headway.training.sizes import work_of_step

_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


@dataclass(frozen=True)
class StepBatches:
    """What one step trains on."""

    batches: Sequence[Batch | WeightedBatch]
    """This rank's micro-batches; each rank has as many."""
    divisor: int
    """Of the losses of all ranks: the number of target tokens, or of samples."""
    work: float
    """FLOPs of all ranks."""


@dataclass(frozen=True)
class TeacherForcing:
    """Ordinary training: the model learns to give the next token of the target."""

    train: Batches
    config: ModelConfig

    def step(self, micro_batches: list[MicroBatch], number: int, ranks: Alone) -> StepBatches:
        """The rank's share of the micro-batches of step `number`."""
        return StepBatches(
            batches=[self.train.tensors(one) for one in ranks.mine(micro_batches)],
            divisor=self.train.target_tokens(micro_batches),
            work=work_of_step(self.config, micro_batches),
        )


@dataclass(frozen=True)
class StepResult:
    """Result of a step. Reading it waits for the device."""

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


def try_batch(loss_of: nn.Module, batches: Batches, micro_batch: MicroBatch, dtype: torch.dtype) -> None:
    """Trains on a micro-batch, the largest of a run, to see whether memory holds it. Changes neither weights nor random
    generators. Raises UserError."""
    before = random_states()
    with naming_batch(batches, [micro_batch]):
        accumulate(loss_of, [batches.tensors(micro_batch)], 1, dtype)
    loss_of.zero_grad()
    restore_random_states(before)


def naming_batch(batches: Batches, micro_batches: Sequence[MicroBatch]) -> AbstractContextManager[None]:
    """Raises UserError where memory runs out, with the shape of the largest of the micro-batches and the key that
    lowers it."""

    def what() -> str:
        largest = batches.largest(micro_batches)
        source, target = batches.longest(largest)
        return (
            f"with {len(largest.pairs)} sentences of up to {source} source and {target} target tokens; begin a new run "
            f"with a lower training.tokens_per_micro_batch (now {batches.tokens_per_micro_batch})"
        )

    return naming_memory(what)


@contextmanager
def naming_memory(what: Callable[[], str]) -> Iterator[None]:
    """Raises UserError where memory runs out; `what` says with which batch, and the remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _OUT_OF_MEMORY.search(str(error))):
            raise
        raise UserError(f"out of memory {what()}") from None
