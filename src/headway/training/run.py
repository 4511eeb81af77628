"""A run in progress, as one record: what it trains, on what, and where it stands."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from headway.model import Transformer
from headway.text.batches import MicroBatch
from headway.training.averaging import MovingAverage
from headway.training.batches import Batches
from headway.training.checkpoint import Progress
from headway.training.minimum_risk import RiskSampler
from headway.training.prepared import PreparedData
from headway.training.ranks import Alone
from headway.training.recipe import Recipe


@dataclass
class Run:
    """What `start` makes, and the loop goes on with."""

    folder: Path
    identity: os.stat_result
    """Of the folder, when training began."""
    recipe: Recipe
    device: torch.device
    dtype: torch.dtype
    """Of matrix products."""
    data: PreparedData
    train: Batches
    valid: Batches
    model: Transformer
    loss_of: nn.Module
    """The model and its loss: a micro-batch's tensors -> the sum of its losses."""
    exchanging: nn.Module
    """The same as a step takes it: its gradients are the means of all ranks'."""
    sampler: RiskSampler | None
    """What minimum-risk training samples with."""
    optimizers: list[torch.optim.Optimizer]
    """Each of some of the weights."""
    average: MovingAverage | None
    """What is validated and kept in place of the weights themselves."""
    largest: MicroBatch
    """The training micro-batch that takes the most memory."""
    last_step: int | None
    """Where the recipe's steps and epochs end the run."""
    validate_every: int
    """In steps, as is `save_every`."""
    save_every: int
    progress: Progress
    ranks: Alone
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = time.monotonic() - 60 * self.progress.minutes

    def minutes(self) -> float:
        """Spent so far, over all resumes."""
        return (time.monotonic() - self.started) / 60
