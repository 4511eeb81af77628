"""Names of the models and checkpoints that a run keeps after a step, such as `step-00002000`."""

import re
from pathlib import Path


def step_name(step: int) -> str:
    """2000 -> `step-00002000`"""
    return f"step-{step:08d}"


def step_of(name: str) -> int | None:
    """`step-00002000` or `step-2000` -> 2000; None for any other name."""
    found = re.fullmatch(r"step-(\d+)", name)
    return int(found[1]) if found else None


def step_folders(folder: Path) -> list[Path]:
    """The folders in `folder` with a name by `step_name`, oldest first."""
    named = (path for path in folder.glob("step-*") if re.fullmatch(r"step-\d{8,}", path.name))
    return sorted(named, key=lambda path: int(path.name.removeprefix("step-")))
