"""Solution of exercise 4."""

from checking.parts import Parts
from torch import Tensor


def decoder_layer(x: Tensor, memory: Tensor, causal: Tensor, memory_mask: Tensor, parts: Parts) -> Tensor:
    x = parts.norm1(x + parts.self_attention(x, x, x, causal))
    x = parts.norm2(x + parts.cross_attention(x, memory, memory, memory_mask))
    return parts.norm3(x + parts.feed_forward(x))
