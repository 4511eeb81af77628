"""The fused body of `headway.model.attend`: torch's own kernel, and for bf16 on CPU, at the lengths of sentences, plain
products around a softmax of our own.

There the fused kernel is several times slower, above all backward. torch's softmax of rows that are shorter than a
vector register (16 floats) is slow too, and so is filling in a mask; here scale and mask are one addition, and short
rows are padded to a register (see docs/results.md).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from headway.kernels.dropout import dropout as apply_dropout

LONGEST_PLAIN = 256
"""Keys up to which plain products are the faster on CPU."""
REGISTER = 16
"""Floats that a processor's vector register holds."""


def fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V where the mask is True, with zeros for a query whose keys are all hidden.

    query: (..., query, d_k), key: (..., key, d_k), value: (..., key, d_v), mask: boolean, broadcastable to
    (..., query, key) -> (..., query, d_v).
    """
    if not _plain_is_faster(query, key):
        return F.scaled_dot_product_attention(query, key, value, mask, dropout)
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    scores: Tensor = _Scores.apply(query, key)  # type: ignore[assignment]  # (..., query, key)
    weights: Tensor = _Softmax.apply(scores, mask, 1.0 / math.sqrt(query.size(-1)))  # type: ignore[assignment]
    return apply_dropout(weights, dropout) @ value


def _plain_is_faster(query: Tensor, key: Tensor) -> bool:
    return query.device.type == "cpu" and query.dtype == torch.bfloat16 and key.size(-2) <= LONGEST_PLAIN


class _Scores(torch.autograd.Function):
    """query key^T. torch makes the gradient of the transposed key, and then transposes it; here it is the key's own."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor) -> Tensor:
        ctx.save_for_backward(query, key)
        return query @ key.transpose(-2, -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        [gradient], (query, key) = gradients, ctx.saved_tensors
        return gradient @ key, gradient.transpose(-2, -1) @ query


class _Softmax(torch.autograd.Function):
    """softmax(scores * scale) where the mask is True, 0 elsewhere, in fp32 at least and given in the type of scores."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        keys = scores.size(-1)
        x = scores.new_empty(
            *scores.shape[:-1], max(keys, REGISTER), dtype=torch.promote_types(scores.dtype, torch.float32)
        )
        x[..., keys:] = -torch.inf
        if mask is None:
            torch.mul(scores, scale, out=x[..., :keys])
        else:
            hidden = torch.zeros_like(mask, dtype=x.dtype).masked_fill_(~mask, torch.finfo(x.dtype).min)
            torch.add(hidden, scores, alpha=scale, out=x[..., :keys])
        weights = x.softmax(dim=-1)[..., :keys].to(scores.dtype)
        if mask is not None and not mask.any(dim=-1).all():  # rows whose keys are all hidden
            weights = weights.masked_fill(~mask, 0.0)
        ctx.save_for_backward(weights)
        ctx.scale = scale
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        [gradient], [weights] = gradients, ctx.saved_tensors
        wide = weights.to(torch.promote_types(weights.dtype, torch.float32))
        x = wide * gradient
        x -= wide * x.sum(dim=-1, keepdim=True)
        return x.mul_(ctx.scale).to(gradient.dtype), None, None
