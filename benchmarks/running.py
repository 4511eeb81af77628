"""How fast is a training as a user runs it: `headway train`, with its validations and checkpoints?

    headway data multi30k && python benchmarks/running.py [--recipe FILE] [--before CHECKOUT] [--processes N]
        [--epochs 1] [--rounds 2] [--conditions quiet busy two] [--json FILE] [key.path=value]...

Each contender runs the recipe, `multi30k-de-en` by default, for some epochs, in turns: this code and, with --before,
that of another checkout, or, with --processes, this one in several processes. Target tokens a second are those of an
epoch, all of which every code trains on, by the clock on the wall, in the steps up to the 100th and in those after it.
`busy`: another process keeps a core busy meanwhile; `two`: two trainings side by side, their speeds added up. Memory is
what all processes of a training have at the end of each epoch.

Between the runs stands the benchmark of a step (`benchmarks/training.py`), which repeats the same few batches, and the
machine's own peak: what the run reaches of both is printed. Leave the machine alone meanwhile.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from headway.bench.contenders import Contender
from headway.bench.machine import fastest_dtype, matrix_peak, versions
from headway.cli.train import bound_spinning
from headway.data.prepare import prepare
from headway.data.shards import ParallelIds
from headway.recipe.reading import load_recipe
from headway.training.synthetic import write_synthetic
from training import HEADWAY, RECIPE, batches, flops_per_token, make_worker, target_tokens

HERE = Path(__file__).parent.parent
FIRST = 100
"""Steps that a run takes to come to rest."""
LOOK_EVERY = 0.2
"""Seconds; what is over sooner can't be timed."""
Condition = Literal["quiet", "busy", "two"]


@dataclass
class Run:
    """What was seen of a training. Speeds are target tokens a second."""

    first: float
    later: float
    memory: list[float]
    """The most MiB in each epoch."""


