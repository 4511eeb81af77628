"""Runs that are killed again and again, as by a failing machine."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.system.conftest import QUICK, Corpus
from tests.system.running import Begun, run_headway

MOST_STEPS_BETWEEN = 10


@dataclass
class Kills:
    total: int = 0
    inside_a_save: int = 0
    """Those that left a half-written folder behind; one that was being removed is none."""


def options(corpus: Corpus, steps: int, precision: str) -> list[str]:
    """Of a run that saves and validates often."""
    own = {
        "max_steps": steps,
        "save_every": 3,
        "validate_every": 7,
        "precision": precision,
        "patience": 1000,
        "tokens_per_batch": 1000,
        "finish": "false",
    }
    changes = [*QUICK, "decoding.max_length=8", *(f"training.{key}={value}" for key, value in own.items())]
    return [*map(str, corpus.train_options), *changes]


def train_through_kills(command: list[str], run: Path, wanted: Kills, seed: int) -> Kills:
    """Trains in the folder `run` until the end, with SIGKILL at random moments in between: as many as wanted, and of
    these as many as wanted while a checkpoint or a model is being written."""
    chance, kills = random.Random(seed), Kills()
    while kills.total < wanted.total or kills.inside_a_save < wanted.inside_a_save:
        in_a_save = kills.total % 2 == 0 and kills.inside_a_save < wanted.inside_a_save
        process = start(command, run)
        log_before = log_file(run)
        wait_until(process, lambda log_before=log_before: log_file(run) != log_before)  # a start writes it anew
        if in_a_save:
            wait_until(process, lambda: bool(being_saved(run)))
        else:
            count = len(entries(run)) + chance.randrange(MOST_STEPS_BETWEEN)
            wait_until(process, lambda count=count: len(entries(run)) >= count)
        time.sleep(chance.random() * 0.01)
        assert process.poll() is None, "the run ended before it was killed often enough"
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills.total += 1
        kills.inside_a_save += bool(being_saved(run))
    process = start(command, run)
    assert process.wait(timeout=300) == 0
    assert not half_written(run)
    return kills


def start(command: list[str], run: Path) -> Begun:
    arguments = ["--resume", run] if (run / "recipe.yaml").exists() else [*command, "--out", run]
    return Begun("train", *arguments)


def wait_until(process: subprocess.Popen | Begun, happened) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert process.poll() is None, "the run ended before it was killed often enough"
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def log_file(run: Path) -> int | None:
    """The file itself, by the number that the file system has for it."""
    try:
        return (run / "log.jsonl").stat().st_ino
    except FileNotFoundError:  # a start takes it away before it writes it anew
        return None


def being_saved(run: Path) -> list[Path]:
    """What isn't whole yet: newer than all that is."""
    return [
        path
        for path in half_written(run)
        if path.name > max((other.name for other in path.parent.glob("step-*") if not other.suffix), default="")
    ]


def half_written(run: Path) -> list[Path]:
    """What is being saved or removed, or was when the process was killed."""
    return [path for folder in ("checkpoints", "models") for path in (run / folder).glob("*.partial")]


def entries(run: Path) -> list[dict]:
    """What the log says, speeds aside; an unfinished last line is none."""
    if not (run / "log.jsonl").exists():
        return []
    lines = (run / "log.jsonl").read_bytes().split(b"\n")[:-1]
    found = [json.loads(line) for line in lines]
    return [
        {key: value for key, value in entry.items() if key not in ("tokens_per_second", "seconds")} for entry in found
    ]


def final_files(run: Path) -> dict[str, bytes]:
    """The weights and moments of the last checkpoint, and the weights of all models that are kept."""
    last = max((run / "checkpoints").iterdir())
    files = [*last.glob("*.safetensors"), *(run / "models").glob("*/model.safetensors")]
    return {str(file.relative_to(run)): file.read_bytes() for file in files}


def check_exact_resume(corpus: Corpus, folder: Path, steps: int, precision: str, wanted: Kills, seed: int) -> Kills:
    """A run that was killed gives the same log and the same weights, bit for bit, as one that wasn't."""
    command = options(corpus, steps, precision)
    assert run_headway("train", *command, "--out", folder / "whole").code == 0
    kills = train_through_kills(command, folder / "killed", wanted, seed)
    whole, killed = entries(folder / "whole"), entries(folder / "killed")
    done = [entry["step"] for entry in killed if "loss" in entry]
    assert done == list(range(1, steps + 1)), f"steps {done}"
    assert killed == whole
    assert final_files(folder / "killed") == final_files(folder / "whole")
    return kills
