"""One optimizer step: the plan of an epoch's steps, the tensors of a micro-batch, the gradients of all micro-batches of
a step, clipped, and the update. Where memory runs out, the error names the batch and what to lower."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from headway.data.batches import CorpusShare, MicroBatch, PackedIds, Plan, collate
from headway.data.shards import ParallelIds
from headway.devices import autocast
from headway.errors import UserError
from headway.model import ModelConfig
from headway.model.packing import Packed
from headway.recipe.sizes import work_of_step
from headway.training.checkpoint import random_states, restore_random_states
from headway.training.ranks import Alone

Batch = tuple[Packed, Packed, Tensor]
"""A micro-batch as the loss takes it, on the device: sources, what the decoder reads, and the labels."""
WeightedBatch = tuple[Packed, Packed, Tensor, Tensor, Tensor]
"""The same with a weight for each label, and the risk that the loss stands for."""
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


@dataclass(frozen=True)
class Batches:
    """The micro-batches of a corpus."""

    corpus: ParallelIds
    device: torch.device
    tokens_per_batch: int
    tokens_per_micro_batch: int
    seed: int = 0
    shares: Sequence[CorpusShare] = ()

    @cached_property
    def plan(self) -> Plan:
        """The micro-batches of each step."""
        source, target = self.corpus.mean_lengths
        versions = self.corpus.versions
        shares = self.shares or [CorpusShare(len(self.corpus) // versions)]
        budgets = self.tokens_per_batch, self.tokens_per_micro_batch
        return Plan(self._lengths_of, (source + 1, target + 1), shares, *budgets, self.seed, versions)

    def tensors(self, micro_batch: MicroBatch) -> Batch:
        """The micro-batch as the loss takes it."""
        return on_device(*collate(self.corpus.source, self.corpus.target, micro_batch), self.device)

    def target_tokens(self, micro_batches: Iterable[MicroBatch]) -> int:
        """The tokens that the model is trained to give."""
        return sum(int(self._lengths_of(np.asarray(one.pairs, dtype=np.int64))[1].sum()) for one in micro_batches)

    def largest(self, micro_batches: Iterable[MicroBatch]) -> MicroBatch:
        """The one that takes the most memory: of each place what its blocks need, and a weight for each other place of
        its row."""
        return max(micro_batches, key=lambda one: one.places * (1024 + one.source_length + one.target_length))

    def largest_of_run(self, beginning: Iterable[Sequence[MicroBatch]]) -> MicroBatch:
        """By the steps at the beginning of its first epoch, and by its longest pair."""
        longest = self.plan.alone(self.corpus.longest_pair())
        return self.largest([longest, *(one for step in beginning for one in step)])

    def longest(self, micro_batch: MicroBatch) -> tuple[int, int]:
        """The most tokens of a source and of a target in it; 0 where it has no pair."""
        source, target = self._lengths_of(np.asarray(micro_batch.pairs, dtype=np.int64))
        return int(source.max(initial=0)), int(target.max(initial=0))

    def _lengths_of(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens of the pairs, of both sides, with their <eos>."""
        source, target = self.corpus.lengths_of(pairs)
        return source + 1, target + 1


def on_device(source: PackedIds, target: PackedIds, labels: NDArray[np.int64], device: torch.device) -> Batch:
    """A collated micro-batch as tensors."""

    def packed(side: PackedIds) -> Packed:
        ids, sentences, positions = (
            torch.from_numpy(array).to(device) for array in (side.ids, side.sentences, side.positions)
        )
        return Packed(ids, sentences, positions, side.longest)

    return packed(source), packed(target), torch.from_numpy(labels).to(device)


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
    parallel = loss_of if isinstance(loss_of, DistributedDataParallel) else None
    for number, batch in enumerate(todo, start=1):
        with parallel.no_sync() if parallel is not None and number < len(todo) else nullcontext():
            with autocast(device, dtype):
                loss = loss_of(*batch)
            (loss / divisor).backward()
        losses.append(loss.detach())
    return torch.stack(losses)


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
