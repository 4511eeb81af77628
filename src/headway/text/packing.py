"""Packing: pairs of sentences into rows of a given number of places, so that little of a row is left."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Room = tuple[int, int]
"""Places that are left in a row, of source and target."""


class _OpenRows:
    """Rows by the room that they have left. Sets of numbers are the bits of integers."""

    def __init__(self) -> None:
        self._rows: dict[Room, list[list[int]]] = {}
        self._targets: defaultdict[int, int] = defaultdict(int)
        """Of rows whose source room is this, and no larger than their target room: the target rooms."""
        self._sources: defaultdict[int, int] = defaultdict(int)
        """Of rows whose target room is this, and smaller than their source room: the source rooms."""
        self._rooms = 0
        """The rooms on the side that has less of it."""

    def add(self, room: Room, rows: list[list[int]]) -> None:
        source, target = room
        if not (source and target and rows):
            return
        if alike := self._rows.get(room):
            alike += rows
            return
        self._rows[room] = rows
        if source <= target:
            self._targets[source] |= 1 << target
        else:
            self._sources[target] |= 1 << source
        self._rooms |= 1 << min(source, target)

    def best(self, source: int, target: int) -> Room | None:
        """Of the rooms for the pair, the one with the least on the side that has less."""
        least = min(source, target)
        rooms = self._rooms >> least << least
        while rooms:
            room = (rooms & -rooms).bit_length() - 1
            if room >= source and (fitting := self._targets[room] >> target << target):
                return room, (fitting & -fitting).bit_length() - 1
            if room >= target and (fitting := self._sources[room] >> source << source):
                return (fitting & -fitting).bit_length() - 1, room
            rooms &= rooms - 1
        return None

    def take(self, room: Room, count: int) -> list[list[int]]:
        """Up to `count` rows with just this room, the last that came first."""
        alike = self._rows[room]
        taken = alike[: -count - 1 : -1]
        del alike[-count:]
        if alike:
            return taken
        del self._rows[room]
        source, target = room
        if source <= target:
            self._targets[source] ^= 1 << target
        else:
            self._sources[target] ^= 1 << source
        less = min(room)
        if not (self._targets[less] or self._sources[less]):
            self._rooms ^= 1 << less
        return taken


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
    packed: defaultdict[int, list[list[int]]] = defaultdict(list)
    open_rows = _OpenRows()
    before = 1
    for source, target, alike in _longest_first(pairs, source_lengths, target_lengths, shape):
        size = row_size(source, target, shape)
        if size < before:
            longer = packed.get(before, [])
            empty: list[list[int]] = [[] for _ in range(-len(longer) % (rows_per_batch // before))]
            longer += empty
            open_rows.add((before * shape[0], before * shape[1]), empty)
        before = size
        placed = 0
        while placed < len(alike):
            best = open_rows.best(source, target)
            room = best or (size * shape[0], size * shape[1])
            # What fits once more leaves the least room in the same row again.
            each = min(room[0] // source, room[1] // target)
            count = math.ceil((len(alike) - placed) / each)
            if best:
                rows = open_rows.take(best, count)
            else:
                rows = [[] for _ in range(count)]
                packed[size] += rows
            for row in rows:
                row.extend(alike[placed : placed + each])
                placed += each
            lacking = max(0, placed - len(alike))  # in the last row
            if lacking:
                fewer = each - lacking
                open_rows.add((room[0] - fewer * source, room[1] - fewer * target), [rows.pop()])
            open_rows.add((room[0] - each * source, room[1] - each * target), rows)
    return {size: [row for row in rows if row] for size, rows in packed.items()}


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
