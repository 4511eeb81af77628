"""Names of what a run keeps after a step, its models and its checkpoints: `step-00002000`."""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"step-(\d{8,})")


def step_name(step: int) -> str:
    """2000 -> `step-00002000`"""
    return f"step-{step:08d}"


def step_of(name: str) -> int | None:
    """`step-00002000` -> 2000; None for what isn't named so."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def step_folders(folder: Path) -> list[Path]:
    """The folders in `folder` that are named for a step, oldest first. Others are left alone: they are not ours."""
    steps = {path: step_of(path.name) for path in folder.glob("step-*")}
    return [path for step, path in sorted((step, path) for path, step in steps.items() if step is not None)]
