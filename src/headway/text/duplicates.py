"""Whether a text was seen before, by 64-bit hashes. Each takes 8 bytes of memory, and for a moment twice that while
arrays are merged. Among a billion texts the chance that any two different ones share a hash is 3%.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def hash_of(text: str) -> int:
    """64 bits of BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


class SeenHashes:
    """The hashes seen so far, in sorted arrays, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.uint64]] = []

    def first(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Says for each hash whether it is new. Of equal hashes only the first one is."""
        unique, places = np.unique(hashes, return_index=True)
        new = np.ones(len(unique), dtype=bool)
        for seen in self._sorted:
            found = np.minimum(np.searchsorted(seen, unique), len(seen) - 1)
            new &= seen[found] != unique
        if new.any():
            self._sorted.append(unique[new])
        while len(self._sorted) > 1 and len(self._sorted[-2]) < 2 * len(self._sorted[-1]):
            both = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            both.sort(kind="stable")  # merges, because both parts are sorted
            self._sorted.append(both)
        first = np.zeros(len(hashes), dtype=bool)
        first[places[new]] = True
        return first
