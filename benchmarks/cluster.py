"""What does Ray cost? Lines a second of `headway translate --cluster local` against as many independent processes.

    make test-ray
    .venv-ray/bin/python benchmarks/cluster.py MODEL SOURCE [--workers 2] [--lines 40960] [--rounds 3]

Both translate the same lines of SOURCE, repeated as often as needed, in turns. Counted is what is translated after as
many chunks of 2,048 lines are there as there are workers, so that starting doesn't count. Independent processes share
the file by `--shard`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

TRANSLATE = [sys.executable, "-m", "headway", "translate"]


CHUNK = 2048
"""Lines that are translated together, and a shard of the cluster."""


def rate(commands: list[list[str]], lines_done: Callable[[], int], lines: int, workers: int) -> float:
    """Lines a second, from when as many chunks are done as there are workers."""
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands]
    first: tuple[float, int] | None = None
    while True:
        if any(process.poll() not in (None, 0, 2) for process in processes):
            raise SystemExit(f"{' '.join(commands[0])} failed")
        done, now = lines_done(), time.monotonic()
        if first is None and done >= workers * CHUNK:
            first = now, done
        if done == lines:
            break
        time.sleep(0.02)
    assert first is not None
    for process in processes:
        process.wait()
    return (lines - first[1]) / (now - first[0])


def of_processes(model: str, source: Path, lines: int, workers: int, folder: Path, options: list[str]) -> float:
    outputs = [folder / f"{number}.txt" for number in range(1, workers + 1)]
    common = [*TRANSLATE, model, str(source), "--threads", "1", *options]
    commands = [
        [*common, "--shard", f"{number}/{workers}", "--output", str(output)]
        for number, output in enumerate(outputs, start=1)
    ]
    return rate(commands, lambda: sum(map(lines_of_job, outputs)), lines, workers)


def lines_of_job(output: Path) -> int:
    """As its journal says, or the file itself."""
    try:
        return json.loads(output.with_name(f"{output.name}.partial.json").read_text(encoding="utf-8"))["done"]["lines"]
    except FileNotFoundError:
        return output.read_bytes().count(b"\n") if output.exists() else 0


def of_cluster(model: str, source: Path, lines: int, workers: int, folder: Path, options: list[str]) -> float:
    output = folder / "out"
    command = [*TRANSLATE, model, str(source), "--output", str(output), "--cluster", "local", "--threads", str(workers)]
    known: dict[str, int] = {}

    def lines_done() -> int:
        for file in output.glob("part-*.txt"):
            if file.name not in known:
                known[file.name] = file.read_bytes().count(b"\n")
        return sum(known.values())

    return rate([command + options], lines_done, lines, workers)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lines", type=int, default=20 * CHUNK)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", default="1")
    options = parser.parse_args()
    measured: dict[str, list[float]] = {"processes": [], "cluster": []}
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "source")
        with open(options.source, encoding="utf-8", newline="\n") as lines:
            every = lines.readlines()
        source.write_text("".join(islice(cycle(every), options.lines)), encoding="utf-8", newline="\n")
        for number in range(options.rounds):
            for what, measure in (("processes", of_processes), ("cluster", of_cluster)):
                folder = Path(name, f"{what}-{number}")
                folder.mkdir()
                flags = ["--beam-size", options.beam_size]
                measured[what].append(measure(options.model, source, options.lines, options.workers, folder, flags))
                print(f"{what}: {measured[what][-1]:,.0f} lines a second", flush=True)
    ratios = [ours / theirs for ours, theirs in zip(measured["cluster"], measured["processes"], strict=True)]
    print(f"cluster / processes: {statistics.median(ratios):.3f} (median of {options.rounds})")


if __name__ == "__main__":
    main()
