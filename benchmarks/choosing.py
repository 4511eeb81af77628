"""Is the model that `headway train` chooses for a text better than that of an earlier revision, or of recipes set by
hand?

    python benchmarks/choosing.py SOURCE TARGET --valid SOURCE TARGET --test SOURCE TARGET --minutes 20
        (--before REVISION | --by-hand) [--seeds 1 2 3] [--folder FOLDER] [--tokenize NAME] [--json FILE]

All train for equal minutes with one seed, two at a time, each on one core: this code with `--minutes`, the earlier one
with `training.max_minutes`, a recipe set by hand for as many steps as its speed, measured before, lets it take. Then
each scores the test part as its card says, the earlier one also greedily, of which the better counts. The difference to
the best of the others is tested by a paired bootstrap. FOLDER keeps the runs.
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

import torch

from headway.bench.machine import versions
from headway.recipe.reading import make_recipe
from headway.training.finishing import SHARE_OF_END
from headway.training.own_text import measure

ROOT = Path(__file__).parent.parent
CHOSEN = "chosen"
SEARCHES = {"greedy": ["--beam-size", "1"], "beam5": ["--beam-size", "5", "--length-penalty", "1"]}
VALIDATIONS = 8
ALL_BY_HAND = ["tokenizer.vocab_size=8000", "model.norm=pre", "training.optimizer=adam", "training.finish=true"]
BY_HAND = {
    "tiny-cosine": [
        *("model.preset=tiny", "model.dropout=0.2", "training.tokens_per_batch=2048"),
        *("training.learning_rate=2e-3", "training.schedule=cosine"),
    ],
    "tiny-wsd": [
        *("model.preset=tiny", "model.dropout=0.1", "training.tokens_per_batch=4096"),
        *("training.learning_rate=3e-3", "training.schedule=wsd"),
    ],
    "small-cosine": [
        *("model.preset=small", "model.dropout=0.15", "training.tokens_per_batch=4096"),
        *("training.learning_rate=1e-3", "training.schedule=cosine"),
    ],
}
"""Recipes as an expert would set them."""


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


def steps_in(minutes: float, keys: list[str], options: argparse.Namespace, folder: Path) -> int:
    """The steps that a recipe takes in the minutes, with 8 validations and the end."""
    torch.set_num_threads(1)
    sides = ({"source": source, "target": target} for source, target in (options.texts, options.valid))
    data = dict(zip(("train", "valid"), sides, strict=True))
    speed = measure(make_recipe({"data": data}, [*keys, "training.max_steps=1000000000"], "by hand"), folder)
    seconds = 60 * minutes * (1 - SHARE_OF_END) - speed.seconds_before - VALIDATIONS * speed.seconds_of_validation
    return int(seconds / speed.seconds_of_step)


def commands(options: argparse.Namespace, earlier: Path | None, folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """The contenders: code and arguments of `headway train`."""
    minutes = options.minutes
    found = {CHOSEN: (ROOT, ["--minutes", str(minutes)])}
    if earlier is not None:
        found["before"] = (earlier, [f"training.max_minutes={minutes}"])
        return found
    for name, own in BY_HAND.items():
        keys = [*ALL_BY_HAND, *own]
        steps = steps_in(minutes, keys, options, folder / "measuring" / name)
        keys += [f"training.max_steps={steps}", f"training.warmup_steps={steps // 10}"]
        found[name] = (ROOT, [*keys, f"training.validate_every={-(-steps // VALIDATIONS)}"])
    return found


def trained(
    contenders: dict[str, tuple[Path, list[str]]], folder: Path, options: argparse.Namespace, seed: int
) -> dict[str, float]:
    """Trains two at a time: the minutes of each, from the start of the command to its end."""
    source, target = options.texts
    text = ["--source", source, "--target", target]
    text += ["--valid-source", options.valid[0], "--valid-target", options.valid[1], f"training.seed={seed}"]
    minutes, waiting = dict[str, float](), list(contenders)
    while waiting:
        began, pair, waiting = time.monotonic(), waiting[:2], waiting[2:]
        processes = {}
        for core, name in enumerate(pair):
            code, arguments = contenders[name]
            run = ["--out", str(folder / name), *arguments]
            processes[name] = headway(code, core, folder / f"{name}.log", "train", *text, *run)
        while not set(pair) <= set(minutes):
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


def compared(
    contenders: dict[str, tuple[Path, list[str]]], folder: Path, options: argparse.Namespace, seed: int
) -> dict[str, Any]:
    """The row of a seed."""
    folder.mkdir(parents=True)
    minutes = trained(contenders, folder, options, seed)
    others = {}
    for name, (code, _) in contenders.items():
        for search, more in SEARCHES.items() if name == "before" else [("card", [])]:
            if name != CHOSEN:
                output = folder / f"{name}.{search}"
                others[output.name] = scores(code, folder, name, options, "--output", str(output), *more)
    best = max(others, key=lambda name: others[name]["bleu"])
    now = scores(ROOT, folder, CHOSEN, options, "--compare", str(folder / best))
    return {"seed": seed, "minutes": minutes, CHOSEN: now, "others": others, "best": best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs=2, metavar="TEXT")
    parser.add_argument("--valid", nargs=2, required=True)
    parser.add_argument("--test", nargs=2, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    others = parser.add_mutually_exclusive_group(required=True)
    others.add_argument("--before", help="an earlier revision")
    others.add_argument("--by-hand", action="store_true", help="recipes that are set by hand")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--tokenize")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        earlier = Path(temporary, "before") if options.before else None
        git = ["git", "-C", str(ROOT), "worktree"]
        if earlier is not None:
            subprocess.run([*git, "add", "--quiet", "--detach", str(earlier), options.before], check=True)
        try:
            folder = options.folder or Path(temporary, "runs")
            contenders = commands(options, earlier, Path(temporary))
            rows = [compared(contenders, folder / f"seed{seed}", options, seed) for seed in options.seeds]
        finally:
            if earlier is not None:
                subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
    gains = []
    for row in rows:
        now, best = row[CHOSEN], row["others"][row["best"]]
        gains.append(now["bleu"] - best["bleu"])
        print(f"seed {row['seed']}: {CHOSEN} BLEU {now['bleu']:.2f}, chrF {now['chrf']:.2f}")
        for name, other in row["others"].items():
            print(f"    {name}: BLEU {other['bleu']:.2f}, chrF {other['chrf']:.2f}")
        print("    minutes: " + ", ".join(f"{name} {minutes:.2f}" for name, minutes in row["minutes"].items()))
    print(f"BLEU gained over the best of the others: {statistics.mean(gains):.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps({**versions(), "rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
