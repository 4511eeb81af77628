"""Positions, added to the embeddings: the paper's sine and cosine table (section 3.5) and learned vectors."""

import torch
from torch import Tensor, nn


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same. -> (length, d_model)"""
    if torch.get_default_device().type == "meta":  # of such a model only the shapes are wanted
        return torch.empty(length, d_model)
    position = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    angles = position / 10000.0 ** (even / d_model)  # (length, ceil(d_model / 2))
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table.to(torch.float32)


class SinusoidalPositions(nn.Module):
    """The fixed table, grown when a longer sequence comes; nothing of it is learned or saved."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.table: Tensor
        self.register_buffer("table", sinusoidal_table(256, d_model), persistent=False)

    def forward(self, length: int, start: int = 0) -> Tensor:
        """The vectors of positions start .. start + length - 1. -> (length, d_model)"""
        table = self.table  # another thread may replace it meanwhile
        if start + length > table.size(0):
            table = sinusoidal_table(2 * (start + length), self.d_model).to(table.device, table.dtype)
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
