"""The work that a run inherits from the models it is made with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from headway.errors import UserError
from headway.storage.model_directory import model_fingerprint, training_work
from headway.storage.steps import step_folders
from headway.training.checkpoint import read_state
from headway.training.recipe import Recipe


def work_before(recipe: Recipe) -> float | None:
    """The floating-point operations that training the other models has taken: the one that the run starts from, and
    those that translated its text. None where that is unknown, or a model is gone.

    Equal models count once; two that start from the same third one both count it. Translating isn't training, and isn't
    counted."""
    paths = [synthesis.writer for synthesis in recipe.data.syntheses]
    if recipe.training.init_from is not None:
        paths.append(recipe.training.init_from)
    work: dict[str, float | None] = {}
    for path in paths:
        if not path.exists():
            return None
        work[model_fingerprint(path)] = _work_of(path)
    known = [flops for flops in work.values() if flops is not None]
    return sum(known) if len(known) == len(work) else None


def _work_of(path: Path) -> float | None:
    """Of a run all steps count, also those after its best model."""
    for checkpoint in reversed(step_folders(path / "checkpoints")):
        with suppress(UserError):
            return read_state(checkpoint).progress.flops
    return training_work(path)
