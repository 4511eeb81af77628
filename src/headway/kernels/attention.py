"""The fused form of `headway.model.attend`: torch's own kernel, or for bf16 on CPU, at the lengths of sentences, plain
products around torch's softmax, which are several times faster, above all backward.

Scale and mask are part of the product of queries and keys. torch's softmax is slow on rows that don't fill vector
registers, so keys are padded (docs/tried.md).
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from headway.kernels.dropout import dropout as apply_dropout

LONGEST_PLAIN = 256
"""Number of keys up to which plain products are faster on CPU."""
REGISTER = 16
"""Floats in a processor's vector register; weights are computed for multiples of it."""


def fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V where the mask is True, with zeros for a query whose keys are all hidden.

    query: (..., query, d_k), key: (..., key, d_k), value: (..., key, d_v), mask: boolean, broadcastable to
    (..., query, key) -> (..., query, d_v).
    """
    if not _plain_is_faster(query, key):
        return F.scaled_dot_product_attention(query, key, value, mask, dropout)
    if missing := -key.size(-2) % REGISTER:
        real = torch.arange(key.size(-2) + missing) < key.size(-2)
        mask = real if mask is None else F.pad(mask.expand(*mask.shape[:-1], key.size(-2)), (0, missing))
        key, value = (F.pad(x, (0, 0, 0, missing)) for x in (key, value))
    weights = _Scores.apply(query, key, mask, 1.0 / math.sqrt(query.size(-1))).softmax(dim=-1)  # type: ignore[union-attr]
    if mask is not None and not mask.any(dim=-1).all():  # rows whose keys are all hidden
        weights = weights.masked_fill(~mask, 0.0)
    return apply_dropout(weights, dropout) @ value


def _plain_is_faster(query: Tensor, key: Tensor) -> bool:
    return query.device.type == "cpu" and query.dtype == torch.bfloat16 and key.size(-2) <= LONGEST_PLAIN


class _Scores(torch.autograd.Function):
    """query key^T * scale where the mask is True, about the least number of the type elsewhere. (..., query, key)"""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        shape = *query.shape[:-1], key.size(-2)
        query, key = _all_heads(query), _all_heads(key)
        ctx.save_for_backward(query, key)
        ctx.scale = scale
        if mask is None:
            return torch.bmm(query, key.transpose(1, 2)).mul_(scale).view(shape)
        hidden = query.new_zeros(mask.shape).masked_fill_(~mask, torch.finfo(query.dtype).min)
        scores = torch.baddbmm(_all_heads(hidden.expand(shape)), query, key.transpose(1, 2), alpha=scale)
        return scores.view(shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        [gradient], (query, key) = gradients, ctx.saved_tensors
        outer = gradient.shape[:-2]
        gradient = _all_heads(gradient)
        of_query = torch.bmm(gradient, key).mul_(ctx.scale)
        of_key = torch.bmm(gradient.transpose(1, 2), query).mul_(ctx.scale)
        return of_query.view(*outer, *query.shape[1:]), of_key.view(*outer, *key.shape[1:]), None, None


def _all_heads(x: Tensor) -> Tensor:
    """(..., length, width) -> (all before it, length, width)"""
    return x.reshape(-1, *x.shape[-2:])
