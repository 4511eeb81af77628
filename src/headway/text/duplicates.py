"""Whether something was seen before, by hashes of 64 bits: 8 bytes of memory for each, and while more come in for a
moment as much again. Among a billion the chance that any two different ones are taken for one is 3%.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def hash_of(text: str) -> int:
    """64 bits of BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


class SeenHashes:
    """The hashes that came in so far, in sorted arrays, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.uint64]] = []

    def first(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each whether it comes in for the first time, repeats among them aside."""
        unique, places = np.unique(hashes, return_index=True)
        new = np.ones(len(unique), dtype=bool)
        for seen in self._sorted:
            found = np.minimum(np.searchsorted(seen, unique), len(seen) - 1)
            new &= seen[found] != unique
        if new.any():
            self._sorted.append(unique[new])
        while len(self._sorted) > 1 and len(self._sorted[-2]) < 2 * len(self._sorted[-1]):
            both = np.concatenate([self._sorted.pop(), self._sorted.pop()])
            both.sort(kind="stable")  # which merges what is sorted already
            self._sorted.append(both)
        first = np.zeros(len(hashes), dtype=bool)
        first[places[new]] = True
        return first
