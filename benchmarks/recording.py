"""What does it cost that a model can be looked into, when nobody looks?

    python benchmarks/recording.py MODEL SOURCE --before REVISION [--sentences 500] [--rounds 9] [--json FILE]

This code against that of an earlier revision of this repository, each in a process of its own, in turns: translating,
greedy and with a beam of 5, many sentences together and one alone, and a training step (forward and backward). Medians
of rounds, and the ratio of the rounds' times; then what it costs to look: `inspect` against `translate` of one
sentence.
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
from itertools import islice
from pathlib import Path

from machine import versions

ALONE = 20
"""Sentences that are translated one by one."""
JOBS = ("greedy, together", "beam of 5, together", "greedy, alone", "beam of 5, alone", "training step")
ROOT = Path(__file__).parent.parent


def work(model: Path, source: Path, sentences: int) -> None:
    """Answers each job on standard input with the seconds that it took; the code is that of PYTHONPATH."""
    import torch

    from headway.text.corpus import read_lines
    from headway.translator import Translator

    texts = list(islice(read_lines(source), sentences))
    translator = Translator.load(model, device="cpu")
    net = translator.stored.model
    ids = torch.randint(4, net.config.target_vocab_size, (64, 20))

    def run(job: str) -> None:
        if job == "inspect":
            for text in texts[:ALONE]:
                translator.inspect(text)
        elif job == "training step":
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


def measure(now: Worker, before: Worker, rounds: int) -> dict[str, dict[str, float]]:
    found = {}
    for job in JOBS:
        pairs = []
        for number in range(rounds + 1):
            order = (now, before) if number % 2 else (before, now)
            times = {worker: worker.seconds(job) for worker in order}
            pairs.append((times[now], times[before]))
        own, others = zip(*pairs[1:], strict=True)  # the first warms up
        ratio = statistics.median(one / other for one, other in pairs[1:])
        found[job] = {"seconds": statistics.median(own), "before": statistics.median(others), "ratio": ratio}
        print(f"{job:20} {found[job]['seconds']:8.4f} s, before {found[job]['before']:8.4f} s: ratio {ratio:.3f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--before", help="an earlier revision")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.model, options.source, options.sentences)
        return
    if options.before is None:
        parser.error("--before is needed")
    arguments = [str(options.model), str(options.source), "--sentences", str(options.sentences)]
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder, "before")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(earlier), options.before], check=True)
        try:
            now, before = Worker(ROOT, arguments), Worker(earlier, arguments)
            found = {"versions": versions(), "before": options.before, "jobs": measure(now, before, options.rounds)}
            looking = statistics.median(now.seconds("inspect") / ALONE for _ in range(3))
            alone = found["jobs"]["beam of 5, alone"]["seconds"] / ALONE
            print(f"inspect: {1000 * looking:.1f} ms a sentence, translate {1000 * alone:.1f} ms")
            found["inspect"] = {"inspect": looking, "translate": alone}
            now.stop()
            before.stop()
        finally:
            subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
