"""Exercise 2: masks. Boolean, True = may be read. A row for each query, a column for each key (section 3.2.3)."""

from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """True where the key is a real token. ids: (batch, length) -> (batch, 1, length), one row for all queries."""
    raise NotImplementedError


def causal_mask(length: int) -> Tensor:
    """Query i may read the keys 0 .. i: itself and those before it. -> (length, length)"""
    raise NotImplementedError


def target_mask(ids: Tensor, pad_id: int) -> Tensor:
    """For the decoder's self-attention: hides the future and padding. You may call the other two functions.

    ids: (batch, length) -> (batch, length, length)"""
    raise NotImplementedError
