"""Linear layers for using a model, not for training it: their weights lie in memory as the processor wants them.

On CPU torch's own linear layers lay the weights out anew in each call, and multiply fp32 with MKL, which runs at half
the speed of a processor that isn't Intel's. oneDNN, which is a part of torch, does neither when it gets the weights
beforehand: 2.3 times the speed in fp32 on an AMD EPYC, and twice in bf16 where there are few rows (docs/tried.md).
"""

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

    def __init__(
        self, layers: Sequence[nn.Module], dtype: torch.dtype, scale: float = 1.0, rows: Tensor | None = None
    ) -> None:
        """`scale` is a factor of the first layer's outputs; `rows` are the outputs that are wanted, by default all."""
        super().__init__()
        weights, biases = zip(*map(_weight_and_bias, layers), strict=True)
        weight, bias = (
            None if tensors[0] is None else torch.cat([tensors[0] * scale, *tensors[1:]]).detach().to(dtype)
            for tensors in (weights, biases)
        )
        if rows is not None:
            weight, bias = (None if tensor is None else tensor[rows] for tensor in (weight, bias))
        assert weight is not None
        self._bias: Tensor | None = bias
        self._packed = _can_be_packed(weight)
        self._weight: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None) if self._packed else weight

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_in) -> (..., d_out)"""
        if not self._packed:
            return F.linear(x, self._weight, self._bias)
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")


@torch.no_grad()
def _weight_and_bias(layer: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Those of a linear layer. A module that took its place, such as a layer with an adapter, is evaluated: at 0 it
    gives its bias, at the unit vectors the columns of its weight."""
    if type(layer) is nn.Linear:
        return layer.weight, layer.bias
    inner = next(module for module in layer.modules() if isinstance(module, nn.Linear))
    unit = torch.eye(inner.in_features, dtype=inner.weight.dtype, device=inner.weight.device)
    copied = copy.deepcopy(layer).eval()
    bias = copied(torch.zeros_like(unit[:1]))
    return (copied(unit) - bias).T, bias[0]


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
            if type(child) is nn.Linear:
                setattr(parent, name, PackedLinear([child], dtype))
            elif isinstance(child, Dropout):
                setattr(parent, name, nn.Identity())
    return copied
