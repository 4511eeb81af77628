"""Learning rates: the paper's schedule (equation 3) and others."""

import math

from headway.recipe.recipe import Schedule, TrainingSection


def rate_of_step(step: int, options: TrainingSection, d_model: int, last_step: int | None) -> float:
    """The learning rate of a step, counted from 1, by the recipe. last_step: of the run, if known."""
    peak = paper_peak(d_model, options.warmup_steps) if options.schedule == "paper" else options.learning_rate or 0.0
    return learning_rate(step, options.schedule, peak, options.warmup_steps, last_step, options.decay_steps)


def paper_peak(d_model: int, warmup_steps: int) -> float:
    """The highest learning rate of equation 3."""
    return (d_model * warmup_steps) ** -0.5


def learning_rate(
    step: int,
    schedule: Schedule,
    peak: float,
    warmup_steps: int,
    last_step: int | None = None,
    decay_steps: int | None = None,
) -> float:
    """The rate of a step, counted from 1: a linear warm-up to `peak`, then the schedule. With `paper_peak`, `paper` is
    equation 3: d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Over the last `decay_steps` steps the rate falls to 0 as 1 - sqrt(share done), which Hägele et al. (2024, "Scaling
    Laws and Compute-Optimal Training Beyond Fixed Training Durations") found better than a straight line.
    """
    if schedule == "wsd" and decay_steps is None and last_step is not None:
        decay_steps = max(1, last_step // 5)
    if decay_steps is not None and last_step is not None:
        peak *= 1.0 - math.sqrt(min(1.0, max(0.0, 1.0 - (last_step - step) / decay_steps)))
    if step <= warmup_steps:
        return peak * step / warmup_steps
    if schedule in ("constant", "wsd"):
        return peak
    if schedule == "cosine":
        if last_step is None:
            raise ValueError("schedule cosine needs last_step")
        done = (step - warmup_steps) / max(1, last_step - warmup_steps)
        return peak * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
    return peak * math.sqrt(max(1, warmup_steps) / step)
