"""Is the model that `headway train` chooses for a text better than that of an earlier revision's defaults?

    python benchmarks/choosing.py SOURCE TARGET --valid SOURCE TARGET --test SOURCE TARGET --minutes 20
        --before REVISION [--seeds 1 2 3] [--fast] [--key KEY=VALUE ...] [--folder FOLDER] [--tokenize NAME]
        [--json FILE]

Both train side by side for equal minutes, each on one core and with one seed: this code with `--minutes`, the earlier
one with `training.max_minutes`. Then each scores the test part, this code's model as its card says, the earlier one's
greedily and with a beam of 5, of which the better counts; the difference is tested by a paired bootstrap. FOLDER keeps
the runs.
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
from pathlib import Path
from typing import Any

from machine import versions

ROOT = Path(__file__).parent.parent


def headway(code: Path, core: int, log: Path, *arguments: str) -> subprocess.Popen[str]:
    """A command of headway on one core. Standard output is to be read, the rest goes to the log."""
    environment = {**os.environ, "PYTHONPATH": str(code / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        ["taskset", "-c", str(core), sys.executable, "-m", "headway", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=log.open("a"),
        text=True,
    )


def done(process: subprocess.Popen[str]) -> str:
    """Its standard output. Raises SystemExit where it failed."""
    printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{process.args}: exit status {process.returncode}")
    return printed


def trained(codes: dict[str, Path], folder: Path, options: argparse.Namespace, seed: int) -> dict[str, float]:
    """Trains both at the same time: the minutes of each, from the start of the command to its end."""
    source, target = options.texts
    text = ["--source", source, "--target", target]
    text += ["--valid-source", options.valid[0], "--valid-target", options.valid[1], f"training.seed={seed}"]
    limits = {
        "now": ["--minutes", str(options.minutes), *(["--fast"] if options.fast else [])],
        "before": [f"training.max_minutes={options.minutes}"],
    }
    began, minutes, processes = time.monotonic(), dict[str, float](), dict[str, subprocess.Popen[str]]()
    for core, (name, code) in enumerate(codes.items()):
        run = ["--out", str(folder / name), *limits[name], *options.key]
        processes[name] = headway(code, core, folder / f"{name}.log", "train", *text, *run)
    while len(minutes) < len(processes):
        for name, process in processes.items():
            if name not in minutes and process.poll() is not None:
                minutes[name] = (time.monotonic() - began) / 60
        time.sleep(0.1)
    for process in processes.values():
        done(process)
    return minutes


def scores(code: Path, folder: Path, name: str, options: argparse.Namespace, *more: str) -> dict[str, Any]:
    """Those of a run on the test part, as `headway evaluate --json` gives them."""
    source, reference = options.test
    arguments = ["--source", source, "--reference", reference, "--json", *more]
    if options.tokenize:
        arguments += ["--tokenize", options.tokenize]
    return json.loads(done(headway(code, 0, folder / f"{name}.log", "evaluate", str(folder / name), *arguments)))


def compared(codes: dict[str, Path], folder: Path, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """The row of a seed."""
    folder.mkdir(parents=True)
    minutes = trained(codes, folder, options, seed)
    searches: dict[str, list[str]] = {"greedy": [], "beam5": ["--beam-size", "5", "--length-penalty", "1"]}
    before = {
        name: scores(codes["before"], folder, "before", options, "--output", str(folder / f"before.{name}"), *search)
        for name, search in searches.items()
    }
    best = max(before, key=lambda name: before[name]["bleu"])
    now = scores(codes["now"], folder, "now", options, "--compare", str(folder / f"before.{best}"))
    return {"seed": seed, "minutes": minutes, "now": now, "before": before, "best_before": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs=2, metavar="TEXT")
    parser.add_argument("--valid", nargs=2, required=True)
    parser.add_argument("--test", nargs=2, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--before", required=True, help="an earlier revision")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--key", nargs="+", default=[], help="keys of the recipe of both, as key.path=value")
    parser.add_argument("--tokenize")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        earlier = Path(temporary, "before")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(earlier), options.before], check=True)
        try:
            folder, codes = options.folder or Path(temporary, "runs"), {"now": ROOT, "before": earlier}
            rows = [compared(codes, folder / f"seed{seed}", options, seed) for seed in options.seeds]
        finally:
            subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
    gains = []
    for row in rows:
        now, before = row["now"], row["before"][row["best_before"]]
        gains.append(now["bleu"] - before["bleu"])
        print(
            f"seed {row['seed']}: BLEU {now['bleu']:.2f}, before {before['bleu']:.2f} ({row['best_before']}), chrF "
            f"{now['chrf']:.2f} and {before['chrf']:.2f}, minutes {row['minutes']['now']:.2f} and "
            f"{row['minutes']['before']:.2f}"
        )
    print(f"BLEU gained: {statistics.mean(gains):.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps({**versions(), "rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
