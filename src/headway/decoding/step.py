"""One position through the decoder, with everything that earlier positions left: what a step of search costs.

The same numbers as `Transformer.decode` gives for the last position (a test holds them equal), in few and large
operations: queries, keys and values come from one product, 1 / sqrt(d_k) is a part of the queries' weights, and the
hypotheses of a sentence ask its memory together, as the queries of one attention, so that nothing of the memory is ever
copied for a beam. Attention of one query to its own past is sums of elementwise products: half the time of torch's
fused kernel, which is made for many queries. On CPU the memory is asked in fp32 whatever the weights are: products of
so few rows take half as long as in bf16 (docs/tried.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from headway.kernels.linear import PackedLinear, packed
from headway.model import Transformer
from headway.model.layers import ACTIVATIONS, DecoderLayer

GROWTH = 8
"""Positions that a cache has room for at first, and those that it grows by, at least."""


@dataclass
class DecoderState:
    """Where the translations of a batch stand. A row is one hypothesis; `width` rows in succession are a sentence's."""

    memory_keys: list[Tensor]
    """For each layer (sentences, heads, d_head, source length), d_head innermost in memory."""
    memory_values: list[Tensor]
    """For each layer (sentences, heads, source length, d_head), source length innermost: either order is what a product
    of one row with short matrices is fastest with."""
    memory_mask: Tensor
    """What is added to scores: 0 where a place may be read, a very negative number at padding.
    (sentences, 1, 1, source length)"""
    cache: Tensor
    """Keys and values of the positions so far: (rows, layers, 2, capacity, d_model). A row lies together, because rows
    are selected; the capacity grows when it is full."""
    width: int = 1
    length: int = 0
    """Positions that every row has read."""


