"""Linear layers for using a model, not for training it, with weights packed for the processor.

On CPU torch's own linear layers rearrange the weights in each call, and multiply fp32 with MKL, which is slow on
processors that aren't Intel's. oneDNN, a part of torch, takes packed weights: 2.3 times the speed in fp32 on an AMD
EPYC, and twice in bf16 with few rows (docs/tried.md).
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
    """x W^T + b of one linear layer, or of several with the same input, their outputs one after the other. The weights
    are those of this moment. Packed weights can't be copied or moved."""

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
    """The weight and bias of a linear layer. A module in its place, such as a layer with an adapter, is evaluated: its
    output at 0 is the bias, and those at the unit vectors are the columns of the weight."""
    if type(layer) is nn.Linear:
        return layer.weight, layer.bias
    inner = next(module for module in layer.modules() if isinstance(module, nn.Linear))
    unit = torch.eye(inner.in_features, dtype=inner.weight.dtype, device=inner.weight.device)
    copied = copy.deepcopy(layer).eval()
    bias = copied(torch.zeros_like(unit[:1]))
    return (copied(unit) - bias).T, bias[0]


def _can_be_packed(weight: Tensor) -> bool:
    has_onednn = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if weight.device.type != "cpu" or not has_onednn:
        return False
    bf16 = weight.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32 or bf16


def packed(module: Module, dtype: torch.dtype) -> Module:
    """A copy of the module in `dtype` for using it: without dropout, and with its linear layers packed."""
    copied = copy.deepcopy(module).to(dtype).eval()
    for parent in list(copied.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, PackedLinear([child], dtype))
            elif isinstance(child, Dropout):
                setattr(parent, name, nn.Identity())
    return copied
