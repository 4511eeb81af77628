"""What a step reads: the plan of an epoch's steps, and the tensors of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.text.batches import CorpusShare, MicroBatch, collate, padded_tokens, plan_epoch
from headway.text.shards import ParallelIds

Batch = tuple[Any, ...]
"""A micro-batch as the loss takes it, on the device."""


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
    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens of each pair, of both sides, with their <eos>."""
        return self.corpus.source.lengths + 1, self.corpus.target.lengths + 1

    def plan(self, epoch: int = 0) -> list[list[MicroBatch]]:
        """The micro-batches of each step of an epoch, a function of the seed and the epoch."""
        return plan_epoch(
            *self.lengths,
            tokens_per_batch=self.tokens_per_batch,
            tokens_per_micro_batch=self.tokens_per_micro_batch,
            seed=self.seed,
            epoch=epoch,
            shares=self.shares,
        )

    def tensors(self, micro_batch: MicroBatch) -> tuple[list[Tensor], list[Tensor]]:
        """The micro-batch as the loss takes it: source and target ids of each bucket."""
        collated = [collate(self.corpus, bucket) for bucket in micro_batch]
        sources, targets = (
            [torch.from_numpy(ids).to(self.device) for ids in side] for side in zip(*collated, strict=True)
        )
        return sources, targets

    def target_tokens(self, micro_batches: Iterable[MicroBatch]) -> int:
        """The tokens that the model is trained to give."""
        return sum(int(self.lengths[1][bucket].sum()) for one in micro_batches for bucket in one)

    def largest(self, micro_batches: Iterable[MicroBatch]) -> MicroBatch:
        """The one that takes the most memory."""
        return max(micro_batches, key=lambda one: sum(padded_tokens(bucket, *self.lengths) for bucket in one))

    def longest(self, micro_batch: MicroBatch) -> tuple[int, int]:
        """The most tokens of a source and of a target in it."""
        source, target = self.lengths
        return max(int(source[one].max()) for one in micro_batch), max(int(target[one].max()) for one in micro_batch)
