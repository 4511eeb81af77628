"""Scaled dot-product attention (equation 1, Figure 2 left) and multi-head attention (section 3.2.2, Figure 2 right).

`attend` has two equivalent implementations: a few readable lines that return the weights, and a fused kernel where only
the output is wanted. Differs from the paper in that every projection has a bias, as in all common code.

Shapes, here and everywhere: batch, heads, query positions, key positions, d_head = d_model / num_heads.
"""

import math

import torch
from torch import Tensor, nn

from headway.kernels.attention import fused_attention
from headway.kernels.dropout import dropout as apply_dropout


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    dropout: float = 0.0,
    return_weights: bool = False,
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
    if not return_weights:
        return fused_attention(query, key, value, mask, dropout), None

    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # changes only rows whose keys are all hidden
    return apply_dropout(weights, dropout) @ value, weights


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(batch, length, d_model) -> (batch, heads, length, d_head)"""
    batch, length, d_model = x.shape
    return x.view(batch, length, num_heads, d_model // num_heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(batch, heads, length, d_head) -> (batch, length, d_model)"""
    batch, num_heads, length, d_head = x.shape
    return x.transpose(1, 2).reshape(batch, length, num_heads * d_head)


class ScaledDotProductAttention(nn.Module):
    """Equation 1 for all heads at once: what multi-head attention does between its projections. It has no parameters.

    Another scheme of attention is another module in its place (docs/architecture.md); search calls it, too. For this
    one, `decoding/step.py` has a faster form for one position.
    """

    def __init__(self, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.fused = True
        """False: always the readable lines of `attend`, and the weights with them; exports trace these."""

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """queries: (batch, query, d_model), keys and values: (batch, key, d_model), mask as in `attend`.

        Returns the heads side by side (batch, query, d_model) and, when asked, the weights (batch, heads, query, key).
        """
        if mask is not None and mask.dim() == 3:
            raise ValueError(f"mask {tuple(mask.shape)}: is it (batch, query, key)? Then mask[:, None] fits all heads")
        query, key, value = (split_heads(x, self.num_heads) for x in (queries, keys, values))
        dropout = self.dropout if self.training else 0.0
        return_weights = return_weights or not self.fused
        heads, weights = attend(query, key, value, mask, dropout=dropout, return_weights=return_weights)
        return join_heads(heads), weights


class MultiHeadAttention(nn.Module):
    """Several attentions side by side on slices of d_model / num_heads features, joined by an output layer."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.core: nn.Module = ScaledDotProductAttention(num_heads, dropout)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """query: (batch, query, d_model), key and value: (batch, key, d_model), mask as in `attend`.

        Returns the output (batch, query, d_model) and, when asked, the weights (batch, heads, query, key).
        """
        heads, weights = self.core(
            self.query(query), self.key(key), self.value(value), mask, return_weights=return_weights
        )
        return self.output(heads), weights
