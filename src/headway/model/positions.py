"""Positions, added to the embeddings: the paper's sine and cosine table (section 3.5), fairseq's, learned vectors."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same. -> (length, d_model)"""
    if torch.get_default_device().type == "meta":  # of such a model only the shapes are wanted
        return torch.empty(length, d_model)
    position = torch.arange(length)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angles = position / 10000.0 ** (even / d_model)  # (length, ceil(d_model / 2))
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table.to(torch.float32)


FIRST_PLACE = 2
"""Place of a sequence's first token in fairseq, which counts from the id of the padding, 1."""


def fairseq_table(length: int, d_model: int) -> Tensor:
    """The table of the authors' code, tensor2tensor, as fairseq has it: all sines, then all cosines of the same, the
    last of them with the longest wave. In single precision, as there. -> (length, d_model)"""
    half = d_model // 2
    frequencies = (torch.arange(half).float() * -(math.log(10000.0) / max(half - 1, 1))).exp()
    angles = torch.arange(FIRST_PLACE, FIRST_PLACE + length).float()[:, None] * frequencies  # (length, half)
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, d_model % 2))


class SinusoidalPositions(nn.Module):
    """A fixed table, grown when a longer sequence comes; nothing of it is learned or saved."""

    def __init__(self, d_model: int, table: Callable[[int, int], Tensor] = sinusoidal_table) -> None:
        """table: gives the vectors of the first places, of so many and of this width."""
        super().__init__()
        self.d_model, self.table_of = d_model, table
        self.table: Tensor
        self.register_buffer("table", table(256, d_model), persistent=False)

    def forward(self, length: int, start: int = 0) -> Tensor:
        """The vectors of positions start .. start + length - 1. -> (length, d_model)"""
        table = self.table  # another thread may replace it meanwhile
        if start + length > table.size(0):
            table = self.table_of(2 * (start + length), self.d_model).to(table.device, table.dtype)
            self.table = table
        return table[start : start + length]


class LearnedPositions(nn.Module):
    """One trained vector for each of `max_length` positions."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, length: int, start: int = 0) -> Tensor:
        """The vectors of positions start .. start + length - 1. -> (length, d_model)"""
        if start + length > self.weight.size(0):
            raise ValueError(
                f"a sequence of {start + length} positions is longer than max_length={self.weight.size(0)}"
            )
        return self.weight[start : start + length]
