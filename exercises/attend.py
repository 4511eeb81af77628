"""Exercise 1: attention. Equation 1 of "Attention Is All You Need": softmax(Q K^T / sqrt(d_k)) V."""

from torch import Tensor


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """query: (..., queries, d_k), key: (..., keys, d_k), value: (..., keys, d_v).
    mask: boolean, True = the query may read the key. Its shape broadcasts to (..., queries, keys).

    Returns the output (..., queries, d_v) and the weights (..., queries, keys). Each row of the weights sums to 1,
    and a hidden key has weight 0. Every query may read at least one key.
    """
    raise NotImplementedError
