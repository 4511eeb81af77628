"""Exercise 4: one layer of the decoder, from parts that are given (section 3.1, Figure 1, right half).

The layer has three sublayers, in this order: self-attention, attention to the memory, which is the encoder's output,
and the feed-forward network. As in the paper, each has a residual connection around it and a normalisation after it:
norm(x + sublayer(x)).
"""

from checking.parts import Parts
from torch import Tensor


def decoder_layer(x: Tensor, memory: Tensor, causal: Tensor, memory_mask: Tensor, parts: Parts) -> Tensor:
    """x: (batch, target length, d_model), memory: (batch, source length, d_model). `causal` is the mask of the
    self-attention, `memory_mask` that of the attention to the memory. -> (batch, target length, d_model)

    `parts` has `self_attention`, `cross_attention`, `feed_forward`, `norm1`, `norm2`, `norm3`. An attention is called
    with query, key, value and mask, every other part with one tensor.
    """
    raise NotImplementedError
