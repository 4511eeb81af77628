"""The processes that train one model together. Each is a rank. A single process is a rank that does all the work.

All ranks run the same loop and communicate in the same order, with as many micro-batches per step. The first rank
leads: it alone writes the run directory.
"""

import os
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import torch
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore, Store, rendezvous  # pyright: ignore[reportPrivateImportUsage]
from torch.nn.parallel import DistributedDataParallel

from headway.data.batches import MicroBatch, share_of_step
from headway.errors import UserError

Item = TypeVar("Item")
PATIENCE = timedelta(days=7)
"""Timeout of ranks that wait for each other: preparing a corpus may take days, and a dead rank is noticed at once."""
MEETING = timedelta(minutes=30)
"""Timeout of the start, until all ranks are there."""
_LOST = re.compile(r"gloo|nccl|connection (closed|reset|refused)|broken pipe|socket", re.IGNORECASE)


class LeadFailed(Exception):
    """The first rank could not begin, and has reported why."""


class SingleProcess:
    """A training in one process."""

    number = 0
    count = 1

    @property
    def leads(self) -> bool:
        """Whether this is the rank that writes."""
        return self.number == 0

    def local_micro_batches(self, micro_batches: list[MicroBatch]) -> list[MicroBatch]:
        """This rank's share of a step. All ranks have the same number of micro-batches, of the same shapes."""
        return share_of_step(micro_batches, self.number, self.count)

    def part(self, items: Sequence[Item]) -> Sequence[Item]:
        """This rank's items: with n ranks every n-th, from the rank's own number on."""
        return items[self.number :: self.count]

    def all_gather(self, part: Sequence[Item]) -> list[Item]:
        """All items in their original order, from the parts of all ranks."""
        return list(part)

    def wrap_ddp(self, loss_of: nn.Module) -> nn.Module:
        """The module wrapped so that its gradients are averaged over all ranks."""
        return loss_of

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks, element by element."""
        return values

    def all_reduce_max(self, *values: float) -> tuple[float, ...]:
        """The highest value on any rank, for each value."""
        return values

    @contextmanager
    def lead_first(self) -> Iterator[None]:
        """Runs the block on the first rank, then on the others. They raise LeadFailed if it failed on the first."""
        if not self.leads and any(self.all_reduce_max(0.0)):
            raise LeadFailed
        failed = 1.0
        try:
            yield
            failed = 0.0
        finally:
            if self.leads:
                self.all_reduce_max(failed)

    @contextmanager
    def watching(self, run: Path) -> Iterator[None]:
        """Raises UserError if another rank is lost while the block runs."""
        try:
            yield
        except RuntimeError as error:
            if self.count == 1 or not _LOST.search(str(error)):
                raise
            raise UserError(
                f"{run}: another process of this training has ended; its last checkpoint is intact, go on with --resume"
            ) from None


class DistributedProcess(SingleProcess):
    """One of several processes on one machine or many, started by `torchrun` or by `headway train --processes`."""

    def __init__(self, device: str) -> None:
        """Waits until all are there. The environment holds their addresses, as `torchrun` sets it. device: kind of the
        device of each, of which a rank takes the one with its number on this machine, or the only one that it sees.
        Raises UserError if there are too few."""
        if device == "cuda":
            here, local = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
            if 1 < here <= local:
                raise UserError(f"process {local + 1} of this machine has no GPU: there are {here}; start fewer")
            torch.cuda.set_device(local if here > 1 else 0)
        store, self.number, self.count = next(rendezvous("env://", timeout=MEETING))
        store = PrefixStore(shared_prefix(store, self.number, self.count), store)
        backend = "nccl" if device == "cuda" else "gloo"
        distributed.init_process_group(backend, store=store, rank=self.number, world_size=self.count)
        self._patient = distributed.new_group(backend="gloo", timeout=PATIENCE)

    def all_gather(self, part: Sequence[Item]) -> list[Item]:
        parts: list[list[Item]] = [[]] * self.count
        distributed.all_gather_object(parts, list(part), group=self._patient)
        return [parts[place % self.count][place // self.count] for place in range(sum(map(len, parts)))]

    def wrap_ddp(self, loss_of: nn.Module) -> nn.Module:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # newer versions of torch split an option in two
            return DistributedDataParallel(loss_of, broadcast_buffers=False, gradient_as_bucket_view=True)

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        values = values.clone()
        distributed.all_reduce(values)
        return values

    def all_reduce_max(self, *values: float) -> tuple[float, ...]:
        together = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(together, distributed.ReduceOp.MAX, group=self._patient)
        return tuple(together.tolist())


def shared_prefix(store: Store, rank: int, ranks: int) -> str:
    """A prefix for keys in the store that only these processes share.

    When `torchrun` restarts ranks, they get the store of the previous ranks, which still holds their addresses. So each
    rank registers a new name under its seat. The first rank writes its prefix for every name it finds, until all ranks
    have answered to it.
    """
    name = uuid4().hex
    if rank:
        store.set(f"seat {rank}", name)
        prefix = store.get(f"prefix for {name}").decode()
        store.set(f"answer to {prefix} of {rank}", "")
        return prefix
    silent = list(range(1, ranks))
    while silent:
        for other in silent:
            store.set(f"prefix for {store.get(f'seat {other}').decode()}", name)
        time.sleep(0.05)
        silent = [other for other in silent if not store.check([f"answer to {name} of {other}"])]
    return name


def join_ranks(device: str) -> SingleProcess:
    """This process as one of the ranks that the environment describes. device: as in `pick_device`'s result. Raises
    UserError if the ranks don't meet, or can't share such a device."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return SingleProcess()
    if device not in ("cpu", "cuda"):
        raise UserError(f"several processes train together on cpu or cuda, not on {device}")
    try:
        return DistributedProcess(device)
    except (RuntimeError, ValueError) as error:
        fault = str(error).partition("\n")[0]
        raise UserError(
            f"the {os.environ['WORLD_SIZE']} processes of this training didn't meet ({fault}); start it with torchrun "
            "on each machine, or with --processes"
        ) from None
