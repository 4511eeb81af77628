"""How long does it take to plan the batches of a corpus that no memory holds, and how much memory does it take?

    python benchmarks/planning.py [--pairs 100000 50000000]

Each corpus has sentences of generated lengths, as they are on disk after `headway prepare`, but no text. A process of
its own opens it, asks for the first step as `headway train` does, and then goes through all steps of an epoch. Memory
is anonymous memory: what is read from files the system may take back.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from headway.text.shards import IDS_DTYPE, OFFSETS_DTYPE, SIDES, ParallelIds
from headway.training.batches import Batches

AT_ONCE = 2**20


def write_corpus(folder: Path, pairs: int) -> None:
    """Lengths as of sentences: a translation is about as long as its source."""
    random = np.random.default_rng(0)
    ends = dict.fromkeys(SIDES, 0)
    for side in SIDES:
        np.zeros(1, OFFSETS_DTYPE).tofile(folder / f"{side}.offsets")
    for start in range(0, pairs, AT_ONCE):
        count = min(AT_ONCE, pairs - start)
        source = np.clip(random.lognormal(2.9, 0.6, count), 1, 250).astype(np.int64)
        target = np.clip(source * random.normal(1.0, 0.15, count), 1, 250).astype(np.int64)
        for side, lengths in zip(SIDES, (source, target), strict=True):
            with open(folder / f"{side}.offsets", "ab") as file:
                (ends[side] + np.cumsum(lengths)).astype(OFFSETS_DTYPE).tofile(file)
            ends[side] += int(lengths.sum())
    for side in SIDES:
        with open(folder / f"{side}.ids", "wb") as file:
            file.truncate(ends[side] * IDS_DTYPE.itemsize)
    np.array([pairs], OFFSETS_DTYPE).tofile(folder / "sizes")


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
        pairs += sum(len(row) for one in step for row in one.rows)
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
