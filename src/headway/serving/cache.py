"""The latest answers, by sentence and options."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_CHARACTERS = 5_000_000
"""Of all that is kept: bounds the memory, however long the sentences are and however many translations each has."""


class LatestCache(Generic[Key, Value]):
    """Keeps the values that were used last, `size` of them, with `characters` together."""

    def __init__(self, size: int, characters: int = MOST_CHARACTERS) -> None:
        self._size, self._characters = size, characters
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._kept = 0
        """Characters."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: Key, value: Value, characters: int) -> None:
        """Keeps a value that has so many characters, its key's among them."""
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = value, characters
        self._kept += characters - before
        while len(self._values) > self._size or self._kept > self._characters:
            _, (_, gone) = self._values.popitem(last=False)
            self._kept -= gone
