"""Packing: pairs of sentences into rows of a given number of places, so that little of a row is left."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True, eq=False)
class _Row:
    source_room: int
    """Places that are left."""
    target_room: int
    pairs: list[int] = field(default_factory=list)


class _OpenRows:
    """Rows by the room that they have left."""

    def __init__(self) -> None:
        self._by_room: dict[int, dict[_Row, None]] = {}
        """The rows with so many places left, on the side that has fewer, in the order in which they came."""
        self._rooms = 0
        """The bit of each number of places that some row has left."""

    def add(self, row: _Row) -> None:
        room = min(row.source_room, row.target_room)
        self._by_room.setdefault(room, {})[row] = None
        self._rooms |= 1 << room

    def take(self, source: int, target: int) -> _Row | None:
        """Of the rows with room for the pair, the one with the least."""
        room = min(source, target)
        rooms = self._rooms >> room << room
        while rooms:
            room = (rooms & -rooms).bit_length() - 1
            rows = self._by_room[room]
            for row in rows:
                if row.source_room >= source and row.target_room >= target:
                    del rows[row]
                    if not rows:
                        self._rooms ^= 1 << room
                    return row
            rooms &= rooms - 1
        return None


def pack(
    pairs: NDArray[np.int64],
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    shape: tuple[int, int],
    rows_per_batch: int,
) -> dict[int, list[list[int]]]:
    """Rows of pairs, by their size: 1 for rows of the given shape (source places, target places), 2, 4, ... for
    multiples of it, where a pair needs more. No pair may need more than `rows_per_batch` times the shape. The lengths
    are those of the pairs, one each.

    Best-fit decreasing: longest first, a pair goes where it leaves least room. Rows of size 2 and more fill whole
    batches, of about as many places as `rows_per_batch` rows of size 1 have, with shorter pairs too while there are
    any.
    """
    packed: dict[int, list[_Row]] = {}
    open_rows = _OpenRows()

    def empty_row(size: int) -> _Row:
        packed.setdefault(size, []).append(row := _Row(size * shape[0], size * shape[1]))
        return row

    before = 1
    for source, target, alike in _longest_first(pairs, source_lengths, target_lengths, shape):
        size = row_size(source, target, shape)
        if size < before:
            for _ in range(-len(packed.get(before, ())) % (rows_per_batch // before)):
                open_rows.add(empty_row(before))
        before = size
        placed = 0
        while placed < len(alike):  # what fits once more leaves the least room in the same row again
            row = open_rows.take(source, target) or empty_row(size)
            count = min(len(alike) - placed, row.source_room // source, row.target_room // target)
            row.pairs += alike[placed : placed + count]
            row.source_room -= count * source
            row.target_room -= count * target
            open_rows.add(row)
            placed += count
    return {size: [row.pairs for row in rows if row.pairs] for size, rows in packed.items()}


def row_size(source: int, target: int, shape: tuple[int, int]) -> int:
    """How many times as long as the shape a row must be for the pair: 1, 2, 4, ..."""
    return 2 ** math.ceil(math.log2(max(source / shape[0], target / shape[1], 1)))


def _longest_first(
    pairs: NDArray[np.int64],
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    shape: tuple[int, int],
) -> Iterator[tuple[int, int, list[int]]]:
    """Source length, target length and the pairs that have them; longest first, as a share of a row."""
    needed = np.maximum(source_lengths / shape[0], target_lengths / shape[1])
    order = np.lexsort((target_lengths, source_lengths, -needed))
    sources, targets = source_lengths[order], target_lengths[order]
    changes = ((np.diff(sources) != 0) | (np.diff(targets) != 0)).nonzero()[0] + 1
    ordered = pairs[order].tolist()
    for start, end in itertools.pairwise([0, *changes.tolist(), len(ordered)]):
        if start < end:
            yield int(sources[start]), int(targets[start]), ordered[start:end]
