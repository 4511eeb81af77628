"""One position through the decoder, with a cache of the earlier ones: a step of search, and the packed linear layers
that it consists of.

Gives the same numbers as `Transformer.decode` for the last position, in few and large operations (docs/tried.md): one
product makes queries, keys and values, the queries' weights contain 1 / sqrt(d_k), and the hypotheses of a sentence are
queries of one attention to its memory, which is never copied for a beam. Attention of one query to its own past is sums
of elementwise products, which take half the time of torch's fused kernel. On CPU attention to the memory is in fp32
even with bf16 weights: products of so few rows take half as long as in bf16.

On CPU torch's own linear layers rearrange the weights in each call, and multiply fp32 with MKL, which is slow on
processors that aren't Intel's. oneDNN, a part of torch, takes packed weights: 2.3 times the speed in fp32 on an AMD
EPYC, and twice in bf16 with few rows (docs/tried.md).
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headway.kernels.dropout import Dropout
from headway.model import ScaledDotProductAttention, Transformer
from headway.model.layers import DecoderLayer

Module = TypeVar("Module", bound=nn.Module)

GROWTH = 8
"""Positions that a cache has room for at first, and those that it grows by, at least."""


@dataclass
class DecoderState:
    """Unfinished translations of a batch. A row is one hypothesis; `width` rows in succession are a sentence's."""

    memory_keys: list[Tensor]
    """For each layer (sentences, heads, d_head, source length), d_head innermost in memory."""
    memory_values: list[Tensor]
    """For each layer (sentences, heads, source length, d_head), source length innermost: in either order the product
    of one row with short matrices is fastest."""
    memory_mask: Tensor
    """Is added to scores: 0, or a very negative number at padding. (sentences, 1, 1, source length)"""
    cache: Tensor
    """Keys and values of the positions so far: (rows, layers, 2, capacity, d_model). A row lies together, because rows
    are selected; the capacity grows when it is full."""
    width: int = 1
    length: int = 0
    """Positions that every row has read."""


