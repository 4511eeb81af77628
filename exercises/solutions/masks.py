"""Solution of exercise 2."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    return (ids != pad_id)[:, None, :]  # (batch, 1, length)


def causal_mask(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def target_mask(ids: Tensor, pad_id: int) -> Tensor:
    return padding_mask(ids, pad_id) & causal_mask(ids.size(1))  # (batch, length, length)
