"""Does anything grow faster than the work?

    headway data multi30k && python benchmarks/growing.py MODEL

Training speed with 1,000 and with 100,000 pairs, through `headway train`; the time of a token in translations of up to
500; the memory of `headway translate` with 1,000 and with 100,000 lines.
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
from itertools import cycle, islice
from pathlib import Path

import torch

from headway.decoding import TorchEngine, greedy
from headway.model import ModelConfig, Transformer

CORPUS = Path("data/multi30k/raw")
WARMUP, STEPS = 20, 60


def repeated(path: Path, count: int, folder: Path) -> Path:
    """A file of so many lines."""
    grown = folder / f"{count}-{path.name}"
    with open(path, encoding="utf-8", newline="\n") as lines, open(grown, "w", encoding="utf-8", newline="\n") as out:
        out.writelines(islice(cycle(lines.readlines()), count))
    return grown


def training_speed(pairs: int, folder: Path) -> float:
    """Target tokens a second, the median step's."""
    train = {f"--{side}": repeated(CORPUS / f"train.{suffix}", pairs, folder) for side, suffix in SIDES.items()}
    valid = {f"--valid-{side}": repeated(CORPUS / f"val.{suffix}", 10, folder) for side, suffix in SIDES.items()}
    files = [str(part) for pair in (train | valid).items() for part in pair]
    run = folder / f"run-{pairs}"
    limits = ("tokenizer.vocab_size=2000", f"training.max_steps={STEPS}", "training.tokens_per_batch=4096")
    headway("train", *files, "--out", str(run), *limits)
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return statistics.median(entry["tokens_per_second"] for entry in entries[WARMUP:] if "loss" in entry)


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        speeds = {pairs: training_speed(pairs, folder) for pairs in (1_000, 100_000)}
        print(
            f"training, target tokens a second: {speeds[1_000]:,.0f} with 1,000 pairs, {speeds[100_000]:,.0f} with "
            f"100,000, ratio {speeds[100_000] / speeds[1_000]:.2f}"
        )
        milliseconds_a_token(50)  # warms up
        each = {length: milliseconds_a_token(length) for length in (125, 250, 500)}
        print("translating, ms a token: " + ", ".join(f"{ms:.3f} of {length}" for length, ms in each.items()))
        memory = {}
        for lines in (1_000, 100_000):
            source = repeated(CORPUS / "train.de", lines, folder)
            memory[lines] = headway(
                "translate", str(options.model), str(source), "--output", str(folder / "out"), "--beam-size", "1"
            )
        print(f"translating, MiB: {memory[1_000]} with 1,000 lines, {memory[100_000]} with 100,000")


if __name__ == "__main__":
    main()
