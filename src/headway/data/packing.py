"""Packs pairs of sentences into rows of a given number of places, with little room left over."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Room = tuple[int, int]
"""The free places of a row, source and target."""


class Joined(NamedTuple):
    """The ids of sentences, one sentence after another."""

    ids: NDArray[Any]
    lengths: NDArray[np.int64]
    """The length of each sentence, in ids."""

    @classmethod
    def of(cls, sentences: Sequence[NDArray[Any]]) -> Joined:
        return cls(np.concatenate([np.zeros(0, np.int64), *sentences]), np.array(list(map(len, sentences)), np.int64))

    def beginning_with(self, id_: int) -> Joined:
        return Joined(np.insert(self.ids, np.cumsum(self.lengths) - self.lengths, id_), self.lengths + 1)

    def ending_with(self, id_: int) -> Joined:
        return Joined(np.insert(self.ids, np.cumsum(self.lengths), id_), self.lengths + 1)


def ranges(starts: NDArray[np.int64] | int, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The consecutive numbers from each start on, one range after another."""
    return np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)


class _OpenRows:
    """Rows by the room that they have left."""

    def __init__(self) -> None:
        self._rows: dict[Room, list[list[int]]] = {}
        self._tightest_first: list[tuple[int, bool, Room]] = []
        """Each room after the smaller of its sides, and whether that is the target."""

    def add(self, room: Room, rows: list[list[int]]) -> None:
        if not (all(room) and rows):
            return
        if room not in self._rows:
            insort(self._tightest_first, _tightness(room))
        self._rows.setdefault(room, []).extend(rows)

    def best(self, source: int, target: int) -> Room | None:
        """The tightest room for the pair: the one whose smaller side is smallest."""
        order = self._tightest_first
        for place in range(bisect_left(order, (min(source, target),)), len(order)):
            room = order[place][2]
            if room[0] >= source and room[1] >= target:
                return room
        return None

    def take(self, room: Room, count: int) -> list[list[int]]:
        """Removes and returns up to `count` rows with exactly this room, the newest first."""
        alike = self._rows[room]
        taken = alike[: -count - 1 : -1]
        del alike[-count:]
        if not alike:
            del self._rows[room], self._tightest_first[bisect_left(self._tightest_first, _tightness(room))]
        return taken


def _tightness(room: Room) -> tuple[int, bool, Room]:
    return min(room), room[0] > room[1], room


def pack(
    pairs: NDArray[np.int64],
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    shape: tuple[int, int],
    rows_per_batch: int,
) -> dict[int, list[list[int]]]:
    """Rows of pairs, by the size of the row: 1 for the given shape (source places, target places), and 2, 4, ... for
    the multiples of it that longer pairs need. No pair may need more than `rows_per_batch` times the shape.

    Best-fit decreasing: pairs are placed longest first, each where it leaves the least room. Rows of size 2 and more
    fill whole batches, which have about as many places as `rows_per_batch` rows of size 1. Shorter pairs go there too.
    """
    packed: defaultdict[int, list[list[int]]] = defaultdict(list)
    open_rows = _OpenRows()
    before = 1
    needed = np.maximum(source_lengths / shape[0], target_lengths / shape[1])  # rows, at least
    order = np.lexsort((target_lengths, source_lengths, -needed))
    columns = (column[order].tolist() for column in (source_lengths, target_lengths, pairs))
    for (source, target), group in groupby(zip(*columns, strict=True), key=itemgetter(0, 1)):
        alike = [pair for *_, pair in group]
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
            # As long as another such pair fits into a row, that row is the best one for it.
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
            lacking = max(0, placed - len(alike))  # pairs that the last row could still take
            if lacking:
                fewer = each - lacking
                open_rows.add((room[0] - fewer * source, room[1] - fewer * target), [rows.pop()])
            open_rows.add((room[0] - each * source, room[1] - each * target), rows)
    return {size: [row for row in rows if row] for size, rows in packed.items()}


def row_size(source: int, target: int, shape: tuple[int, int]) -> int:
    """The multiple of the shape that a row must have for the pair: 1, 2, 4, ..."""
    return 2 ** math.ceil(math.log2(max(source / shape[0], target / shape[1], 1)))
