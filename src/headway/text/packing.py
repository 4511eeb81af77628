"""Packing: pairs of sentences into rows of a given number of places, so that little of a row is left."""

from __future__ import annotations

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
    multiples of it, where a pair needs more. No pair may need more than `rows_per_batch` times the shape.

    Best-fit decreasing: longest first, a pair goes where it leaves least room. Rows of size 2 and more fill whole
    batches, of about as many places as `rows_per_batch` rows of size 1 have, with shorter pairs too while there are
    any.
    """
    sources, targets = source_lengths[pairs], target_lengths[pairs]
    needed = np.maximum(sources / shape[0], targets / shape[1])
    sizes = 2 ** np.ceil(np.log2(np.maximum(needed, 1))).astype(np.int64)
    longest_first = np.argsort(-needed, kind="stable")
    columns = (column[longest_first].tolist() for column in (pairs, sources, targets, sizes))
    packed: dict[int, list[_Row]] = {}
    open_rows = _OpenRows()

    def empty_row(size: int) -> _Row:
        packed.setdefault(size, []).append(row := _Row(size * shape[0], size * shape[1]))
        return row

    before = 1
    for pair, source, target, size in zip(*columns, strict=True):
        if size < before:
            for _ in range(-len(packed.get(before, ())) % (rows_per_batch // before)):
                open_rows.add(empty_row(before))
        before = size
        row = open_rows.take(source, target) or empty_row(size)
        row.pairs.append(pair)
        row.source_room -= source
        row.target_room -= target
        open_rows.add(row)
    return {size: [row.pairs for row in rows if row.pairs] for size, rows in packed.items()}
