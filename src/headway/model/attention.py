"""Scaled dot-product attention (equation 1) and multi-head attention (section 3.2.2).

`attend` has two bodies with one meaning: a readable one that returns the weights, and whatever is fastest on the
device when nobody asks for them. Differs from the paper in that every projection has a bias, as in all common code.

Shapes, here and everywhere: batch, heads, query = positions that ask, key = positions that answer,
d_head = d_model / num_heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from headway.model.dropout import dropout as apply_dropout
from headway.model.fast_attention import fast_attend

Record = Callable[[str, Tensor], None]
"""Receives named intermediate tensors, such as ("encoder.layers.0.self_attention.weights", ...)."""


def within(record: Record | None, name: str) -> Record | None:
    """A record whose names are put below `name`; None stays None."""
    if record is None:
        return None
    return lambda key, tensor: record(f"{name}.{key}", tensor)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    dropout: float = 0.0,
    return_weights: bool = False,
    record: Record | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1.

    query: (..., query, d_k), key: (..., key, d_k), value: (..., key, d_v); mask: boolean, True = may attend,
    broadcastable to (..., query, key). `dropout` is applied to the weights, always: pass 0 outside training.

    Returns the output (..., query, d_v) and, when asked, the weights (..., query, key) as they are before dropout.
    A row whose keys are all hidden has zero weights, zero output and finite gradients.
    """
    if mask is not None:
        if mask.dtype != torch.bool:
            raise ValueError(f"mask has dtype {mask.dtype}, must be bool (True = may attend)")
        mask = torch.atleast_2d(mask)
    if not return_weights and record is None:
        return fast_attend(query, key, value, mask, dropout), None

    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., query, key)
    visible = scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = visible.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # changes only rows whose keys are all hidden
    output = apply_dropout(weights, dropout) @ value  # (..., query, d_v)
    if record is not None:
        if mask is not None:
            record("mask", mask)
        for name, tensor in (("scores", scores), ("masked_scores", visible), ("weights", weights)):
            record(name, tensor)
    return output, weights if return_weights else None


class MultiHeadAttention(nn.Module):
    """Several attentions side by side on slices of d_model / num_heads features, joined by an output layer."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")
        self.num_heads = num_heads
        self.dropout = dropout
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        return_weights: bool = False,
        record: Record | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """query: (batch, query, d_model), key and value: (batch, key, d_model), mask as in `attend`.

        Returns the output (batch, query, d_model) and, when asked, the weights (batch, heads, query, key).
        """
        if mask is not None and mask.dim() == 3:
            raise ValueError(f"mask {tuple(mask.shape)}: is it (batch, query, key)? Then mask[:, None] fits all heads")
        queries = self._split(self.query(query))  # (batch, heads, query, d_head)
        keys, values = self._split(self.key(key)), self._split(self.value(value))  # (batch, heads, key, d_head)
        dropout = self.dropout if self.training else 0.0
        heads, weights = attend(
            queries, keys, values, mask, dropout=dropout, return_weights=return_weights, record=record
        )
        output = self.output(self._join(heads))
        if record is not None:
            named = (("queries", queries), ("keys", keys), ("values", values), ("heads", heads), ("output", output))
            for name, tensor in named:
                record(name, tensor)
        return output, weights

    def _split(self, x: Tensor) -> Tensor:
        batch, length, d_model = x.shape
        return x.view(batch, length, self.num_heads, d_model // self.num_heads).transpose(1, 2)

    def _join(self, heads: Tensor) -> Tensor:
        batch, num_heads, length, d_head = heads.shape
        return heads.transpose(1, 2).reshape(batch, length, num_heads * d_head)
