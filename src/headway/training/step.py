"""One optimizer step: the tensors of its micro-batches, their gradients, clipped, and the update. If memory runs out,
the error names the batch and the key to lower."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.nn.parallel import DistributedDataParallel

from headway.data.batches import CorpusShare, MicroBatch, PackedIds, Plan, collate
from headway.data.shards import ParallelIds
from headway.decoding.engine import tensor_on
from headway.devices import autocast
from headway.errors import UserError
from headway.model import ModelConfig
from headway.model.packing import Packed
from headway.recipe.sizes import work_of_step
from headway.text.tokenizer import BOS_ID
from headway.training.checkpoint import random_states, restore_random_states
from headway.training.ranks import SingleProcess

Batch = tuple[Packed, Packed, Tensor]
"""A micro-batch on the device: source, decoder input and labels."""
WeightedBatch = tuple[Packed, Packed, Tensor, Tensor, Tensor]
"""A micro-batch with a weight for each label, and the risk that the loss stands for."""
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
    bos_id: int = BOS_ID

    @cached_property
    def plan(self) -> Plan:
        source, target = self.corpus.mean_lengths
        versions = self.corpus.versions
        shares = self.shares or [CorpusShare(len(self.corpus) // versions)]
        budgets = self.tokens_per_batch, self.tokens_per_micro_batch
        return Plan(self._lengths_of, (source + 1, target + 1), shares, *budgets, self.seed, versions)

    def tensors(self, micro_batch: MicroBatch) -> Batch:
        pairs = np.array(micro_batch.pairs, dtype=np.int64)
        source, target = self.corpus.source.joined(pairs), self.corpus.target.joined(pairs)
        return on_device(*collate(source, target, micro_batch, self.bos_id), self.device)

    def target_tokens(self, micro_batches: Iterable[MicroBatch]) -> int:
        """The number of target tokens, with <eos>."""
        return sum(int(self._lengths_of(one.pairs)[1].sum()) for one in micro_batches)

    def largest(self, micro_batches: Iterable[MicroBatch]) -> MicroBatch:
        """The micro-batch that takes the most memory, for blocks and for attention weights."""
        return max(micro_batches, key=lambda one: one.places * (1024 + one.source_length + one.target_length))

    def largest_of_run(self, beginning: Iterable[Sequence[MicroBatch]]) -> MicroBatch:
        """The largest of the steps at the beginning of the first epoch and of the longest pair alone."""
        longest = self.plan.alone(self.corpus.longest_pair())
        return self.largest([longest, *(one for step in beginning for one in step)])

    def longest(self, micro_batch: MicroBatch) -> tuple[int, int]:
        """The most tokens of a source and of a target, with <eos>; 0 without pairs."""
        source, target = self._lengths_of(micro_batch.pairs)
        return int(source.max(initial=0)), int(target.max(initial=0))

    def _lengths_of(self, pairs: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        source, target = self.corpus.lengths_of(np.asarray(pairs, dtype=np.int64))
        return source + 1, target + 1


def on_device(source: PackedIds, target: PackedIds, labels: NDArray[np.int32], device: torch.device) -> Batch:
    """A collated micro-batch as tensors, which go to the device in one copy."""
    arrays = [*(one for side in (source, target) for one in (side.ids, side.sentences, side.positions)), labels]
    joined = np.concatenate([one.ravel() for one in arrays])
    there = tensor_on(device, joined).long().split([one.size for one in arrays])
    x, of_x, at_x, y, of_y, at_y, labels_there = (
        one.view(array.shape) for one, array in zip(there, arrays, strict=True)
    )
    return Packed(x, of_x, at_x, source.longest), Packed(y, of_y, at_y, target.longest), labels_there


class StepBatches(NamedTuple):
    """The training data of one step."""

    batches: Sequence[Batch | WeightedBatch]
    """This rank's micro-batches, as many as every other rank's."""
    divisor: int
    """Target tokens, or samples, of all ranks."""
    work: float
    """FLOPs of all ranks."""


@dataclass(frozen=True)
class TeacherForcing:
    """Ordinary training: the model learns to predict the next token of the target."""

    train: Batches
    config: ModelConfig
    adapter_rank: int

    def step(self, micro_batches: list[MicroBatch], number: int, ranks: SingleProcess) -> StepBatches:
        """The rank's share of the micro-batches of step `number`."""
        return StepBatches(
            batches=[self.train.tensors(one) for one in ranks.local_micro_batches(micro_batches)],
            divisor=self.train.target_tokens(micro_batches),
            work=work_of_step(self.config, micro_batches, self.adapter_rank),
        )


