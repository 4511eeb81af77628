"""The plan of batches: which sentences go together, a pure function of (lengths, budget, seed, epoch).

Sentences of like length are a bucket, so that little of it is padding. An optimizer step takes several buckets, each
from another range of lengths, and a micro-batch is those of them that go through the model together. Budgets count
padded tokens of both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.text.shards import ParallelIds
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

Bucket = NDArray[np.int64]
"""Indices of the sentences in it."""
MicroBatch = list[Bucket]
BUCKETS = 4
"""Lengths of a step, at least: a step over sentences of one length alone learns that length."""
PLAN = 2
"""A new number where the same seed begins to give another plan."""


@dataclass(frozen=True)
class CorpusShare:
    """One of the corpora that lie one after the other, and how often an epoch has each of its sentences."""

    size: int
    weight: float = 1.0
    """2: twice; 0.5: a random half of them, drawn anew each epoch."""


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

    Lengths count the start or end symbol. A pair that is over a budget all by itself is alone.
    """
    random = np.random.default_rng((seed, epoch))
    passes = math.ceil(tokens_per_batch / tokens_per_micro_batch)
    per_step = passes * math.ceil(BUCKETS / passes)
    budget = tokens_per_batch // per_step
    order = _by_length(
        _sentences(shares or [CorpusShare(len(source_lengths))], random), source_lengths, target_lengths, random
    )
    buckets = _cut_by_budget(order, source_lengths, target_lengths, budget)
    return [
        _within(part, tokens_per_micro_batch, source_lengths, target_lengths)
        for step in _steps(buckets, per_step, random)
        for part in _within(step, tokens_per_batch, source_lengths, target_lengths)
    ]


def padded_tokens(bucket: Bucket, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> int:
    """Places that the bucket takes on both sides, padding included."""
    return len(bucket) * int(source_lengths[bucket].max() + target_lengths[bucket].max())


def _steps(buckets: list[Bucket], per_step: int, random: np.random.Generator) -> list[list[Bucket]]:
    """Steps of `per_step` buckets, which come shortest first: one from each of as many ranges of length, so that every
    step has short and long sentences."""
    count = math.ceil(len(buckets) / per_step)
    ranges = [buckets[start : start + count] for start in range(0, len(buckets), count)]
    for one in ranges:
        random.shuffle(one)  # type: ignore[arg-type]
    steps = [[one[place] for one in ranges if place < len(one)] for place in range(count)]
    random.shuffle(steps)  # type: ignore[arg-type]
    return steps


def _within(
    buckets: list[Bucket], budget: int, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]
) -> list[list[Bucket]]:
    """The buckets in as few parts within the budget as their order allows."""
    parts: list[list[Bucket]] = []
    spent = 0
    for bucket in buckets:
        cost = padded_tokens(bucket, source_lengths, target_lengths)
        if not parts or spent + cost > budget:
            parts.append([])
            spent = 0
        parts[-1].append(bucket)
        spent += cost
    return parts


def pad(sequences: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Sequences of ids as rows of one array, padded at the end to the longest's length."""
    rows = np.full((len(sequences), max(map(len, sequences))), PAD_ID, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows


def collate(corpus: ParallelIds, bucket: Bucket) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """source + <eos> (sentences, source length) and <bos> + target + <eos> (sentences, target length + 1)."""
    return (
        pad([[*corpus.source[i].tolist(), EOS_ID] for i in bucket]),
        pad([[BOS_ID, *corpus.target[i].tolist(), EOS_ID] for i in bucket]),
    )


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


def _by_length(
    sentences: NDArray[np.int64],
    source_lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """The sentences by target length, then source length, ties in random order."""
    ties = random.random(len(sentences))
    return sentences[np.lexsort((ties, source_lengths[sentences], target_lengths[sentences]))]


def _cut_by_budget(
    order: NDArray[np.int64], source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64], budget: int
) -> list[Bucket]:
    """Cuts the order into the longest runs whose padded tokens stay within the budget."""
    buckets: list[Bucket] = []
    start = 0
    while start < len(order):
        shortest = int(source_lengths[order[start]] + target_lengths[order[start]])
        window = order[start : start + max(1, budget // shortest)]
        widest = np.maximum.accumulate(source_lengths[window]) + np.maximum.accumulate(target_lengths[window])
        within = max(1, int(np.searchsorted(widest * np.arange(1, len(window) + 1), budget, side="right")))
        buckets.append(window[:within])
        start += within
    return buckets
