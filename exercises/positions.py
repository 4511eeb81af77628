"""Exercise 3: positions. Section 3.5 of the paper:

PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
"""

from torch import Tensor


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """A row for each position 0 .. length - 1. -> (length, d_model). d_model is even."""
    raise NotImplementedError
