"""What the decoder layer of exercise 4 is made of."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

Attention = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
"""Called with query, key, value, mask; returns the output."""
Step = Callable[[Tensor], Tensor]


class Parts(NamedTuple):
    """Two attentions, the feed-forward network, and a normalisation for each of the three sublayers."""

    self_attention: Attention
    cross_attention: Attention
    feed_forward: Step
    norm1: Step
    norm2: Step
    norm3: Step
