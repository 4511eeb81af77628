"""Exercise 2: masks. Boolean, True = may be read. A row for each query, a column for each key (section 3.2.3)."""

from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Which keys are real tokens. ids: (batch, length) -> (batch, 1, length), the same row for all queries."""
    raise NotImplementedError


def causal_mask(length: int) -> Tensor:
    """Query i reads the keys 0 .. i: itself and what comes before it. -> (length, length)"""
    raise NotImplementedError


def target_mask(ids: Tensor, pad_id: int) -> Tensor:
    """For the decoder's self-attention: neither the future nor padding. It may use the other two.

    ids: (batch, length) -> (batch, length, length)"""
    raise NotImplementedError
