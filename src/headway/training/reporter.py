"""What a run tells as it goes: to a person on standard error, by a live line in a terminal and plain lines elsewhere;
to log.jsonl; and to TensorBoard's files where they are asked for. Afterwards runs are compared by what their folders
tell: recipes and validations."""

from __future__ import annotations

import errno
import json
import math
import operator
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from headway.errors import UserError
from headway.recipe.reading import flattened, is_run, load_recipe
from headway.recipe.recipe import BestBy, stage_folder
from headway.storage.atomic import write_file
from headway.training.run import standing

PLAIN_LINE_EVERY = 30.0
"""Seconds between lines where standard error is not a terminal."""
MEASURES: tuple[BestBy, ...] = ("valid_loss", "valid_bleu")
"""What the log has of each validation: nats a target token, less is better; BLEU, more is better."""


class Reporter:
    """Shows loss, speed and remaining time of a training or preparation."""

    def __init__(self, what: str = "training", *, quiet: bool = False) -> None:
        """what: it says until there is more to say."""
        self._what = what
        self._console = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, quiet=quiet)
        self._bar: Progress | None = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Reporter:
        if self._console.is_terminal and not self._console.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TaskProgressColumn(),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=self._console,
                transient=True,
            )
            self._bar.add_task(self._what, total=1.0)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self._console.print(text, markup=False)

    def step(
        self, step: int, loss: float, tokens_per_second: float, done: float | None, minutes_left: float | None
    ) -> None:
        """`done` is the finished share of the run, 0 to 1, or None if it isn't known."""
        text = f"step {step:,}  loss {loss:.3f}  {tokens_per_second:,.0f} tokens/s"
        self._progress(text, done, minutes_left)

    def preparing(self, pairs: int, pairs_per_second: float, done: float, minutes_left: float) -> None:
        """`done` is the finished share of the text, 0 to 1."""
        self._progress(f"{pairs:,} pairs  {pairs_per_second:,.0f} pairs/s", done, minutes_left)

    def _progress(self, text: str, done: float | None, minutes_left: float | None) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text, completed=done or 0.0)
        elif time.monotonic() - self._last_line > PLAIN_LINE_EVERY:
            self._last_line = time.monotonic()
            self.line(text + (f"  {minutes_left:.1f} min left" if minutes_left is not None else ""))


class RunLog(ExitStack):
    """The log of a run, open for more; what was logged after step `step`, or of validations after `validated_step`, is
    taken back, because it comes again. `tensorboard` needs what `check_tensorboard` looks for."""

    def __init__(
        self, run: Path, step: int, validated_step: int, notice: Callable[[str], None], *, tensorboard: bool
    ) -> None:
        super().__init__()
        _cut(run / "log.jsonl", step, validated_step, notice)
        self._board = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._board = self.enter_context(SummaryWriter(str(run / "tensorboard"), purge_step=step + 1))
        self._file = self.enter_context(open(run / "log.jsonl", "ab", buffering=0))  # noqa: SIM115

    def write(self, entry: dict[str, Any]) -> None:
        """One line, and a point of each of its curves. Raises UserError where the disk is full."""
        line, fault = f"{json.dumps(entry)}\n".encode(), None
        try:
            if self._file.write(line) < len(line):
                fault = os.strerror(errno.ENOSPC)
        except OSError as error:
            fault = error.strerror
        if fault:
            raise UserError(f"{self._file.name}: can't be written ({fault}); the last checkpoint is intact")
        if self._board is not None:
            for name in entry.keys() - {"step", "epoch"}:
                self._board.add_scalar(name, entry[name], entry["step"])

    def settle(self) -> None:
        """What was written is on the disk then, not only with the system."""
        os.fsync(self._file.fileno())


def check_tensorboard() -> None:
    """Raises UserError where it isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError:
        raise UserError("training.tensorboard needs an extra package: pip install 'headway[track]'") from None


def read_log(log: Path, damaged: Callable[[int], None]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """The number of each line, the line itself and its entry, whose step is a number. Those of lines that can't be read
    go to `damaged`; the unfinished last words of a killed process are no line."""
    for number, line in enumerate(log.read_bytes().split(b"\n")[:-1], 1):
        try:
            entry = json.loads(line)
            operator.index(entry["step"])
        except (ValueError, TypeError, KeyError):
            damaged(number)
            continue
        yield number, line, entry


def _cut(log: Path, step: int, validated_step: int, notice: Callable[[str], None]) -> None:
    """Leaves the entries of steps up to `step` and of validations up to `validated_step`, each once. A line that can't
    be read is named and left out, and costs no other."""
    if not log.exists():
        return
    kept: dict[tuple[bool, int], bytes] = {}

    def damaged(number: int) -> None:
        notice(f"warning: {log}, line {number}: is damaged, what it said is lost")

    for _, line, entry in read_log(log, damaged):
        place = "loss" in entry, entry["step"]
        if place[1] <= (step if place[0] else validated_step):
            kept.setdefault(place, line + b"\n")
    write_file(log, b"".join(kept.values()))


@dataclass(frozen=True)
class RunRecord:
    """A run, as far as its folder tells."""

    folder: Path
    recipe: dict[str, Any]
    """Values by `section.key`."""
    last_step: int
    """0 where the log has none. Those of a run in stages are counted through all of them."""
    curves: dict[str, dict[int, float]]
    """Of each of MEASURES its values by step, in order."""
    begins_after: int = 0
    """The last step before the stage that the run's model is of."""

    def best(self, measure: BestBy) -> tuple[int, float] | None:
        """Step and value of the validation that a run with this `training.best_by` takes as the best; None without
        validations."""
        losses, bleus = self.curves["valid_loss"], self.curves["valid_bleu"]
        return max(
            (point for point in self.curves[measure].items() if point[0] > self.begins_after),
            key=lambda point: standing(measure, losses.get(point[0], math.inf), bleus.get(point[0], 0.0)),
            default=None,
        )


def read_run(folder: Path, notice: Callable[[str], None]) -> RunRecord:
    """Raises UserError where the folder is no run's, or its recipe can't be read. A log that is missing, damaged or
    without validations is told by `notice`, in a line, and leaves the curves without what it lacks."""
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
        damaged: list[int] = []
        validated, begins_after = False, last_step
        for number, _, entry in read_log(log, damaged.append):
            step = begins_after + entry["step"]
            last_step = max(last_step, step)
            points = {measure: entry[measure] for measure in MEASURES if measure in entry}
            if not all(type(value) in (int, float) and math.isfinite(value) for value in points.values()):
                damaged.append(number)
                continue
            validated |= bool(points)
            for measure, value in points.items():
                curves[measure].setdefault(step, value)
        if damaged:
            notice(f"warning: {log}: {len(damaged)} damaged lines are left out, the first is line {min(damaged)}")
        if validated:
            before = begins_after
        else:
            notice(f"warning: {log.parent}: has no validation in its log.jsonl; it has no curves")
    curves = {name: dict(sorted(curve.items())) for name, curve in curves.items()}
    return RunRecord(folder, flattened(recipe.model_dump(mode="json")), last_step, curves, before)