class StepResult(NamedTuple):
    """Result of a step. Reading it waits for the device."""

    losses: Tensor
    """(micro-batches,): the sum of each one's losses in nats, over all ranks."""
    gradient_norm: Tensor
    """(): norm of all gradients together, before clipping."""


def train_step(
    loss_of: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    batches: Iterable[Batch | WeightedBatch],
    *,
    divisor: float,
    rate: float,
    max_gradient_norm: float,
    dtype: torch.dtype,
    all_reduce_sum: Callable[[Tensor], Tensor] = lambda losses: losses,
    scaler: GradScaler | None = None,
) -> StepResult:
    """Updates the weights by the sum of all batches' losses, divided by `divisor`, such as the number of target tokens.

    Gradients are scaled down to `max_gradient_norm`; 0: never. If a loss or a gradient is not finite, weights and
    optimizers stay as they were; the result shows it. dtype: of matrix products; with fp16 the scaler keeps gradients
    within its range (Micikevicius et al., 2018, https://arxiv.org/abs/1710.03740). If several ranks share a step, their
    gradients are averaged, so `divisor` is that of all ranks over their number; `all_reduce_sum` adds up their losses.
    Optimizers must know `found_inf`, as fused ones do: only these leave a step out on the device.
    """
    loss_of.train()
    losses = all_reduce_sum(accumulate(loss_of, batches, divisor, dtype, scaler))
    if scaler:
        for optimizer in optimizers:
            scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(loss_of.parameters(), max_gradient_norm or math.inf)
    finite = losses.isfinite().all() & norm.isfinite()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        optimizer.step()
        optimizer.zero_grad()
    if scaler:
        scaler.update()
    return StepResult(losses, norm)


def accumulate(
    loss_of: nn.Module,
    batches: Iterable[Batch | WeightedBatch],
    divisor: float,
    dtype: torch.dtype,
    scaler: GradScaler | None = None,
) -> Tensor:
    """Runs each batch forward and backward, with losses divided by `divisor` and scaled, and adds up the gradients.
    Returns the sum of each batch's losses: (batches,). Ranks exchange gradients once, with the last batch."""
    device = next(loss_of.parameters()).device
    losses, todo = [], list(batches)
    parallel = loss_of if isinstance(loss_of, DistributedDataParallel) else None
    for number, batch in enumerate(todo, start=1):
        with parallel.no_sync() if parallel is not None and number < len(todo) else nullcontext():
            with autocast(device, dtype):
                loss = loss_of(*batch)
            (scaler.scale(loss / divisor) if scaler else loss / divisor).backward()
        losses.append(loss.detach())
    return torch.stack(losses)


def try_batch(loss_of: nn.Module, batches: Batches, micro_batch: MicroBatch, dtype: torch.dtype) -> None:
    """Runs a micro-batch forward and backward to see whether memory holds it. Changes nothing. Raises UserError."""
    before = random_states()
    with naming_batch(batches, [micro_batch]):
        accumulate(loss_of, [batches.tensors(micro_batch)], 1, dtype)
    loss_of.zero_grad()
    restore_random_states(before)


def naming_batch(batches: Batches, micro_batches: Sequence[MicroBatch]) -> AbstractContextManager[None]:
    """Raises UserError if memory runs out, with the shape of the largest micro-batch and the key to lower."""

    def describe() -> str:
        largest = batches.largest(micro_batches)
        source, target = batches.longest(largest)
        return (
            f"with {len(largest.pairs)} sentences of up to {source} source and {target} target tokens; begin a new run "
            f"with a lower training.tokens_per_micro_batch (now {batches.tokens_per_micro_batch})"
        )

    return naming_memory(describe)


@contextmanager
def naming_memory(describe: Callable[[], str]) -> Iterator[None]:
    """Raises UserError if memory runs out. describe: the batch and the remedy, for the message."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _OUT_OF_MEMORY.search(str(error)):
            raise
        raise UserError(f"out of memory {describe()}") from None
