"""What a step reads: the plan of an epoch's steps, and the tensors of a micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.model.packing import Packed
from headway.text.batches import CorpusShare, MicroBatch, PackedIds, Plan, collate
from headway.text.shards import ParallelIds

Batch = tuple[Packed, Packed, Tensor]
"""A micro-batch as the loss takes it, on the device: sources, what the decoder reads, and the labels."""
WeightedBatch = tuple[Packed, Packed, Tensor, Tensor, Tensor]
"""The same with a weight for each label, and the risk that the loss stands for."""


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
