"""Solution of exercise 3."""

import torch
from torch import Tensor


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    position = torch.arange(length)[:, None]
    even = torch.arange(0, d_model, 2)  # 2i
    angles = position / 10000 ** (even / d_model)  # (length, d_model / 2)
    table = torch.empty(length, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table
