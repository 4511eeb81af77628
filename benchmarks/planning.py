"""How long does it take to plan the batches of a corpus that no memory holds, and how much memory does it take?

    python benchmarks/planning.py [--pairs 100000 50000000]

Each corpus has sentences of generated lengths, as they are on disk after `headway prepare`, but no text. A process of
its own opens it, asks for the first step as `headway train` does, and then goes through all steps of an epoch. Memory
is anonymous memory: what is read from files the system may take back.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import torch

from headway.data.encoding import SMALL_IDS_DTYPE
from headway.data.shards import DESCRIPTION, OFFSETS_DTYPE, SIDES, ParallelIds, shard_name
from headway.training.step import Batches

PAIRS = 2**23
"""Pairs of a shard."""


def write_corpus(folder: Path, pairs: int) -> None:
    """Lengths as of sentences: a translation is about as long as its source. The files are dropped from the page
    cache, so the first step reads them from disk."""
    random = np.random.default_rng(0)
    longest, most = 0, -1
    for shard, start in enumerate(range(0, pairs, PAIRS)):
        count = min(PAIRS, pairs - start)
        source = np.clip(random.lognormal(2.9, 0.6, count), 1, 250).astype(np.int64)
        target = np.clip(source * random.normal(1.0, 0.15, count), 1, 250).astype(np.int64)
        if (tokens := source + target).max() > most:
            longest, most = start + int(tokens.argmax()), int(tokens.max())
        there = folder / shard_name(shard)
        there.mkdir()
        for side, lengths in zip(SIDES, (source, target), strict=True):
            with open(there / f"{side}.offsets", "wb") as file:
                np.concatenate([[0], np.cumsum(lengths)]).astype(OFFSETS_DTYPE).tofile(file)
                leave_memory(file)
            with open(there / f"{side}.ids", "wb") as file:
                file.truncate(int(lengths.sum()) * SMALL_IDS_DTYPE.itemsize)
                leave_memory(file)
    shards = math.ceil(pairs / PAIRS)
    described = {"dtype": SMALL_IDS_DTYPE.str, "sizes": [pairs], "longest": longest, "shards": [{}] * shards}
    (folder / DESCRIPTION).write_text(json.dumps(described), encoding="utf-8")


def leave_memory(file: IO[bytes]) -> None:
    """Writes the file to disk, and asks the system to forget it."""
    file.flush()
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def anonymous_mib() -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def look(folder: Path, answer: multiprocessing.SimpleQueue[dict[str, float]]) -> None:
    began = time.perf_counter()
    batches = Batches(ParallelIds(folder), torch.device("cpu"), 25_000, 25_000, seed=1)
    beginning, _ = batches.plan.beginning()
    largest = batches.largest_of_run(beginning)
    steps = batches.plan.steps(0)
    first = next(steps)
    batches.tensors(first[0])
    waited, most, pairs, places, count = time.perf_counter() - began, 0.0, 0, 0, 0
    began = time.perf_counter()
    for number, step in enumerate(chain([first], steps)):
        pairs += sum(sum(map(len, one.rows)) for one in step)
        places += sum(one.places for one in step)
        count = number
        if number % 500 == 0:
            most = max(most, anonymous_mib())
    answer.put(
        {
            "first step, s": waited,
            "epoch, s": time.perf_counter() - began,
            "steps": count + 1,
            "pairs": pairs,
            "padding, %": 100 - 100 * (batches.corpus.source.total + batches.corpus.target.total + 2 * pairs) / places,
            "anonymous memory, MiB": max(most, anonymous_mib()),
            "places of the largest": largest.places,
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, nargs="*", default=[100_000, 50_000_000])
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    found = []
    for pairs in options.pairs:
        with tempfile.TemporaryDirectory() as folder:
            write_corpus(Path(folder), pairs)
            answer: multiprocessing.SimpleQueue[dict[str, float]] = context.SimpleQueue()
            process = context.Process(target=look, args=(Path(folder), answer))
            process.start()
            found.append(answer.get())
            process.join()
        print(f"{pairs:,} pairs: " + ", ".join(f"{name} {value:,.1f}" for name, value in found[-1].items()))
    more = [one["anonymous memory, MiB"] - found[0]["anonymous memory, MiB"] for one in found[1:]]
    if more:
        print(f"anonymous memory above that of the first: {statistics.fmean(more):,.0f} MiB")


if __name__ == "__main__":
    main()
