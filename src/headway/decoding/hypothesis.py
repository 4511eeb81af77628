"""A finished translation, on ids alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stopped = Literal["eos", "max_length"]


@dataclass
class Hypothesis:
    """A translation as ids, without control ids."""

    ids: list[int]
    score: float
    """Total log-probability, <eos> included, even if the length limit ended the hypothesis."""
    stopped: Stopped
