"""Rotary positions (Su et al., 2021) as a subclass of the core of attention.

In this folder: headway train RECIPE model.core=rope:Rotary, then headway translate RUN --core rope:Rotary
"""

import torch
from torch import Tensor

from headway import ModelConfig, Transformer
from headway.model import ScaledDotProductAttention


def rotate(x: Tensor, num_heads: int, first: int = 0) -> Tensor:
    """Rotates each pair of features of a head by an angle that grows with the position. (batch, length, d_model)"""
    pairs = x.view(*x.shape[:2], num_heads, -1, 2)  # (batch, length, heads, d_head / 2, 2)
    places = torch.arange(first, first + x.size(1), device=x.device)
    speeds = 10000.0 ** -torch.linspace(0, 1, pairs.size(3), device=x.device)
    angles = places[:, None, None] * speeds  # (length, 1, d_head / 2)
    cosine, sine, (a, b) = angles.cos().to(x), angles.sin().to(x), pairs.unbind(-1)
    return torch.stack([a * cosine - b * sine, a * sine + b * cosine], -1).view(x.shape)


class Rotary(ScaledDotProductAttention):
    """Attention whose scores depend on the distance between query and key. A step of search has one query, the last."""

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, *mask: Tensor | None, **options: bool):
        first = keys.size(1) - queries.size(1)
        rotated = rotate(queries, self.num_heads, first), rotate(keys, self.num_heads)
        return super().forward(*rotated, values, *mask, **options)


def main() -> Transformer:
    """A Transformer with rotary positions in its self-attention, beside those added to its embeddings."""
    config = ModelConfig.preset("tiny", source_vocab_size=100, target_vocab_size=100, core="rope:Rotary")
    return Transformer(config, Rotary)


if __name__ == "__main__":
    print("logits:", tuple(main()(torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])).shape))
