"""The end of a run that has none in sight: the steps that the minutes left have room for, in the last of which its
learning rate falls to zero. Hägele et al. (2024) call it the cooldown, and find that a fifth of all suffices."""

from pathlib import Path
from statistics import fmean
from typing import Any

from headway.errors import UserError
from headway.model import ModelConfig
from headway.storage.checksums import find_damage
from headway.storage.steps import step_folders
from headway.training.checkpoint import read_state
from headway.training.rates import rate_of_step
from headway.training.recipe import Recipe
from headway.training.reporter import read_log

SECONDS_TO_START = 5.0
"""Time to load torch, the data and the model."""
LATEST = 500
"""Steps of the log by which a step's time is known."""


def cooldown(run: Path, recipe: Recipe, minutes: float) -> dict[str, Any]:
    """The limits, by key of `training`, with which the run ends in so many minutes, its last validation included.
    Raises UserError where it can't."""
    if recipe.training.schedule == "cosine":
        raise UserError(f"{run}: schedule: cosine ends at its own last step; --finish is for the other schedules")
    checkpoint = next((one for one in reversed(step_folders(run / "checkpoints")) if find_damage(one) is None), None)
    if checkpoint is None:
        raise UserError(f"{run}: has no checkpoint yet; train on without --finish")
    step = read_state(checkpoint).progress.step
    log = run / "log.jsonl"
    entries = [one for _, _, one in read_log(log, lambda _: None) if "seconds" in one] if log.is_file() else []
    steps = [entry for entry in entries if "loss" in entry]
    validations = [entry for entry in entries if "valid_loss" in entry]
    if not steps or not validations:
        raise UserError(f"{run}: its log has no time of a step and of a validation yet; train on without --finish")
    of_step = fmean(entry["seconds"] for entry in steps[-LATEST:])
    of_validation = validations[-1]["seconds"]
    left = 60 * minutes - SECONDS_TO_START - 2 * of_validation  # the last one, and as long for int8
    more = int(left / (of_step + of_validation * len(validations) / steps[-1]["step"]))
    if more < 1:
        least = (60 * minutes - left + of_step) / 60
        raise UserError(f"{run}: {minutes:g} minutes are too few to finish; {least:.1f} are the least")
    done = _part_done(recipe, step, {entry["step"]: entry["learning_rate"] for entry in steps})
    if done >= 1:
        raise UserError(f"{run}: is finished: its learning rate has reached zero")
    decay_steps = round(more / (1 - done)) if done else min(more, max(1, (step + more) // 5))
    return {
        "max_steps": step + more,
        "decay_steps": decay_steps,
        **dict.fromkeys(("max_epochs", "max_minutes", "patience")),
    }


def _part_done(recipe: Recipe, step: int, rates: dict[int, float]) -> float:
    """The part of its decay that the run has behind it at this step, 0 to 1, by the logged rate."""
    config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4)
    full = rate_of_step(step, recipe.training, config.d_model, last_step=None)
    return (1 - rates.get(step, full) / full) ** 2
