"""The plan of batches: which sentences go together, a pure function of (lengths, budget, seed, epoch).

The budget counts padded tokens of both sides. Sentences of like length share a micro-batch, so that little of it is
padding; an optimizer step takes one or more micro-batches, each from another range of lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.text.shards import ParallelIds
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

MicroBatch = NDArray[np.int64]
"""Indices of the sentences in it."""


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

    Lengths count the start or end symbol. A pair that is over a budget all by itself is a micro-batch of its own.
    """
    random = np.random.default_rng((seed, epoch))
    per_step = math.ceil(tokens_per_batch / tokens_per_micro_batch)
    budget = tokens_per_batch // per_step
    order = _by_length(
        _sentences(shares or [CorpusShare(len(source_lengths))], random), source_lengths, target_lengths, random
    )
    micro_batches = _cut_by_budget(order, source_lengths, target_lengths, budget)
    steps = _steps(micro_batches, per_step, random)
    return [part for step in steps for part in _within(step, tokens_per_batch, source_lengths, target_lengths)]


def padded_tokens(batch: MicroBatch, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]) -> int:
    """Places that the micro-batch takes on both sides, padding included."""
    return len(batch) * int(source_lengths[batch].max() + target_lengths[batch].max())


def _steps(micro_batches: list[MicroBatch], per_step: int, random: np.random.Generator) -> list[list[MicroBatch]]:
    """Steps of `per_step` micro-batches, which come shortest first: one from each of as many ranges of length, so that
    every step has short and long sentences."""
    count = math.ceil(len(micro_batches) / per_step)
    ranges = [micro_batches[start : start + count] for start in range(0, len(micro_batches), count)]
    for one in ranges:
        random.shuffle(one)  # type: ignore[arg-type]
    steps = [[one[place] for one in ranges if place < len(one)] for place in range(count)]
    random.shuffle(steps)  # type: ignore[arg-type]
    return steps


def _within(
    step: list[MicroBatch], budget: int, source_lengths: NDArray[np.int64], target_lengths: NDArray[np.int64]
) -> list[list[MicroBatch]]:
    """The step, or several where pairs that are long all by themselves would take it over the budget."""
    parts: list[list[MicroBatch]] = []
    spent = 0
    for batch in step:
        cost = padded_tokens(batch, source_lengths, target_lengths)
        if not parts or spent + cost > budget:
            parts.append([])
            spent = 0
        parts[-1].append(batch)
        spent += cost
    return parts


def pad(sequences: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """Sequences of ids as rows of one array, padded at the end to the longest's length."""
    rows = np.full((len(sequences), max(map(len, sequences))), PAD_ID, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows


def collate(corpus: ParallelIds, batch: MicroBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """source + <eos> (batch, source length) and <bos> + target + <eos> (batch, target length + 1)."""
    return (
        pad([[*corpus.source[i].tolist(), EOS_ID] for i in batch]),
        pad([[BOS_ID, *corpus.target[i].tolist(), EOS_ID] for i in batch]),
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
) -> list[MicroBatch]:
    """Cuts the order into the longest runs whose padded tokens stay within the budget."""
    batches: list[MicroBatch] = []
    start = 0
    while start < len(order):
        shortest = int(source_lengths[order[start]] + target_lengths[order[start]])
        window = order[start : start + max(1, budget // shortest)]
        widest = np.maximum.accumulate(source_lengths[window]) + np.maximum.accumulate(target_lengths[window])
        within = max(1, int(np.searchsorted(widest * np.arange(1, len(window) + 1), budget, side="right")))
        batches.append(window[:within])
        start += within
    return batches
