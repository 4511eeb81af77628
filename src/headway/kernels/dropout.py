"""Dropout (section 5.4) that is cheap on CPU; other devices use torch's own.

torch draws a random number for each element, which takes a fifth of a training step. Here four elements share a draw of
64 bits, 15 for each, so a probability is exact to 2^-15. Elements are zeroed by integer masks, which cost a third of a
product with ones and zeros.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_INTEGER_OF_SIZE = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zeroes each element with the probability and scales the others by 1 / (1 - probability). Any shape."""
    if not probability:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    kept: Tensor = _Kept.apply(x, _bits(x.shape, 1.0 - probability))  # type: ignore[assignment]
    return kept * (1.0 / (1.0 - probability))


def _bits(shape: torch.Size, probability: float) -> Tensor:
    """int16: all bits set with the probability, else none."""
    draws = torch.empty((shape.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    uniform = draws.view(torch.int16)[: shape.numel()].bitwise_and_(2**15 - 1)  # 0 .. 32767
    return uniform.sub_(round(probability * 2**15)).bitwise_right_shift_(15).view(shape)  # the sign, everywhere


class _Kept(torch.autograd.Function):
    """The elements whose bits are set, and the gradients of the same ones; 0 for the others."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bits: Tensor) -> Tensor:
        ctx.save_for_backward(bits)
        return _masked(x, bits)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        [gradient], [bits] = gradients, ctx.saved_tensors
        return _masked(gradient, bits), None


def _masked(x: Tensor, bits: Tensor) -> Tensor:
    integer = _INTEGER_OF_SIZE[x.element_size()]
    return (x.contiguous().view(integer) & bits.to(integer)).view(x.dtype)


class Dropout(nn.Module):
    """`dropout` in training, the identity otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0.0 <= probability < 1.0:
            raise ValueError(f"dropout={probability} must be at least 0 and less than 1")
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.probability) if self.training else x
