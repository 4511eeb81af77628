"""Ragged batches: sequences of several lengths in one pass, each padded to those of like length alone.

Sequences of like length are a bucket, a padded matrix of ids (sequences, length). All places of all buckets lie end to
end as the rows of one matrix (rows, d_model). Every block but attention works on single rows and needs no change.
Attention works on one bucket at a time, and positions are counted within each sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, cat, nn

ROWS = 64
"""The number of rows is rounded up to a multiple of this, so that a run has few different shapes: freed memory fits the
next tensor, and kernels compiled for a shape are used again."""


@dataclass(frozen=True)
class Layout:
    """Where the places of the buckets lie in the rows of a matrix."""

    shapes: tuple[tuple[int, int], ...]
    """(sequences, length) of each bucket."""

    @classmethod
    def of(cls, buckets: Sequence[Tensor]) -> Layout:
        """buckets: ids, (sequences, length) each."""
        return cls(tuple((bucket.size(0), bucket.size(1)) for bucket in buckets))

    @property
    def sizes(self) -> list[int]:
        """Rows of each bucket, and the unused ones at the end."""
        used = [sequences * length for sequences, length in self.shapes]
        return [*used, math.ceil(sum(used) / ROWS) * ROWS - sum(used)]

    def join(self, buckets: Sequence[Tensor], unused: int = 0) -> Tensor:
        """(sequences, length, ...) of each bucket -> (rows, ...); `unused` fills the unused rows."""
        rows = [bucket.flatten(0, 1) for bucket in buckets]
        rest = rows[0].new_full((self.sizes[-1], *rows[0].shape[1:]), unused)
        return cat([*rows, rest])

    def split(self, x: Tensor) -> list[Tensor]:
        """(rows, ...) -> (sequences, length, ...) of each bucket"""
        *buckets, _ = x.split(self.sizes)
        return [bucket.unflatten(0, shape) for bucket, shape in zip(buckets, self.shapes, strict=True)]


@dataclass(frozen=True)
class RaggedMask:
    """Who may attend to whom in a ragged batch: only places of the same sequence, as its bucket's mask says."""

    queries: Layout
    keys: Layout
    masks: Sequence[Tensor]
    """Of each bucket, as in `attend`."""


def ragged_attention(core: nn.Module, queries: Tensor, keys: Tensor, values: Tensor, mask: RaggedMask) -> Tensor:
    """The core of attention on each bucket. queries: (query rows, d_model), keys and values: (key rows, d_model)
    -> (query rows, d_model)"""
    split = mask.queries.split(queries), mask.keys.split(keys), mask.keys.split(values), mask.masks
    return mask.queries.join([core(*bucket)[0] for bucket in zip(*split, strict=True)])
