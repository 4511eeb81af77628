"""Linear layers for using a model, not for training it: their weights lie in memory as the processor wants them.

On CPU torch's own linear layers lay the weights out anew in each call, and multiply fp32 with MKL, which runs at half
the speed of a processor that isn't Intel's. oneDNN, which is a part of torch, does neither when it gets the weights
beforehand: 2.3 times the speed in fp32 on an AMD EPYC, and twice in bf16 where there are few rows (docs/results.md).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Module = TypeVar("Module", bound=nn.Module)


class PackedLinear(nn.Module):
    """x W^T + b, of one linear layer, or of several with the same input, their outputs one after the other."""

    def __init__(self, layers: Sequence[nn.Linear], dtype: torch.dtype, scale: float = 1.0) -> None:
        """`scale` is a factor of the first layer's outputs."""
        super().__init__()
        weights = [layer.weight.detach() for layer in layers]
        biases = [layer.bias.detach() if layer.bias is not None else None for layer in layers]
        weight = torch.cat([weights[0] * scale, *weights[1:]]).to(dtype)
        self._bias: Tensor | None = None
        if biases[0] is not None:
            self._bias = torch.cat([biases[0] * scale, *(bias for bias in biases[1:] if bias is not None)]).to(dtype)
        self._packed = weight.device.type == "cpu" and torch.backends.mkldnn.is_available()
        self._weight: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None) if self._packed else weight

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_in) -> (..., d_out)"""
        if not self._packed:
            return F.linear(x, self._weight, self._bias)
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")


def packed(module: Module, dtype: torch.dtype) -> Module:
    """A copy of the module in `dtype`, each linear layer in it packed."""
    copied = copy.deepcopy(module).to(dtype)
    for parent in list(copied.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, PackedLinear([child], dtype))
    return copied
