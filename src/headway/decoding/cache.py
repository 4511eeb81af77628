"""Key-value caches: a step of the decoder computes one position, and the encoder's keys and values only once."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from headway.model.attention import KeysValues


class GrowingCache:
    """Keys and values of the target positions so far, for the decoder's self-attention.

    Buffers are (rows, heads, capacity, d_head); the capacity doubles when it is full.
    """

    def __init__(self) -> None:
        self._buffers: KeysValues | None = None
        self._length = 0

    def extend(self, project: Callable[[Tensor, Tensor], KeysValues], key: Tensor, value: Tensor) -> KeysValues:
        """key, value: (rows, new, d_model) -> all keys and values, (rows, heads, length, d_head) each."""
        new = project(key, value)
        start, self._length = self._length, self._length + key.size(1)
        self._buffers = tuple(self._grown(i, tensor, start) for i, tensor in enumerate(new))  # type: ignore[assignment]
        assert self._buffers is not None
        for buffer, tensor in zip(self._buffers, new, strict=True):
            buffer[:, :, start : self._length] = tensor
        keys, values = self._buffers
        return keys[:, :, : self._length], values[:, :, : self._length]

    def select(self, rows: Tensor) -> None:
        """Keeps the given rows, in their order; a row may be taken several times."""
        if self._buffers is not None:
            keys, values = self._buffers
            self._buffers = keys[rows], values[rows]

    def _grown(self, index: int, new: Tensor, filled: int) -> Tensor:
        if self._buffers is not None and self._buffers[index].size(2) >= self._length:
            return self._buffers[index]
        rows, heads, _, d_head = new.shape
        buffer = new.new_empty(rows, heads, max(16, 2 * self._length), d_head)
        if self._buffers is not None:
            buffer[:, :, :filled] = self._buffers[index][:, :, :filled]
        return buffer


class MemoryCache:
    """Keys and values of the encoder's output, for the encoder-decoder attention; they never change."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self._keys, self._values = keys, values

    def extend(self, project: Callable[[Tensor, Tensor], KeysValues], key: Tensor, value: Tensor) -> KeysValues:
        return self._keys, self._values

    def select(self, rows: Tensor) -> None:
        """Keeps the given rows, in their order."""
        self._keys, self._values = self._keys[rows], self._values[rows]
