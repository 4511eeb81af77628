"""Plans batches, a pure function of (lengths, budget, seed, epoch, step).

Sentences are packed: several share a row, in any order and of any lengths, so few places are padding. Nearly all
micro-batches of a run have the same shape, so memory doesn't grow after the first one, and kernels are compiled for few
shapes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from headway.data.packing import Joined, pack, ranges, row_size
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

ROW = 64
"""Places of a row on its longer side: more if sentences are long, fewer if the budget is small."""
ROWS = 8
"""Rows that the budget of a micro-batch should have room for. Rows are shortened to fit."""
WINDOW = 32
"""Micro-batches whose sentences are drawn and then packed together."""
PART = 2**18
"""Most pairs of an epoch that are planned at a time."""
RUNS = 2**20
"""Most runs of consecutive pairs that make up an epoch's order."""
PLAN = 4
"""Version of the plan. It changes when the same seed gives another plan."""


@dataclass(frozen=True)
class CorpusShare:
    """One of several consecutive corpora."""

    size: int
    weight: float = 1.0
    """Number of times each pair occurs in an epoch. 0.5: a random half of the pairs, drawn anew each epoch."""


@dataclass(frozen=True)
class MicroBatch:
    """Rows of pairs that go through the model together."""

    source_length: int
    """Places of a row on the source side."""
    target_length: int
    rows: list[list[int]]
    """The pairs in each row. A row may be empty."""

    @property
    def pairs(self) -> list[int]:
        return [pair for row in self.rows for pair in row]

    @property
    def places(self) -> int:
        """The places of both sides, including padding."""
        return len(self.rows) * (self.source_length + self.target_length)


