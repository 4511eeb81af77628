"""The largest values of each row, several times as fast as `torch.topk` on CPU."""

import torch
from torch import Tensor

BLOCK = 64
"""Neighbours in a vocabulary of which only the best is looked at first."""


def likeliest(log_probabilities: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest values of each row, best first, and their ids, like `torch.topk`; both (rows, count). They are in the
    `count` blocks with the largest maxima, and maxima of whole blocks are cheap."""
    vocabulary = log_probabilities.size(1)
    blocks = vocabulary // BLOCK
    if blocks <= 2 * count:
        return log_probabilities.topk(count)
    maxima = log_probabilities[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK)).amax(dim=-1)  # (rows, blocks)
    within = torch.arange(BLOCK, device=maxima.device)
    ids = (maxima.topk(count)[1][:, :, None] * BLOCK + within).flatten(1)  # (rows, count * BLOCK)
    rest = torch.arange(blocks * BLOCK, vocabulary, device=maxima.device).expand(len(ids), -1)
    ids = torch.cat([ids, rest], dim=1)
    values, places = log_probabilities.gather(1, ids).topk(count)
    return values, ids.gather(1, places)
