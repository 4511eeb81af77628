"""Adam with the paper's constants (section 5.3) and the learning-rate schedules."""

from __future__ import annotations

import math

import torch

from headway.model import Transformer
from headway.training.recipe import Schedule

BETA1 = 0.9
EPSILON = 1e-9


def make_optimizer(model: Transformer, beta2: float) -> torch.optim.Adam:
    """Adam; the learning rate is set anew before each step."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(BETA1, beta2), eps=EPSILON, fused=True)


def paper_peak(d_model: int, warmup_steps: int) -> float:
    """The highest learning rate of equation 3."""
    return (d_model * warmup_steps) ** -0.5


def learning_rate(step: int, schedule: Schedule, peak: float, warmup_steps: int, last_step: int | None = None) -> float:
    """The rate of a step, counted from 1: a linear warm-up to `peak`, then the schedule.

    With `paper_peak`, `paper` is equation 3: d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).
    """
    if step <= warmup_steps:
        return peak * step / warmup_steps
    if schedule == "constant":
        return peak
    if schedule == "cosine":
        if last_step is None:
            raise ValueError("schedule cosine needs last_step")
        done = (step - warmup_steps) / max(1, last_step - warmup_steps)
        return peak * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
    return peak * math.sqrt(max(1, warmup_steps) / step)
