"""When a run validates, which validation is the best, and when the run ends."""

from __future__ import annotations

from typing import NamedTuple

from headway.evaluation import Scores
from headway.training.checkpoint import Progress
from headway.training.recipe import BestBy, TrainingSection

EPOCH_LIMITS = (100, 2000)
"""By default validation comes once an epoch, but not before and not after so many steps."""
LEAST_BLEU = 1.0
"""A lower BLEU is noise: a few n-grams that are right by chance."""


class Validation(NamedTuple):
    """Result of a validation."""

    loss: float
    """Cross-entropy a target token in nats, without label smoothing."""
    scores: Scores
    """Of greedy translations."""


class Outlook(NamedTuple):
    """How far a run is, by its nearest limit; None where no limit tells."""

    done: float | None
    """The share of the run that is done, 0 to 1."""
    minutes_left: float | None


def steps_between_validations(options: TrainingSection, steps_per_epoch: int) -> int:
    """As the recipe says, or once an epoch."""
    return options.validate_every or min(max(steps_per_epoch, EPOCH_LIMITS[0]), EPOCH_LIMITS[1])


def last_step(options: TrainingSection, steps_per_epoch: int) -> int | None:
    """By the recipe's steps and epochs. Each epoch has its own plan, so that of epochs is a good estimate."""
    by_epochs = options.max_epochs and options.max_epochs * steps_per_epoch
    return min((limit for limit in (options.max_steps, by_epochs) if limit), default=None)


def standing(best_by: BestBy, loss: float, bleu: float) -> tuple[float, float]:
    """Sort key of a validation, the highest for the best: the recipe's measure, then the loss. The loss alone decides
    between validations whose BLEU is noise."""
    score = -loss if best_by == "valid_loss" else bleu if bleu >= LEAST_BLEU else 0.0
    return score, -loss


def reached(options: TrainingSection, progress: Progress, minutes: float, *, epoch_over: bool) -> str | None:
    """The recipe's limit that ends the run, such as `training.max_steps=800`, if one is reached. epoch_over: the
    epoch that the run is in has no step left."""
    spent = {
        "max_steps": progress.step,
        "max_epochs": progress.epoch + epoch_over,
        "max_minutes": minutes,
        "patience": progress.validations_without_better,
    }
    for name, value in spent.items():
        limit = getattr(options, name)
        if limit is not None and value >= limit:
            return f"training.{name}={limit:g}"
    return None


def outlook(options: TrainingSection, progress: Progress, last_step: int | None) -> Outlook:
    """How far the run is, by the steps and the minutes that it may have."""
    shares = []
    if last_step is not None:
        shares.append(progress.step / last_step)
    if options.max_minutes is not None:
        shares.append(progress.minutes / options.max_minutes)
    if not shares:
        return Outlook(None, None)
    done = min(1.0, max(shares))
    return Outlook(done, progress.minutes * (1 - done) / done)
