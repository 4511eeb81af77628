"""Packing: pairs of sentences into rows of a given number of places, so that little of a row is left."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True, eq=False)
class _Row:
    source_room: int
    """Places that are left."""
    target_room: int
    pairs: list[int]


class _OpenRows:
    """Rows by the room that they have left. Sets of numbers are the bits of integers."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], list[_Row]] = {}
        """By source room and target room."""
        self._targets: defaultdict[int, int] = defaultdict(int)
        """Of rows whose source room is this, and no larger than their target room: the target rooms."""
        self._sources: defaultdict[int, int] = defaultdict(int)
        """Of rows whose target room is this, and smaller than their source room: the source rooms."""
        self._rooms = 0
        """The rooms on the side that has less of it."""

    def add(self, row: _Row) -> None:
        source, target = row.source_room, row.target_room
        if alike := self._rows.get((source, target)):
            alike.append(row)
            return
        self._rows[source, target] = [row]
        if source <= target:
            self._targets[source] |= 1 << target
        else:
            self._sources[target] |= 1 << source
        self._rooms |= 1 << min(source, target)

    def take(self, source: int, target: int) -> _Row | None:
        """Of the rows with room for the pair, the one with the least on the side that has less."""
        least = min(source, target)
        rooms = self._rooms >> least << least
        while rooms:
            room = (rooms & -rooms).bit_length() - 1
            if room >= source and (fitting := self._targets[room] >> target << target):
                return self._pop(room, (fitting & -fitting).bit_length() - 1)
            if room >= target and (fitting := self._sources[room] >> source << source):
                return self._pop((fitting & -fitting).bit_length() - 1, room)
            rooms &= rooms - 1
        return None

    def _pop(self, source: int, target: int) -> _Row:
        alike = self._rows[source, target]
        row = alike.pop()
        if not alike:
            if source <= target:
                self._targets[source] ^= 1 << target
            else:
                self._sources[target] ^= 1 << source
            room = min(source, target)
            if not (self._targets[room] or self._sources[room]):
                self._rooms ^= 1 << room
        return row


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
    before = 1
    for source, target, alike in _longest_first(pairs, source_lengths, target_lengths, shape):
        size = row_size(source, target, shape)
        whole = size * shape[0], size * shape[1]
        if size < before:
            rows = packed.get(before, [])
            for _ in range(-len(rows) % (rows_per_batch // before)):
                rows.append(row := _Row(before * shape[0], before * shape[1], []))
                open_rows.add(row)
        before = size
        placed = 0
        while placed < len(alike) and (row := open_rows.take(source, target)) is not None:
            # What fits once more leaves the least room in the same row again.
            count = min(len(alike) - placed, row.source_room // source, row.target_room // target)
            row.pairs += alike[placed : placed + count]
            row.source_room -= count * source
            row.target_room -= count * target
            open_rows.add(row)
            placed += count
        count = min(whole[0] // source, whole[1] // target)
        for start in range(placed, len(alike), count):
            together = alike[start : start + count]
            row = _Row(whole[0] - len(together) * source, whole[1] - len(together) * target, together)
            packed.setdefault(size, []).append(row)
            open_rows.add(row)
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
