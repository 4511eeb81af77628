"""The output layer and the cross-entropy of its logits in one pass, in less time and memory than torch's two."""

from itertools import repeat
from typing import Any

import torch
from torch import Tensor

CHUNK, ACCELERATOR_CHUNK = 2**20, 2**26
"""Logits of a chunk: on CPU as many as stay in the cache."""


def output_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    label_smoothing: float = 0.0,
    ignore_index: int = -1,
    weights: Tensor | None = None,
) -> Tensor:
    """torch's cross_entropy(hidden @ weight.T + bias, targets, reduction="sum", label_smoothing=..., ignore_index=...),
    in less time and memory. hidden: (tokens, d_model), weight: (vocabulary, d_model), bias: (vocabulary,), targets:
    (tokens,) -> scalar. `ignore_index`, an id of the vocabulary or -1 for none, is the target of tokens that
    don't count.

    Label smoothing mixes the one-hot target with the uniform distribution over the vocabulary: epsilon / V each
    (section 5.4).

    weights: (tokens,), by which the loss of each token is multiplied.
    """
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        hidden, weight = (x.to(torch.get_autocast_dtype(kind)) for x in (hidden, weight))
    loss: Tensor = _OutputCrossEntropy.apply(  # type: ignore[assignment]
        hidden, weight, bias, targets, label_smoothing, ignore_index, weights
    )
    return loss


class _OutputCrossEntropy(torch.autograd.Function):
    """The loss of a token, with p = softmax(logits) and the smoothed target q, is log sum exp(logits) - q . logits, and
    its gradient with respect to the logits p - q. Both come from one walk over the logits, a few rows at a time while
    they are in the cache; of all that is as large as the logits only this gradient is kept, in the type of `hidden`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
        ignore_index: int,
        weights: Tensor | None,
    ) -> Tensor:
        vocabulary, kind = len(weight), hidden.device.type
        uniform, one_hot = label_smoothing / vocabulary, 1.0 - label_smoothing
        wide = torch.promote_types(hidden.dtype, torch.float32)
        loss = torch.zeros((), dtype=wide, device=hidden.device)
        gradient = torch.mm(hidden, weight.T)  # (tokens, vocabulary): logits, until their turn has come
        rows = max(1, (CHUNK if kind == "cpu" else ACCELERATOR_CHUNK) // vocabulary)
        buffers = hidden.new_empty(2, min(rows, len(targets)), vocabulary, dtype=wide)
        shares = repeat(None) if weights is None else weights.to(wide).split(rows)
        for part, target, share in zip(gradient.split(rows), targets[:, None].split(rows), shares, strict=False):
            logits, p = buffers[:, : len(part)]  # (rows, vocabulary) each
            logits.copy_(part)
            if bias is not None:
                logits += bias
            torch.softmax(logits, dim=-1, out=p)
            log_sums = logits.amax(dim=-1) - p.amax(dim=-1).log()  # of exp(logits)
            losses = log_sums - one_hot * logits.gather(1, target)[:, 0] - uniform * logits.sum(dim=-1)
            losses.masked_fill_(target[:, 0] == ignore_index, 0.0)
            if share is not None:
                losses *= share
            loss += losses.sum()
            if any(ctx.needs_input_grad):
                p -= uniform
                p.scatter_add_(1, target, torch.full_like(target, -one_hot, dtype=wide))
                part.copy_(p if share is None else p.mul_(share[:, None]))
        ignored = targets == ignore_index
        if kind == "cpu":
            gradient.index_fill_(0, ignored.nonzero()[:, 0], 0.0)
        else:  # without waiting for their number
            gradient.masked_fill_(ignored[:, None], 0.0)
        ctx.save_for_backward(hidden, weight, gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        [scale] = gradients
        hidden, weight, gradient = ctx.saved_tensors
        of_weight = gradient.T @ hidden * scale if ctx.needs_input_grad[1] else None
        of_bias = gradient.sum(dim=0, dtype=scale.dtype) * scale if ctx.needs_input_grad[2] else None
        return gradient @ weight * scale, of_weight, of_bias, None, None, None, None
