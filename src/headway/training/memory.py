"""Running out of memory: at once rather than late, and told with the batch that it ran out for and what to lower."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import nn

from headway.errors import UserError
from headway.text.batches import MicroBatch
from headway.training.batches import Batches
from headway.training.checkpoint import random_states, restore_random_states
from headway.training.step import accumulate

_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


@contextmanager
def naming_memory(what: Callable[[], str]) -> Iterator[None]:
    """Raises UserError where memory runs out; `what` says with which batch, and the remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _OUT_OF_MEMORY.search(str(error))):
            raise
        raise UserError(f"out of memory {what()}") from None


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


def try_batch(loss_of: nn.Module, batches: Batches, micro_batch: MicroBatch, dtype: torch.dtype) -> None:
    """Trains on a micro-batch, the largest of a run, to see whether memory holds it. Changes neither weights nor random
    generators. Raises UserError."""
    before = random_states()
    with naming_batch(batches, [micro_batch]):
        accumulate(loss_of, [batches.tensors(micro_batch)], 1, dtype)
    loss_of.zero_grad()
    restore_random_states(before)