@dataclass(frozen=True)
class Plan:
    """The optimizer steps of every epoch, a function of seed and epoch, made as they are needed.

    Lengths count the start or end symbol, budgets the places of both sides. A pair that takes more than half the budget
    may be alone in its micro-batch. A pair over the budget always is."""

    lengths_of: Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]
    """The source and target lengths of the pairs with these numbers."""
    mean_lengths: tuple[float, float]
    """The mean lengths of all sources and of all targets."""
    shares: Sequence[CorpusShare]
    tokens_per_batch: int
    tokens_per_micro_batch: int
    seed: int = 0
    versions: int = 1
    """The number of versions of each pair, with consecutive numbers. They take turns, an epoch each."""

    def steps(self, epoch: int, first: int = 0) -> Iterator[list[MicroBatch]]:
        """The micro-batches of each step, from step `first` of the epoch on."""
        order = epoch_order(self.shares, self.seed, epoch)
        for part in range(len(order)):
            steps = self._steps(order, part)
            yield from steps[first:]
            first = max(0, first - len(steps))

    def beginning(self) -> tuple[list[list[MicroBatch]], int]:
        """The steps of the first part of the first epoch, and the number of its parts."""
        order = epoch_order(self.shares, self.seed, 0)
        return self._steps(order, 0), len(order)

    def alone(self, pair: int) -> MicroBatch:
        """A micro-batch that holds this pair alone."""
        [source], [target] = self.lengths_of(np.array([pair]))
        size = row_size(int(source), int(target), self._shape)
        if size > self._rows:
            return MicroBatch(int(source), int(target), [[pair]])
        empty: list[list[int]] = [[] for _ in range(self._rows // size - 1)]
        return MicroBatch(size * self._shape[0], size * self._shape[1], [[pair], *empty])

    def _steps(self, order: Order, part: int) -> list[list[MicroBatch]]:
        random = np.random.default_rng((self.seed, order.epoch, part))
        pairs = random.permutation(order.pairs(part)) * self.versions + order.epoch % self.versions
        sources, targets = self.lengths_of(pairs)
        needed = np.maximum(sources / self._shape[0], targets / self._shape[1])  # rows, at least
        too_long = needed > 2 ** int(math.log2(self._rows))
        micro_batches = [self.alone(int(pair)) for pair in pairs[too_long]]
        pairs, sources, targets = (column[~too_long] for column in (pairs, sources, targets))
        windows = np.cumsum(needed[~too_long]) // (WINDOW * self._rows)
        cuts = np.diff(windows).nonzero()[0] + 1
        rows: dict[int, list[list[int]]] = {}
        columns = (np.split(column, cuts) for column in (pairs, sources, targets))
        for of_window, source, target in zip(*columns, strict=True):
            for size, packed in pack(of_window, source, target, self._shape, self._rows).items():
                rows.setdefault(size, []).extend(packed)
        micro_batches += [
            MicroBatch(size * self._shape[0], size * self._shape[1], dealt)
            for size, of_size in rows.items()
            for dealt in _deal(of_size, self._rows // size, random)
        ]
        random.shuffle(micro_batches)  # type: ignore[arg-type]
        return [micro_batches[start : start + self._passes] for start in range(0, len(micro_batches), self._passes)]

    @property
    def _passes(self) -> int:
        """The micro-batches of a step."""
        return math.ceil(self.tokens_per_batch / self.tokens_per_micro_batch)

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """The places of a row, source and target."""
        return row_shape(*self.mean_lengths, self.tokens_per_batch // self._passes)

    @cached_property
    def _rows(self) -> int:
        """The rows of a micro-batch."""
        return max(1, self.tokens_per_batch // self._passes // sum(self._shape))


@dataclass(frozen=True)
class Order:
    """The pairs of an epoch in parts that are planned one at a time. It takes few numbers for any number of pairs."""

    epoch: int
    starts: NDArray[np.int64]
    """The first pair of each run of consecutive pairs."""
    sizes: NDArray[np.int64]
    """The pairs in each run."""
    bounds: NDArray[np.int64]
    """The first run of each part, and the end."""

    def __len__(self) -> int:
        """The number of parts."""
        return len(self.bounds) - 1

    def pairs(self, part: int) -> NDArray[np.int64]:
        """The numbers of the part's pairs."""
        runs = slice(*self.bounds[part : part + 2])
        return ranges(self.starts[runs], self.sizes[runs])


def epoch_order(shares: Sequence[CorpusShare], seed: int, epoch: int) -> Order:
    """The pairs of an epoch in random order: one by one up to `RUNS`, otherwise in runs of a few consecutive pairs."""
    random = np.random.default_rng((seed, epoch))
    total = sum(share.size * share.weight for share in shares)
    length = max(1, math.ceil(total / RUNS))
    runs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # starts and sizes, as often as the weight says
    start = 0
    for share in shares:
        starts = np.arange(start, start + share.size, length)
        start += share.size
        sizes = np.minimum(length, start - starts)
        whole = int(share.weight)
        rest = round((share.weight - whole) * len(starts)) if whole else max(1, round(share.weight * len(starts)))
        runs += [(starts, sizes)] * whole
        if rest:
            drawn = random.permutation(len(starts))[:rest]
            runs.append((starts[drawn], sizes[drawn]))
    starts, sizes = (np.concatenate(column) for column in zip(*runs, strict=True))
    shuffled = random.permutation(len(starts))
    starts, sizes = starts[shuffled], sizes[shuffled]
    ends = np.cumsum(sizes)
    parts = math.ceil(ends[-1] / PART)
    bounds = np.searchsorted(ends, np.arange(parts + 1) * ends[-1] // parts, side="left")
    return Order(epoch, starts, sizes, np.concatenate([[0], bounds[1:-1] + 1, [len(ends)]]))


def row_shape(mean_source: float, mean_target: float, budget: int) -> tuple[int, int]:
    """The places of a row on each side, in proportion to the mean lengths. budget: the places of a micro-batch."""
    longer = max(mean_source, mean_target)
    places = 8
    while places < max(ROW, 2 * longer) and 2 * (2 * places) * ROWS <= budget:
        places *= 2
    source, target = (math.ceil(places * mean / longer / 8) * 8 for mean in (mean_source, mean_target))
    return source, target


def _deal(rows: list[list[int]], count: int, random: np.random.Generator) -> list[list[list[int]]]:
    """Divides the rows into the fewest parts of up to `count` rows, all of the same size. Some end in an empty row."""
    random.shuffle(rows)  # type: ignore[arg-type]
    parts = math.ceil(len(rows) / count)
    count = math.ceil(len(rows) / parts)
    cuts = [len(rows) * part // parts for part in range(parts + 1)]
    return [rows[start:end] + [[]] * (count - end + start) for start, end in itertools.pairwise(cuts)]


def collate(
    source: Joined, target: Joined, batch: MicroBatch, bos_id: int = BOS_ID
) -> tuple[PackedIds, PackedIds, NDArray[np.int32]]:
    """Source + <eos> and <bos> + target of each pair, and the labels: target + <eos>, (rows, target length). source,
    target: the batch's pairs, without control ids."""
    counts = [len(row) for row in batch.rows]
    packed_source = PackedIds.of(source.ending_with(EOS_ID), counts, batch.source_length)
    packed_target = PackedIds.of(target.beginning_with(bos_id), counts, batch.target_length)
    labels = np.full_like(packed_target.ids, PAD_ID)
    labels[packed_target.sentences > 0] = target.ending_with(EOS_ID).ids
    return packed_source, packed_target, labels


@dataclass(frozen=True)
class PackedIds:
    """One side of a micro-batch as arrays of (rows, length), as in `headway.model.packing.Packed`."""

    ids: NDArray[np.int32]
    sentences: NDArray[np.int32]
    positions: NDArray[np.int32]
    longest: int

    @classmethod
    def of(cls, sentences: Joined, counts: Sequence[int], length: int) -> PackedIds:
        """counts: of each row's sentences. length: of a row."""
        lengths = sentences.lengths
        ends_of_rows = np.concatenate([[0], np.cumsum(lengths)])[np.cumsum(counts)]
        filled = np.arange(length) < np.diff(ends_of_rows, prepend=0)[:, None]  # (rows, length)
        ids = np.full(filled.shape, PAD_ID, dtype=np.int32)
        numbers_of_places, positions_of_places = np.zeros_like(ids), np.zeros_like(ids)
        ids[filled] = sentences.ids
        numbers_of_places[filled] = np.repeat(ranges(1, np.array(counts)), lengths)
        positions_of_places[filled] = ranges(0, lengths)
        return cls(ids, numbers_of_places, positions_of_places, longest=int(lengths.max(initial=1)))


def share_of_step(micro_batches: list[MicroBatch], rank: int, ranks: int) -> list[MicroBatch]:
    """One rank's share of a step: every `ranks`-th row of each shape, in the fewest micro-batches that aren't larger
    than those of the step. All ranks have as many micro-batches, of the same shapes. Some end in empty rows."""
    if ranks == 1:
        return micro_batches
    by_shape: dict[tuple[int, int], list[MicroBatch]] = {}
    for one in micro_batches:
        by_shape.setdefault((one.source_length, one.target_length), []).append(one)
    shares = []
    for shape, alike in by_shape.items():
        rows = [row for one in alike for row in one.rows if row]
        each = math.ceil(len(rows) / ranks)
        parts = math.ceil(each / max(len(one.rows) for one in alike))
        count = math.ceil(each / parts)
        own = rows[rank::ranks]
        own += [[]] * (parts * count - len(own))
        shares += [MicroBatch(*shape, own[start : start + count]) for start in range(0, len(own), count)]
    return shares