class DecoderStep:
    """The decoder of a model, prepared for steps of one position; its weights in `dtype`."""

    def __init__(self, model: Transformer, dtype: torch.dtype = torch.float32) -> None:
        config = model.config
        self._heads = config.decoder_num_heads or config.num_heads
        self._d_model = config.d_model
        self._d_head = config.d_model // self._heads
        self._norm_first = config.norm == "pre"
        self._activation = ACTIVATIONS[config.activation]
        self._embedding, self._positions = model.target_embedding, model.target_positions
        self._layers = [_LayerWeights.of(layer, dtype) for layer in cast(Iterable[DecoderLayer], model.decoder.layers)]
        self._last_norm = packed(model.decoder.norm, dtype) if self._norm_first else None
        self._dtype = dtype
        on_cpu = model.output.weight.device.type == "cpu"
        self._memory_dtype = torch.float32 if on_cpu else dtype

    def start(self, memory: Tensor, memory_mask: Tensor) -> DecoderState:
        """memory: (sentences, source length, d_model), memory_mask: (sentences, 1, 1, source length)"""
        sentences, length, _ = memory.shape
        keys, values = [], []
        for layer in self._layers:
            both = layer.memory(memory).to(self._memory_dtype).view(sentences, length, 2, self._heads, -1)
            keys.append(both[:, :, 0].transpose(1, 2).contiguous().transpose(2, 3))
            values.append(both[:, :, 1].permute(0, 2, 3, 1).contiguous().transpose(2, 3))
        cache = memory.new_empty(sentences, len(self._layers), 2, GROWTH, self._d_model)
        added = torch.zeros_like(memory_mask, dtype=self._memory_dtype).masked_fill(~memory_mask, -1e9)
        return DecoderState(keys, values, added, cache)

    def __call__(self, state: DecoderState, tokens: Tensor) -> Tensor:
        """tokens: (rows,), one for each row -> hidden states (rows, d_model); the state has one position more."""
        if state.length == state.cache.size(3):
            room = state.cache[:, :, :, : max(GROWTH, state.length // 4)]
            state.cache = torch.cat([state.cache, torch.empty_like(room)], dim=3)
        x = (self._embedding(tokens) + self._positions(1, state.length)).to(self._dtype)  # (rows, d_model)
        state.length += 1
        for index, layer in enumerate(self._layers):
            x = self._layer(x, layer, state, index)
        return x if self._last_norm is None else self._last_norm(x)

    def select(self, state: DecoderState, rows: Tensor) -> None:
        """Keeps the given rows; rows: (sentences, width), where each sentence keeps rows of its own."""
        sentences = rows[:, 0] // state.width
        if len(sentences) != len(state.memory_mask):
            state.memory_keys = [keys[sentences] for keys in state.memory_keys]
            state.memory_values = [values[sentences] for values in state.memory_values]
            state.memory_mask = state.memory_mask[sentences]
        state.cache, state.width = state.cache.index_select(0, rows.flatten()), rows.size(1)

    def _layer(self, x: Tensor, layer: _LayerWeights, state: DecoderState, index: int) -> Tensor:
        def attend_to_self(y: Tensor) -> Tensor:
            query, keys_and_values = layer.self_attention(y).split([self._d_model, 2 * self._d_model], dim=-1)
            cache = state.cache[:, index, :, : state.length]  # (rows, 2, length, d_model)
            cache[:, :, -1] = keys_and_values.unflatten(-1, (2, -1))
            keys, values = cache.unflatten(-1, (self._heads, -1)).unbind(1)  # (rows, length, heads, d_head) each
            scores = (keys * query.view(len(y), 1, self._heads, -1)).sum(dim=-1)  # (rows, length, heads)
            heads = (scores.softmax(dim=1)[..., None] * values).sum(dim=1)  # (rows, heads, d_head)
            return layer.self_output(heads.flatten(1))

        def attend_to_memory(y: Tensor) -> Tensor:
            query = layer.query(y).to(self._memory_dtype).view(-1, state.width, self._heads, self._d_head)
            scores = query.transpose(1, 2) @ state.memory_keys[index] + state.memory_mask
            heads = scores.softmax(dim=-1) @ state.memory_values[index]  # (sentences, heads, width, d_head)
            return layer.memory_output(heads.transpose(1, 2).reshape(len(y), -1).to(self._dtype))

        def feed_forward(y: Tensor) -> Tensor:
            return layer.outer(self._activation(layer.inner(y)))

        sublayers = (attend_to_self, attend_to_memory, feed_forward)
        for sublayer, norm in zip(sublayers, layer.norms, strict=True):
            x = x + sublayer(norm(x)) if self._norm_first else norm(x + sublayer(x))
        return x


class _LayerWeights(NamedTuple):
    """A decoder layer's weights as a step uses them."""

    self_attention: PackedLinear
    """To queries, scaled by 1 / sqrt(d_k), keys and values."""
    self_output: PackedLinear
    query: PackedLinear
    """Of the encoder-decoder attention, scaled."""
    memory: PackedLinear
    """From the encoder's output to keys and values."""
    memory_output: PackedLinear
    inner: PackedLinear
    outer: PackedLinear
    norms: tuple[nn.LayerNorm, nn.LayerNorm, nn.LayerNorm]

    @staticmethod
    def of(layer: DecoderLayer, dtype: torch.dtype) -> _LayerWeights:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        residuals = (layer.self_residual, layer.cross_residual, layer.feed_forward_residual)
        first, second, third = (packed(residual.norm, dtype) for residual in residuals)
        scale = (own.query.out_features / own.num_heads) ** -0.5
        return _LayerWeights(
            self_attention=PackedLinear([own.query, own.key, own.value], dtype, scale),
            self_output=PackedLinear([own.output], dtype),
            query=PackedLinear([cross.query], dtype, scale),
            memory=PackedLinear([cross.key, cross.value], dtype),
            memory_output=PackedLinear([cross.output], dtype),
            inner=PackedLinear([feed_forward.inner], dtype),
            outer=PackedLinear([feed_forward.outer], dtype),
            norms=(first, second, third),
        )
