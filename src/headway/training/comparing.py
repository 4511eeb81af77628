"""What the folders of runs tell of them, to be set side by side: their recipes and their validations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.training.reading import load_recipe
from headway.training.recipe import BestBy
from headway.training.reporter import read_log
from headway.training.run import standing
from headway.training.run_directory import flattened, is_run

MEASURES: tuple[BestBy, ...] = ("valid_loss", "valid_bleu")
"""What the log has of each validation: nats a target token, less is better; BLEU, more is better."""


@dataclass(frozen=True)
class RunRecord:
    """A run, as far as its folder tells."""

    folder: Path
    recipe: dict[str, Any]
    """Values by `section.key`."""
    last_step: int
    """0 where the log has none."""
    curves: dict[str, dict[int, float]]
    """Of each of MEASURES its values by step, in order."""

    def best(self, measure: BestBy) -> tuple[int, float] | None:
        """Step and value of the validation that a run with this `training.best_by` takes as the best; None without
        validations."""
        losses, bleus = self.curves["valid_loss"], self.curves["valid_bleu"]
        return max(
            self.curves[measure].items(),
            key=lambda point: standing(measure, losses.get(point[0], math.inf), bleus.get(point[0], 0.0)),
            default=None,
        )


def read_run(folder: Path, notice: Callable[[str], None]) -> RunRecord:
    """Raises UserError where the folder is no run's, or its recipe can't be read. A log that is missing, damaged or
    without validations is told by `notice`, in a line, and leaves the curves without what it lacks."""
    if not is_run(folder):
        problem = "holds no run (recipe.yaml)" if folder.is_dir() else "no such folder"
        raise UserError(f"{folder}: {problem}; give the folder that `headway train --output` made")
    recipe = flattened(load_recipe(folder / "recipe.yaml").model_dump(mode="json"))
    log = folder / "log.jsonl"
    if not log.is_file():
        notice(f"warning: {folder}: has no log.jsonl; nothing is known of its validations")
        return RunRecord(folder, recipe, 0, {measure: {} for measure in MEASURES})
    damaged: list[int] = []
    last_step, curves = 0, {measure: dict[int, float]() for measure in MEASURES}
    for number, _, entry in read_log(log, damaged.append):
        last_step = max(last_step, entry["step"])
        points = {measure: entry[measure] for measure in MEASURES if measure in entry}
        if not all(type(value) in (int, float) and math.isfinite(value) for value in points.values()):
            damaged.append(number)
            continue
        for measure, value in points.items():
            curves[measure].setdefault(entry["step"], value)
    if damaged:
        notice(f"warning: {log}: {len(damaged)} damaged lines are left out, the first is line {min(damaged)}")
    if not any(curves.values()):
        notice(f"warning: {folder}: has no validation in its log.jsonl; it has no curves")
    return RunRecord(folder, recipe, last_step, {name: dict(sorted(curve.items())) for name, curve in curves.items()})
