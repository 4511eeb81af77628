"""Names of what a run keeps after a step, its models and its checkpoints: `step-00002000`."""

import re
from pathlib import Path

_NAME = re.compile(r"step-(\d+)")
_OURS = re.compile(r"step-\d{8,}")
"""As `step_name` writes it; any other folder is somebody's own."""


def step_name(step: int) -> str:
    """2000 -> `step-00002000`"""
    return f"step-{step:08d}"


def step_of(name: str) -> int | None:
    """`step-00002000` or `step-2000` -> 2000; None for what isn't named so."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def step_folders(folder: Path) -> list[Path]:
    """The folders in `folder` that `step_name` has named, oldest first."""
    ours = (path for path in folder.glob("step-*") if _OURS.fullmatch(path.name))
    return sorted(ours, key=lambda path: int(path.name.removeprefix("step-")))
