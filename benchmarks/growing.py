"""Does anything grow faster than the work?

    headway data multi30k
    python benchmarks/growing.py MODEL [--sizes 1000 100000] [--steps 60] [--length 500] [--words N]
        [--only pairs|length|lines]

Pairs: training speed with few pairs and with many, through `headway train`. Length: the time of a token in translations
of up to --length. Lines: the memory of `headway translate` with as many lines, cut to their first N words.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import torch

from headway.decoding import TorchEngine, greedy
from headway.model import ModelConfig, Transformer

CORPUS = Path("data/multi30k/raw")
WARMUP = 1 / 3
"""The first steps whose speed doesn't count, by all."""


def repeated(path: Path, count: int, folder: Path, words: int | None = None) -> Path:
    """A file of so many lines, whole or cut to their first words."""
    grown = folder / f"{count}-{path.name}"
    with open(path, encoding="utf-8", newline="\n") as file, open(grown, "w", encoding="utf-8", newline="\n") as out:
        lines = file.read().split("\n")[:-1]
        cut = lines if words is None else [" ".join(line.split()[:words]) for line in lines]
        out.writelines(line + "\n" for line in islice(cycle(cut), count))
    return grown


def training_speed(pairs: int, steps: int, corpus: Path, folder: Path) -> float:
    """Target tokens a second, the median step's."""
    train = {f"--{side}": repeated(corpus / f"train.{suffix}", pairs, folder) for side, suffix in SIDES.items()}
    valid = {f"--valid-{side}": repeated(corpus / f"val.{suffix}", 10, folder) for side, suffix in SIDES.items()}
    files = [str(part) for pair in (train | valid).items() for part in pair]
    run = folder / f"run-{pairs}"
    limits = ("tokenizer.vocab_size=2000", f"training.max_steps={steps}", "training.tokens_per_batch=4096")
    headway("train", *files, "--output", str(run), *limits, "training.finish=false")
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [entry["tokens_per_second"] for entry in entries if "loss" in entry]
    return statistics.median(speeds[int(WARMUP * steps) :])


SIDES = {"source": "de", "target": "en"}


def headway(*arguments: str) -> int:
    """The most memory that the command had, in MiB."""
    process = subprocess.Popen([sys.executable, "-m", "headway", *arguments], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"headway {' '.join(arguments)} failed")
    return usage.ru_maxrss // 1024


def milliseconds_a_token(length: int, rows: int = 16) -> float:
    torch.manual_seed(1)
    config = ModelConfig.preset("small", source_vocab_size=8000, target_vocab_size=8000, output_bias=True)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.output.bias.zero_()
        model.output.bias[config.eos_id] = -1e9  # so that every translation is as long as it may be
    engine, sources = TorchEngine(model), torch.randint(4, 8000, (rows, 20))
    start = time.perf_counter()
    greedy(engine, sources, [length] * rows)
    return 1000 * (time.perf_counter() - start) / (length * rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder with train.de, train.en, val.de, val.en")
    parser.add_argument("--sizes", type=int, nargs="+", default=(1_000, 100_000), help="pairs and lines, fewest first")
    parser.add_argument("--steps", type=int, default=60, help="of each training")
    parser.add_argument("--length", type=int, default=500, help="of the longest translation, in tokens")
    parser.add_argument("--words", type=int, help="the first words of each line that is translated; default: all")
    parser.add_argument("--only", choices=("pairs", "length", "lines"), help="measure only this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.only in (None, "pairs"):
            of_pairs(options.sizes, options.steps, options.corpus, Path(name))
        if options.only in (None, "length"):
            of_length(options.length)
        if options.only in (None, "lines"):
            of_lines(options.model, options.sizes, options.words, options.corpus, Path(name))


def of_pairs(sizes: Sequence[int], steps: int, corpus: Path, folder: Path) -> None:
    speeds = {pairs: training_speed(pairs, steps, corpus, folder) for pairs in sizes}
    told = ", ".join(f"{speed:,.0f} with {pairs:,} pairs" for pairs, speed in speeds.items())
    print(f"training, target tokens a second: {told}; last to first {speeds[sizes[-1]] / speeds[sizes[0]]:.2f}")


def of_length(longest: int) -> None:
    milliseconds_a_token(longest // 10)  # warms up
    each = {length: milliseconds_a_token(length) for length in (longest // part for part in (4, 2, 1))}
    print("translating, ms a token: " + ", ".join(f"{ms:.3f} of {length}" for length, ms in each.items()))


def of_lines(model: Path, sizes: Sequence[int], words: int | None, corpus: Path, folder: Path) -> None:
    memory = {}
    for lines in sizes:
        source = repeated(corpus / "train.de", lines, folder, words)
        memory[lines] = headway(
            "translate", str(model), str(source), "--output", str(folder / "out"), "--beam-size", "1"
        )
    told = ", ".join(f"{mib} with {lines:,} lines" for lines, mib in memory.items())
    print(f"translating, MiB: {told}; last to first {memory[sizes[-1]] / memory[sizes[0]]:.2f}")


if __name__ == "__main__":
    main()