class Training:
    """`headway train` of a checkout, watched from outside."""

    def __init__(self, checkout: Path, folder: Path, arguments: list[str]) -> None:
        """arguments: of `headway train`."""
        command = [sys.executable, "-m", "headway", "train", *arguments, "--output", str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        self._log = folder / "log.jsonl"
        self._complaints = open(folder.with_suffix(".txt"), "w+", encoding="utf-8")  # noqa: SIM115 closed in `found`
        self._process = subprocess.Popen(command, env=environment, cwd=HERE, stderr=self._complaints)
        self._times: list[float] = []
        """When each step was seen to be done."""
        self._memory: dict[int, float] = {}

    def look(self) -> bool:
        """Notes what has happened since the last look. False: it has ended."""
        running = self._process.poll() is None
        entries = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        steps = [json.loads(line) for line in entries if '"loss"' in line and line.endswith("}")]
        self._times += [time.monotonic()] * (len(steps) - len(self._times))
        if running and steps and (memory := self._resident()):
            epoch = steps[-1]["epoch"]
            self._memory[epoch] = max(memory, self._memory.get(epoch, 0))
        return running

    def found(self, tokens: int) -> Run:
        """tokens: of the target, in the whole run."""
        with self._complaints:
            if self._process.returncode:
                self._complaints.seek(0)
                raise SystemExit(f"headway train failed: {self._complaints.read()}")
        each, times = tokens / len(self._times), self._times
        turn = min(FIRST, len(times) // 2)
        first = turn / max(times[turn] - times[0], LOOK_EVERY)
        later = (len(times) - 1 - turn) / max(times[-1] - times[turn], LOOK_EVERY)
        return Run(each * first, each * later, list(self._memory.values()))

    def _resident(self) -> float:
        """MiB, its own and that of the processes it has started; 0 where it has just ended."""
        own = str(self._process.pid)
        with suppress(OSError):
            children = Path(f"/proc/{own}/task/{own}/children").read_text(encoding="utf-8").split()
            return sum(map(resident, [own, *children])) / 1024
        return 0


def resident(process: str) -> int:
    """KiB."""
    with suppress(OSError):
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return 0


@contextmanager
def neighbour(*, busy: bool) -> Iterator[None]:
    """Meanwhile another process keeps a core busy."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def run(checkout: Path, condition: Condition, tokens: int, arguments: list[str]) -> Run:
    """One training, or two side by side as one; `tokens` of the target each."""
    with tempfile.TemporaryDirectory() as folder, neighbour(busy=condition == "busy"):
        count = 2 if condition == "two" else 1
        trainings = [Training(checkout, Path(folder) / f"run-{number}", arguments) for number in range(count)]
        while sum(one.look() for one in trainings):  # every one, whatever the first of them says
            time.sleep(LOOK_EVERY)
        found = [one.found(tokens) for one in trainings]
    memory = [max(together) for together in zip(*(one.memory for one in found), strict=False)]
    return Run(sum(one.first for one in found), sum(one.later for one in found), memory)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("changes", nargs="*", metavar="key.path=value", help="of the recipe")
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--before", type=Path, help="a checkout of other code to compare with")
    parser.add_argument("--processes", type=int, help="a contender more: this code with so many processes")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--conditions", nargs="*", default=["quiet"], choices=get_args(Condition))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if any(change.startswith("training.max_") for change in options.changes):
        parser.error("--epochs says how long a run is, and speeds are counted by whole epochs")
    changes = [*options.changes, f"training.max_epochs={options.epochs}"]
    recipe = load_recipe(options.recipe, changes)
    with tempfile.TemporaryDirectory() as folder:
        longest = recipe.transformer_config().max_length
        data = prepare(recipe.preparation(longest), Path(folder) / "data", lambda _: None, write_synthetic)
        todo = batches(data, recipe.training.tokens_per_batch, steps=8)
        tokens = options.epochs * target_tokens_of(data.train)
        config = recipe.transformer_config((data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size))
    bound_spinning()
    step = Contender(HEADWAY, make_worker, HEADWAY, config, todo)
    step.work()  # warms up; and it has started before anything is measured
    codes: dict[str, tuple[Path, list[str]]] = {"now": (HERE, [])}
    if options.before:
        codes["before"] = options.before.resolve(), []
    if options.processes:
        codes[f"{options.processes} processes"] = HERE, ["--processes", str(options.processes)]
    runs: dict[tuple[str, str], list[Run]] = {}
    steps, peaks = [], []
    for _ in range(options.rounds):
        for condition in options.conditions:
            for name, (checkout, more) in codes.items():
                found = run(checkout, condition, tokens, [str(options.recipe.resolve()), *changes, *more])
                runs.setdefault((condition, name), []).append(found)
                speeds = f"{found.first:,.0f} then {found.later:,.0f} tokens/s"
                print(f"{condition} {name}: {speeds}, {found.memory[-1]:,.0f} MiB")
        steps += [target_tokens(todo) / step.work()[0] for _ in range(2)]
        peaks.append(matrix_peak(fastest_dtype()))
    step.end()
    report(runs, statistics.median(steps), statistics.median(peaks) / flops_per_token(config, data.train), options.json)


def target_tokens_of(corpus: ParallelIds) -> int:
    """With an <eos> each."""
    return corpus.target.total + len(corpus)


def report(runs: dict[tuple[str, str], list[Run]], step: float, peak: float, file: Path | None) -> None:
    """step: target tokens a second in the benchmark of a step; peak: those that the machine's peak would do."""
    rows = []
    print(", ".join(f"{name} {value}" for name, value in versions().items()))
    print(f"benchmark of a step: {step:,.0f} target tokens/s, {step / peak:.0%} of the peak")
    print(f"{'':<20}{'first':>8}{'later':>8}{'of step':>9}{'of peak':>9}{'first/later':>13}{'MiB':>8}")
    for (condition, name), found in runs.items():
        first, later = (statistics.median(getattr(one, part) for one in found) for part in ("first", "later"))
        memory = max(one.memory[-1] for one in found)
        row = {"of_step": later / step, "of_peak": later / peak, "first_to_later": first / later, "mib": memory}
        rows.append({"condition": condition, "code": name, "first": first, "later": later, **row})
        print(
            f"{condition + ' ' + name:<20}{first:8,.0f}{later:8,.0f}{later / step:9.0%}{later / peak:9.0%}"
            f"{first / later:13.0%}{memory:8,.0f}"
        )
    for condition in {condition for condition, _ in runs}:
        for name in {name for _, name in runs} - {"now"}:
            pairs = zip(runs[condition, "now"], runs[condition, name], strict=True)
            ratios = [now.later / other.later for now, other in pairs]
            print(f"{condition}: now is {statistics.median(ratios):.2f} times as fast as {name}")
        if condition != "quiet" and ("quiet", "now") in runs:
            quiet, other = (statistics.median(one.later for one in runs[name, "now"]) for name in ("quiet", condition))
            print(f"{condition}: {other / quiet:.0%} of the quiet speed")
    if file is not None:
        file.write_text(json.dumps({**versions(), "step": step, "peak": peak, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
