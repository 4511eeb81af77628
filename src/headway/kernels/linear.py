"""Linear layers for using a model, not for training it: their weights lie in memory as the processor wants them.

On CPU torch's own linear layers lay the weights out anew in each call, and multiply fp32 with MKL, which runs at half
the speed of a processor that isn't Intel's. oneDNN, which is a part of torch, does neither when it gets the weights
beforehand: 2.3 times the speed in fp32 on an AMD EPYC, and twice in bf16 where there are few rows (docs/tried.md).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headway.kernels.dropout import Dropout

Module = TypeVar("Module", bound=nn.Module)


class PackedLinear(nn.Module):
    """x W^T + b, of one linear layer, or of several with the same input, their outputs one after the other; their
    weights as they are now. Packed weights stay in their process, on their device: nothing can copy them."""

    def __init__(self, layers: Sequence[nn.Linear], dtype: torch.dtype, scale: float = 1.0) -> None:
        """`scale` is a factor of the first layer's outputs."""
        super().__init__()
        weight = _joined([layer.weight for layer in layers], dtype, scale)
        biases = [layer.bias for layer in layers if layer.bias is not None]
        assert len(biases) in (0, len(layers))
        self._bias: Tensor | None = _joined(biases, dtype, scale) if biases else None
        self._packed = _can_be_packed(weight)
        self._weight: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None) if self._packed else weight

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_in) -> (..., d_out)"""
        if not self._packed:
            return F.linear(x, self._weight, self._bias)
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")


def _joined(tensors: Sequence[Tensor], dtype: torch.dtype, scale: float) -> Tensor:
    first, *others = (tensor.detach() for tensor in tensors)
    return torch.cat([first * scale, *others]).to(dtype)


def _can_be_packed(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    bf16 = weight.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32 or bf16


def packed(module: Module, dtype: torch.dtype) -> Module:
    """A copy of the module for using it, in `dtype`, each linear layer below it packed, and without dropout."""
    copied = copy.deepcopy(module).to(dtype).eval()
    for parent in list(copied.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, PackedLinear([child], dtype))
            elif isinstance(child, Dropout):
                setattr(parent, name, nn.Identity())
    return copied
