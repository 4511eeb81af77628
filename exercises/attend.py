"""Exercise 1: attention. Equation 1 of "Attention Is All You Need": softmax(Q K^T / sqrt(d_k)) V."""

from torch import Tensor


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """query: (..., queries, d_k), key: (..., keys, d_k), value: (..., keys, d_v).
    mask: boolean, True = this query may read this key, of a shape that broadcasts to (..., queries, keys).

    Returns the output (..., queries, d_v) and the weights (..., queries, keys). Each row of the weights has the sum 1,
    and a hidden key has the weight 0. Every query may read one key at least.
    """
    raise NotImplementedError
