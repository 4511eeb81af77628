"""Sequences of ids as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def padded(sequences: Sequence[Sequence[int]], pad_id: int, multiple: int = 1) -> Tensor:
    """(batch, length): padded at the end to the length of the longest, or to the next `multiple` of it."""
    length = -(-max(map(len, sequences)) // multiple) * multiple
    return torch.tensor([[*sequence, *[pad_id] * (length - len(sequence))] for sequence in sequences])
