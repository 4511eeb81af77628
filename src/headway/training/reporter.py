"""Reports on a run: a live line in a terminal, or plain lines on standard error; log.jsonl;
and afterwards the records of finished runs, to compare them."""

import json
import math
import operator
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headway.errors import UserError
from headway.recipe.reading import flattened, is_run, load_recipe
from headway.recipe.recipe import BestBy, stage_folder
from headway.storage.atomic import write_file
from headway.training.saving import sort_key

PLAIN_LINE_EVERY = 30.0
"""Seconds between lines where standard error is not a terminal."""
MEASURES: tuple[BestBy, ...] = ("valid_loss", "valid_bleu")
"""Figures of each validation in the log: nats per target token, less is better; BLEU, more is better."""


class Reporter:
    """Shows loss, speed and remaining time of a training or preparation."""

    def __init__(self, what: str = "training", *, quiet: bool = False) -> None:
        """what: the text of the bar before the first step."""
        console = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, quiet=quiet)
        ends = TaskProgressColumn(), TimeRemainingColumn(elapsed_when_finished=True)
        columns = TextColumn("{task.description}"), BarColumn(bar_width=20), *ends
        self._bar = Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)
        self._task = self._bar.add_task(what, total=1.0)
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def line(self, text: str) -> None:
        self._bar.console.print(text, markup=False)

    def step(
        self, step: int, loss: str, tokens_per_second: float, done: float | None, minutes_left: float | None
    ) -> None:
        """loss: with its name. done: the finished share of the run, 0 to 1."""
        self._progress(f"step {step:,}  {loss}  {tokens_per_second:,.0f} tokens/s", done, minutes_left)

    def preparing(self, pairs: int, pairs_per_second: float, done: float, minutes_left: float) -> None:
        self._progress(f"{pairs:,} pairs  {pairs_per_second:,.0f} pairs/s", done, minutes_left)

    def _progress(self, text: str, done: float | None, minutes_left: float | None) -> None:
        if not self._bar.disable:
            self._bar.update(self._task, description=text, completed=done or 0.0)
        elif time.monotonic() - self._last_line > PLAIN_LINE_EVERY:
            self._last_line = time.monotonic()
            self.line(text + (f"  {minutes_left:.1f} min left" if minutes_left is not None else ""))


class RunLog(ExitStack):
    """The log of a run, open for more entries. Removes damaged lines, and entries of steps after `step` and validations
    after `validated_step`, because a resumed run repeats them."""

    def __init__(self, run: Path, step: int, validated_step: int, notice: Callable[[str], None]) -> None:
        super().__init__()
        log, kept = run / "log.jsonl", dict[tuple[bool, int], bytes]()
        for number, line, entry in read_log(log):
            if entry is None:
                notice(f"warning: {log}, line {number}: is damaged, what it said is lost")
            elif entry["step"] <= (step if "loss" in entry else validated_step):
                kept.setdefault(("loss" in entry, entry["step"]), line + b"\n")
        write_file(log, b"".join(kept.values()))
        self._file = self.enter_context(open(log, "ab", buffering=0))  # noqa: SIM115

    def write(self, entry: dict[str, Any]) -> None:
        """Writes a line. Raises UserError if the disk is full."""
        try:
            self._file.write(f"{json.dumps(entry)}\n".encode())
        except OSError as error:
            fault = f"can't be written ({error.strerror}); the last checkpoint is intact"
            raise UserError(f"{self._file.name}: {fault}") from None

    def sync(self) -> None:
        os.fsync(self._file.fileno())


def read_log(log: Path) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """Reads the number of each line, the line and its entry; None for a damaged line, or one without a step. An
    unfinished last line, as a killed process leaves it, is ignored. A missing file has no lines."""
    for number, line in enumerate(log.read_bytes().split(b"\n")[:-1] if log.exists() else [], 1):
        entry = None
        with suppress(ValueError, TypeError, KeyError):
            found = json.loads(line)
            operator.index(found["step"])
            entry = found
        yield number, line, entry


@dataclass(frozen=True)
class RunRecord:
    """Recipe and validations of a run, as its folder has them."""

    folder: Path
    recipe: dict[str, Any]
    last_step: int
    """0 without a log. Stages are counted one after another."""
    curves: dict[str, dict[int, float]]
    """The values of each of MEASURES by step, in order."""
    begins_after: int = 0
    """The last step before the stage that the run's model comes from."""

    def best(self, measure: BestBy) -> tuple[int, float] | None:
        """Step and value of the best validation by this `training.best_by`; None without validations."""
        losses, bleus = self.curves["valid_loss"], self.curves["valid_bleu"]
        return max(
            (point for point in self.curves[measure].items() if point[0] > self.begins_after),
            key=lambda point: sort_key(measure, losses.get(point[0], math.inf), bleus.get(point[0], 0.0)),
            default=None,
        )


def read_run(folder: Path, notice: Callable[[str], None]) -> RunRecord:
    """The record of the run in the folder. `notice` gets a line for a log that is missing, damaged or without
    validations. Raises UserError if the folder has no run, or its recipe can't be read."""
    if not is_run(folder):
        problem = "holds no run (recipe.yaml)" if folder.is_dir() else "no such folder"
        raise UserError(f"{folder}: {problem}; give the folder that `headway train --output` made")
    recipe = load_recipe(folder / "recipe.yaml")
    logs = [run / "log.jsonl" for run in [stage_folder(folder, stage.name) for stage in recipe.stages] or [folder]]
    last_step, before, curves = 0, 0, {measure: dict[int, float]() for measure in MEASURES}
    for log in logs:
        if not log.is_file():
            notice(f"warning: {log.parent}: has no log.jsonl; nothing is known of its validations")
            continue
        lines = list(read_log(log))
        if damaged := [number for number, _, entry in lines if entry is None]:
            notice(f"warning: {log}: {len(damaged)} damaged lines are left out, the first is line {damaged[0]}")
        entries = [entry for *_, entry in lines if entry is not None]
        if any(measure in entry for entry in entries for measure in MEASURES):
            before = last_step
        else:
            notice(f"warning: {log.parent}: has no validation in its log.jsonl; it has no curves")
        steps = [last_step + entry["step"] for entry in entries]
        for step, entry in zip(steps, entries, strict=True):
            for measure in MEASURES:
                if measure in entry:
                    curves[measure].setdefault(step, entry[measure])
        last_step = max([last_step, *steps])
    curves = {name: dict(sorted(curve.items())) for name, curve in curves.items()}
    return RunRecord(folder, flattened(recipe.model_dump(mode="json")), last_step, curves, before)
