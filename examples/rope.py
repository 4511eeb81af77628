"""Rotary positions (Su et al., 2021) as a subclass of the core of attention."""

import torch
from torch import Tensor

from headway import ModelConfig, Transformer
from headway.model import ScaledDotProductAttention


def rotate(x: Tensor, num_heads: int) -> Tensor:
    """Rotates each pair of features of a head by an angle that grows with the position. (batch, length, d_model)"""
    length = x.size(1)
    pairs = x.view(*x.shape[:2], num_heads, -1, 2)  # (batch, length, heads, d_head / 2, 2)
    speeds = 10000.0 ** -torch.linspace(0, 1, pairs.size(3), device=x.device)
    angles = torch.arange(length, device=x.device)[:, None, None] * speeds  # (length, 1, d_head / 2)
    cosine, sine, (first, second) = angles.cos(), angles.sin(), pairs.unbind(-1)
    return torch.stack([first * cosine - second * sine, first * sine + second * cosine], -1).view(x.shape)


class Rotary(ScaledDotProductAttention):
    """Attention whose scores depend on the distance between query and key, not on their positions."""

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, *mask: Tensor | None, **options: bool):
        return super().forward(rotate(queries, self.num_heads), rotate(keys, self.num_heads), values, *mask, **options)


def main() -> Transformer:
    """A Transformer with rotary positions in its self-attention, beside those added to its embeddings."""
    model = Transformer(ModelConfig.preset("tiny", source_vocab_size=100, target_vocab_size=100))
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.self_attention.core = Rotary(layer.self_attention.num_heads)
    return model


if __name__ == "__main__":
    print("logits:", tuple(main()(torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])).shape))
