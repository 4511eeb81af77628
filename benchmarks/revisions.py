"""How much slower or faster is this code than that of an earlier revision?

    python benchmarks/revisions.py MODEL SOURCE TARGET --before REVISION [--model-before MODEL] [--engine torch]
        [--only JOB ...] [--sentences 500] [--rounds 20] [--json FILE]

Both take turns, each in processes of its own: translating, greedy and with a beam of 5, many sentences together and one
alone; forward and backward pass of a batch; and two whole commands, `headway translate` with a beam of 5 and `headway
train`, 120 steps of a `tiny` model on SOURCE and TARGET. For each: medians of the rounds, the geometric mean of the
rounds' ratios with its 95% interval (bootstrap). Then the time of `inspect`. Each code translates with its own default
engine, unless --engine names one; --model-before is the same model as the earlier code can read it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from headway.bench.machine import versions

ALONE = 20
"""Sentences that are translated one by one."""
VALIDATION = 50
"""Pairs on which the short training validates at its end."""
JOBS = ("greedy, together", "beam of 5, together", "greedy, alone", "beam of 5, alone", "forward and backward")
TRANSLATE, TRAIN, INSPECT = "headway translate", "headway train", "inspect"
ALL = [*JOBS, INSPECT, TRANSLATE, TRAIN]
ROOT = Path(__file__).parent.parent


def work(model: Path, source: Path, sentences: int, engine: str | None) -> None:
    """Answers each job on standard input with the seconds that it took; the code is that of PYTHONPATH."""
    import torch

    from headway.data.corpus import read_lines
    from headway.translator import Translator

    texts = list(islice(read_lines(source), sentences))
    chosen: dict[str, Any] = {} if engine is None else {"engine": engine}
    translator = Translator.load(model, device="cpu", **chosen)
    net = translator.stored.model
    ids = torch.randint(4, net.config.target_vocab_size, (64, 20))

    def run(job: str) -> None:
        if job == INSPECT:
            for text in texts[:ALONE]:
                translator.inspect(text)
        elif job == "forward and backward":
            net.train()
            net.hidden_states(ids, ids).square().mean().backward()
            net.zero_grad()
            net.eval()
        else:
            width = 1 if job.startswith("greedy") else 5
            for some in [texts] if job.endswith("together") else [[text] for text in texts[:ALONE]]:
                translator.translate(some, beam_size=width)

    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        run(line.strip())
        print(time.perf_counter() - start, flush=True)


class Worker:
    """A process that runs jobs with the code of one source folder."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        command = [sys.executable, __file__, *arguments, "--work"]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._answer()

    def seconds(self, job: str) -> float:
        assert self._process.stdin is not None
        print(job, file=self._process.stdin, flush=True)
        return float(self._answer())

    def stop(self) -> None:
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("a worker ended; its complaint stands above")
        return answer.strip()


class Commands:
    """The whole commands with the code of one source folder; their files go to a folder of their own."""

    def __init__(self, folder: Path, model: Path, texts: tuple[Path, Path], work: Path) -> None:
        self._environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        self._run = work / "run"
        work.mkdir()
        valid = []
        for text in texts:
            lines = text.read_text(encoding="utf-8").splitlines(keepends=True)[:VALIDATION]
            valid.append(work / f"valid-{text.name}")
            valid[-1].write_text("".join(lines), encoding="utf-8")
        source, target, valid_source, valid_target = map(str, [*texts, *valid])
        train = f"--source {source} --target {target} --valid-source {valid_source} --valid-target {valid_target}"
        small = f"model.preset=tiny --out {self._run} tokenizer.vocab_size=1000 training.max_steps=120 model.norm=post"
        small += " training.tokens_per_batch=4096 training.optimizer=adam training.schedule=inverse_sqrt"
        self._arguments = {
            TRANSLATE: f"{model} {source} --beam-size 5 --output {work / 'translations'}",
            TRAIN: f"{train} {small}",
        }

    def seconds(self, job: str) -> float:
        shutil.rmtree(self._run, ignore_errors=True)
        command = [sys.executable, "-m", *job.split(), *self._arguments[job].split()]
        start = time.perf_counter()
        done = subprocess.run(command, check=False, env=self._environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{job}: {done.stderr}")
        return time.perf_counter() - start


Timed = Worker | Commands


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Geometric mean of the ratios and its 95% interval."""
    draw = random.Random(0)
    means = sorted(statistics.geometric_mean(draw.choices(ratios, k=len(ratios))) for _ in range(10_000))
    return statistics.geometric_mean(ratios), means[250], means[-251]


def measure(job: str, now: Timed, before: Timed, rounds: int) -> dict[str, float]:
    pairs = []
    for number in range(rounds + 1):
        order = (now, before) if number % 2 else (before, now)
        times = {one: one.seconds(job) for one in order}
        pairs.append((times[now], times[before]))
    own, others = zip(*pairs[1:], strict=True)  # the first warms up
    ratio, low, high = interval([one / other for one, other in pairs[1:]])
    found = {"seconds": statistics.median(own), "before": statistics.median(others)}
    print(
        f"{job:20} {found['seconds']:8.4f} s, before {found['before']:8.4f} s: ratio {ratio:.3f} "
        f"({low:.3f} to {high:.3f})",
        flush=True,
    )
    return {**found, "ratio": ratio, "low": low, "high": high}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--before", help="an earlier revision")
    parser.add_argument("--model-before", type=Path)
    parser.add_argument("--engine")
    parser.add_argument("--only", nargs="+", choices=ALL, default=ALL, metavar="JOB", help=", ".join(ALL))
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.model, options.source, options.sentences, options.engine)
        return
    if options.before is None:
        parser.error("--before is needed")
    models = options.model, options.model_before or options.model
    texts = options.source, options.target
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder, "before")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(earlier), options.before], check=True)
        try:
            found: dict[str, Any] = {"versions": versions(), "before": options.before, "jobs": {}}
            chosen = ["--sentences", str(options.sentences), *(["--engine", options.engine] if options.engine else [])]
            now, before = (
                Worker(code, [*map(str, (model, *texts)), *chosen])
                for code, model in zip((ROOT, earlier), models, strict=True)
            )
            for job in JOBS:
                if job in options.only:
                    found["jobs"][job] = measure(job, now, before, options.rounds)
            if INSPECT in options.only:
                found[INSPECT] = statistics.median(now.seconds(INSPECT) / ALONE for _ in range(3))
                print(f"inspect: {1000 * found[INSPECT]:.1f} ms a sentence")
            now.stop()
            before.stop()
            ours = Commands(ROOT, models[0], texts, Path(folder, "now"))
            theirs = Commands(earlier, models[1], texts, Path(folder, "earlier"))
            for job in (TRANSLATE, TRAIN):
                if job in options.only:
                    found["jobs"][job] = measure(job, ours, theirs, options.rounds)
        finally:
            subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
