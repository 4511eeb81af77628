"""The plan of batches: which sentences go together, a pure function of (lengths, budget, seed, epoch).

Sentences are packed: several share a row, in any order and of any lengths, so that hardly a place is padding. Nearly
all micro-batches of a run have the same shape, whatever sentences are in them: memory stays as it is after the first
one, and so do the kernels that are compiled for a shape.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.text.packing import pack
from headway.text.shards import ParallelIds
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

ROW = 64
"""Places of a row on its longer side; more where sentences are long, fewer where the budget is small. Attention
computes every pair of places in a row."""
ROWS = 8
"""Rows that the budget of a micro-batch is to have room for; they are made shorter if need be."""
WINDOW = 32
"""Micro-batches whose sentences are drawn first and then packed together."""
PLAN = 3
"""A new number where the same seed begins to give another plan."""


@dataclass(frozen=True)
class CorpusShare:
    """One of the corpora that lie one after the other, and how often an epoch has each of its sentences."""

    size: int
    weight: float = 1.0
    """2: twice; 0.5: a random half of them, drawn anew each epoch."""


@dataclass(frozen=True)
class MicroBatch:
    """Rows of pairs that go through the model together."""

    source_length: int
    """Places of a row."""
    target_length: int
    rows: list[list[int]]
    """The pairs in each row; none where there were not enough."""

    @property
    def pairs(self) -> list[int]:
        """All of them."""
        return [pair for row in self.rows for pair in row]

    @property
    def places(self) -> int:
        """Of both sides, padding included."""
        return len(self.rows) * (self.source_length + self.target_length)


def plan_epoch(
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    *,
    tokens_per_batch: int,
    tokens_per_micro_batch: int,
    seed: int,
    epoch: int,
    shares: Sequence[CorpusShare] = (),
) -> list[list[MicroBatch]]:
    """The optimizer steps of one epoch, each a list of micro-batches. Every sentence is in exactly one of them, or as
    often as the `shares` say.

    Lengths count the start or end symbol, budgets the places of both sides. A pair that takes more than half a budget
    may be alone in its micro-batch, and one that is over the budget all by itself is.
    """
    random = np.random.default_rng((seed, epoch))
    passes = math.ceil(tokens_per_batch / tokens_per_micro_batch)
    budget = tokens_per_batch // passes
    shape = row_shape(source_lengths, target_lengths, budget)
    rows_per_pass = max(1, budget // sum(shape))
    order = random.permutation(_sentences(shares or [CorpusShare(len(source_lengths))], random))
    needed = np.maximum(source_lengths[order] / shape[0], target_lengths[order] / shape[1])  # rows, at least
    alone = needed > 2 ** int(math.log2(rows_per_pass))
    micro_batches = [
        MicroBatch(int(source_lengths[pair]), int(target_lengths[pair]), [[int(pair)]]) for pair in order[alone]
    ]
    windows = np.cumsum(needed[~alone]) // (WINDOW * rows_per_pass)
    rows: dict[int, list[list[int]]] = {}
    for window in np.split(order[~alone], np.diff(windows).nonzero()[0] + 1):
        for size, packed in pack(window, source_lengths, target_lengths, shape, rows_per_pass).items():
            rows.setdefault(size, []).extend(packed)
    micro_batches += [
        MicroBatch(size * shape[0], size * shape[1], part)
        for size, of_size in rows.items()
        for part in _deal(of_size, rows_per_pass // size, random)
    ]
    random.shuffle(micro_batches)  # type: ignore[arg-type]
    return [micro_batches[start : start + passes] for start in range(0, len(micro_batches), passes)]


def row_shape(source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64], budget: int) -> tuple[int, int]:
    """Places of a row on either side: in proportion to the lengths of its sentences, multiples of 8. budget: places of
    a micro-batch."""
    means = source_lengths.mean(), target_lengths.mean()
    places = 8
    while places < max(ROW, 2 * max(means)) and 2 * (2 * places) * ROWS <= budget:
        places *= 2
    source, target = (math.ceil(places * mean / max(means) / 8) * 8 for mean in means)
    return source, target


def _deal(rows: list[list[int]], count: int, random: np.random.Generator) -> list[list[list[int]]]:
    """As few parts of up to `count` rows as will do, all of one size: some end in an empty row."""
    random.shuffle(rows)  # type: ignore[arg-type]
    parts = math.ceil(len(rows) / count)
    count = math.ceil(len(rows) / parts)
    cuts = [len(rows) * part // parts for part in range(parts + 1)]
    return [rows[start:end] + [[]] * (count - end + start) for start, end in itertools.pairwise(cuts)]


def collate(corpus: ParallelIds, batch: MicroBatch) -> tuple[PackedIds, PackedIds, NDArray[np.int64]]:
    """Source + <eos> and <bos> + target of each pair, and the labels: target + <eos>, (rows, target length)."""
    sources = [[[*corpus.source[pair].tolist(), EOS_ID] for pair in row] for row in batch.rows]
    targets = [[corpus.target[pair].tolist() for pair in row] for row in batch.rows]
    return (
        PackedIds.of(sources, batch.source_length),
        PackedIds.of([[[BOS_ID, *ids] for ids in row] for row in targets], batch.target_length),
        PackedIds.of([[[*ids, EOS_ID] for ids in row] for row in targets], batch.target_length).ids,
    )


@dataclass(frozen=True)
class PackedIds:
    """One side of a micro-batch, (rows, length) each, as in `headway.model.packing.Packed`."""

    ids: NDArray[np.int64]
    sentences: NDArray[np.int64]
    positions: NDArray[np.int64]
    longest: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[Sequence[int]]], length: int) -> PackedIds:
        """rows: the sentences of each."""
        ids = np.full((len(rows), length), PAD_ID, dtype=np.int64)
        sentences, positions = np.zeros((2, len(rows), length), dtype=np.int64)
        for number, row in enumerate(rows):
            lengths = [len(sentence) for sentence in row]
            used = sum(lengths)
            ids[number, :used] = [one for sentence in row for one in sentence]
            sentences[number, :used] = np.repeat(np.arange(1, len(row) + 1), lengths)
            positions[number, :used] = [place for size in lengths for place in range(size)]
        return cls(ids, sentences, positions, longest=int(positions.max()) + 1)


def _sentences(shares: Sequence[CorpusShare], random: np.random.Generator) -> NDArray[np.int64]:
    """The indices of an epoch's sentences, each as often as its corpus's weight says."""
    chosen, start = [], 0
    for share in shares:
        everything = np.arange(start, start + share.size)
        whole = int(share.weight)
        rest = round((share.weight - whole) * share.size) if whole else max(1, round(share.weight * share.size))
        chosen += [everything] * whole
        if rest:
            chosen.append(random.permutation(everything)[:rest])
        start += share.size
    return np.concatenate(chosen)


def pad(sequences: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Sequences of ids as rows of one array, padded at the end to the longest's length."""
    rows = np.full((len(sequences), max(map(len, sequences))), PAD_ID, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows
