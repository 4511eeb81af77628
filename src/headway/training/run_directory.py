"""The folder of a run: what may be begun in it, and what a start that failed has left there."""

from __future__ import annotations

import shutil
from pathlib import Path

from headway.errors import UserError
from headway.storage.atomic import remove_leftovers
from headway.training.checkpoint import last_checkpoint

FOLDERS = ("data", "models", "checkpoints")
FILES = ("recipe.yaml", "log.jsonl", "best.json")


def refuse_used_folder(run: Path) -> None:
    """Raises UserError unless a new run can begin here: in a new or empty folder, or where a start has failed."""
    if not run.exists():
        return
    if not run.is_dir():
        raise UserError(f"{run}: is a file, the run directory can't be made there")
    if last_checkpoint(run / "checkpoints") is not None:
        raise UserError(f"{run}: holds a run already; go on with --resume {run}, or choose another --out")
    if not (run / "recipe.yaml").exists() and any(run.iterdir()):
        raise UserError(f"{run}: is not empty and holds no run; choose another --out")


def open_run(run: Path) -> Path | None:
    """Makes the folder ready and returns its last checkpoint; where there is none, what a failed start left goes."""
    checkpoint = last_checkpoint(run / "checkpoints")
    if checkpoint is None and (run / "recipe.yaml").exists():
        for name in FOLDERS:
            shutil.rmtree(run / name, ignore_errors=True)
        for name in FILES:
            (run / name).unlink(missing_ok=True)
    for name in ("models", "checkpoints"):
        (run / name).mkdir(parents=True, exist_ok=True)
        remove_leftovers(run / name)
    return checkpoint
