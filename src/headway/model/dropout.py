"""Dropout (section 5.4) with cheap random numbers on CPU.

torch draws one random number for each element there, a fifth of a whole training step. Here four elements share one
draw of 64 bits, 16 each, so that a probability is exact to 2^-16. Other devices use torch's own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zeroes each element with the probability and scales the others by 1 / (1 - probability). Any shape."""
    if not probability:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: x.numel()].view(x.shape)  # uniform over -32768 .. 32767
    kept = bits >= min(round(probability * 65536), 65535) - 32768
    return x * (kept.to(x.dtype) * (1.0 / (1.0 - probability)))


class Dropout(nn.Module):
    """`dropout` in training, the identity otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0.0 <= probability < 1.0:
            raise ValueError(f"dropout={probability} must be at least 0 and less than 1")
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.probability) if self.training else x
