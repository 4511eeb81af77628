"""Small records as plain JSON."""

from __future__ import annotations

import dataclasses
import math
from typing import Any


def plain(one: Any) -> dict[str, Any]:
    """A dataclass of numbers and texts."""
    fields = ((field.name, getattr(one, field.name)) for field in dataclasses.fields(one))
    return {name: rounded(value) if isinstance(value, float) else value for name, value in fields}


def rounded(value: float) -> float | None:
    """Six digits; None for what JSON has no number for."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