class DecoderStep:
    """The decoder of a model, prepared for steps of one position; its weights in `dtype`."""

    def __init__(self, model: Transformer, dtype: torch.dtype = torch.float32) -> None:
        self._embedding, self._positions, self._norm = model.target_embedding, model.target_positions, model.target_norm
        self._heads = model.config.decoder_num_heads or model.config.num_heads
        layers = cast(Iterable[DecoderLayer], model.decoder.layers)
        self._layers = [_Layer(layer, self._heads, dtype) for layer in layers]
        self._last_norm = packed(model.decoder.norm, dtype)
        self._dtype = dtype
        self._memory_dtype = torch.float32 if next(model.parameters()).device.type == "cpu" else dtype

    def start(self, memory: Tensor, memory_mask: Tensor) -> DecoderState:
        """memory: (sentences, source length, d_model), memory_mask: (sentences, 1, 1, source length)"""
        sentences, length, d_model = memory.shape
        keys, values = [], []
        for layer in self._layers:
            both = layer.memory(memory).to(self._memory_dtype).view(sentences, length, 2, self._heads, -1)
            keys.append(both[:, :, 0].transpose(1, 2).contiguous().transpose(2, 3))
            values.append(both[:, :, 1].permute(0, 2, 3, 1).contiguous().transpose(2, 3))
        cache = memory.new_empty(sentences, len(self._layers), 2, GROWTH, d_model)
        lowest = torch.finfo(self._memory_dtype).min
        added = torch.zeros_like(memory_mask, dtype=self._memory_dtype).masked_fill(~memory_mask, lowest)
        return DecoderState(keys, values, added, cache)

    def __call__(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """tokens: (rows,), one for each row -> hidden states (rows, d_model); the state has one position more."""
        if state.length == state.cache.size(3):
            room = state.cache[:, :, :, : max(GROWTH, state.length // 4)]
            state.cache = torch.cat([state.cache, torch.empty_like(room)], dim=3)
        x = self._norm(self._embedding(tokens) + self._positions(1, state.length)).to(self._dtype)  # (rows, d_model)
        state.length += 1
        for index, layer in enumerate(self._layers):
            x = layer(x, state, index)
        return self._last_norm(x)

    def select(self, state: DecoderState, rows: Tensor) -> None:
        """Keeps the given rows; rows: (sentences, width), where each sentence keeps rows of its own."""
        sentences = rows[:, 0] // state.width
        if len(sentences) != len(state.memory_mask):
            state.memory_keys = [keys[sentences] for keys in state.memory_keys]
            state.memory_values = [values[sentences] for values in state.memory_values]
            state.memory_mask = state.memory_mask[sentences]
        state.cache, state.width = state.cache.index_select(0, rows.flatten()), rows.size(1)


class _Layer:
    """A decoder layer. A core of attention that isn't the paper's is called with the keys and values of the cache."""

    def __init__(self, layer: DecoderLayer, heads: int, dtype: torch.dtype) -> None:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        residuals = (layer.self_residual, layer.cross_residual, layer.feed_forward_residual)
        self._own_core, self._cross_core = (
            None if type(attention.core) is ScaledDotProductAttention else packed(attention.core, dtype)
            for attention in (own, cross)
        )
        scale = (residuals[0].norm.weight.numel() / heads) ** -0.5  # 1 / sqrt(d_k)
        own_scale, cross_scale = (scale if core is None else 1.0 for core in (self._own_core, self._cross_core))
        self._self_attention = PackedLinear([own.query, own.key, own.value], dtype, own_scale)
        self._self_output = PackedLinear([own.output], dtype)
        self._query = PackedLinear([cross.query], dtype, cross_scale)
        self.memory = PackedLinear([cross.key, cross.value], dtype)
        """From the encoder's output to keys and values."""
        self._memory_output = PackedLinear([cross.output], dtype)
        self._inner, self._outer = (PackedLinear([one], dtype) for one in (feed_forward.inner, feed_forward.outer))
        self._activation = feed_forward.activation
        self._norms = [packed(residual.norm, dtype) for residual in residuals]
        self._norm_first, self._heads = layer.self_residual.norm_first, heads

    def __call__(self, x: Tensor, state: DecoderState, index: int) -> Tensor:
        """x: (rows, d_model) -> the same shape; `index` is the layer's place in the state."""

        def attend_to_self(y: Tensor) -> Tensor:
            query, keys_and_values = self._self_attention(y).split([y.size(1), 2 * y.size(1)], dim=-1)
            cache = state.cache[:, index, :, : state.length]  # (rows, 2, length, d_model)
            cache[:, :, -1] = keys_and_values.unflatten(-1, (2, -1))
            if self._own_core is not None:
                return self._self_output(self._own_core(query[:, None], *cache.unbind(1))[0][:, 0])
            keys, values = cache.unflatten(-1, (self._heads, -1)).unbind(1)  # (rows, length, heads, d_head) each
            scores = (keys * query.view(len(y), 1, self._heads, -1)).sum(dim=-1)  # (rows, length, heads)
            heads = (scores.softmax(dim=1)[..., None] * values).sum(dim=1)  # (rows, heads, d_head)
            return self._self_output(heads.flatten(1))

        def attend_to_memory(y: Tensor) -> Tensor:
            keys, values = state.memory_keys[index], state.memory_values[index]
            query = self._query(y).to(keys.dtype).view(-1, state.width, y.size(1))  # (sentences, width, d_model)
            if self._cross_core is not None:
                rows = keys.permute(0, 3, 1, 2).flatten(2), values.transpose(1, 2).flatten(2)
                heads, _ = self._cross_core(query, *rows, state.memory_mask == 0)
            else:
                scores = query.unflatten(-1, (self._heads, -1)).transpose(1, 2) @ keys + state.memory_mask
                heads = (scores.softmax(dim=-1) @ values).transpose(1, 2)  # (sentences, width, heads, d_head)
            return self._memory_output(heads.reshape(y.shape).to(y.dtype))

        def feed_forward(y: Tensor) -> Tensor:
            return self._outer(self._activation(self._inner(y)))

        for sublayer, norm in zip((attend_to_self, attend_to_memory, feed_forward), self._norms, strict=True):
            x = x + sublayer(norm(x)) if self._norm_first else norm(x + sublayer(x))
        return x


class PackedLinear(nn.Module):
    """x W^T + b of one linear layer, or of several with the same input, their outputs one after the other. The weights
    are those of this moment. Packed weights can't be copied or moved."""

    def __init__(self, layers: Sequence[nn.Module], dtype: torch.dtype, scale: float = 1.0) -> None:
        """`scale` is a factor of the first layer's outputs."""
        super().__init__()
        weights, biases = zip(*map(_weight_and_bias, layers), strict=True)

        def joined(rows: Sequence[Tensor]) -> Tensor:  # itself if it is one: a freed copy leaves a gap in the heap
            is_one = len(rows) == 1 and scale == 1
            return (rows[0] if is_one else torch.cat([rows[0] * scale, *rows[1:]])).detach().to(dtype)

        self._bias = None if biases[0] is None else joined(biases).clone()
        self._packed = _can_be_packed(weight := joined(weights))
        self._weight: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None) if self._packed else weight.clone()

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
    copies: Any = {id(one): PackedLinear([one], dtype) for one in module.modules() if type(one) is nn.Linear}
    copies |= {id(one): nn.Identity() for one in module.modules() if isinstance(one, Dropout)}
    return copy.deepcopy(module, copies).to(dtype).eval()
