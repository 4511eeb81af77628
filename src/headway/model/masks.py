"""Masks: who may attend to whom. Boolean, True = may attend, broadcastable to (batch, heads, query, key).

Section 3.2.3 of the paper: padding is never attended to, and a target position never sees a later one.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Hides padding keys. ids: (batch, length) -> (batch, 1, 1, length)."""
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """The look-ahead mask: query i sees keys 0..i. -> (1, 1, length, length)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def target_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Look-ahead and padding together, for the decoder's self-attention.

    ids: (batch, length) -> (batch, 1, length, length).

    The first id is the start symbol and never padding, also in models whose start symbol is the pad id (Marian).
    """
    visible = padding_mask(ids, pad_id)
    visible[..., 0] = True
    return visible & causal_mask(ids.size(1), ids.device)


def cross_mask(source_mask: Tensor, target_ids: Tensor | None = None, pad_id: int = 0) -> Tensor:
    """For encoder-decoder attention: hides source padding and, where `target_ids` is given, the rows of target padding.

    source_mask: (batch, 1, 1, source length), target_ids: (batch, target length)
    -> (batch, 1, 1 or target length, source length). A hidden row attends to nothing: zero weights, zero output.
    """
    if target_ids is None:
        return source_mask
    real = target_ids != pad_id
    real[:, 0] = True  # the start symbol, see target_mask
    return source_mask & real[:, None, :, None]
