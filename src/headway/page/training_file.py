"""training.json in a run directory: one validation pair at moments of the training (docs/record.md)."""

from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.recipe.reading import is_run
from headway.storage.untrusted import check_version, parse_json, read_plain

TRAINING_FILE = "training.json"
FORMAT, FORMAT_VERSION = "headway-training", 1
LARGEST = 4_000_000
"""Bytes of the largest file that is read."""


def training_of(model: Path) -> dict[str, Any] | None:
    """The file of the run that keeps this model directory; None if there is none. Raises UserError."""
    models = model.absolute().parent
    return read_training(models.parent) if models.name == "models" and is_run(models.parent) else None


def read_training(run: Path) -> dict[str, Any] | None:
    """The file of a run directory; None if there is none. Raises UserError."""
    file = run / TRAINING_FILE
    if not file.exists():
        return None
    document = parse_json(read_plain(file, LARGEST), file)
    check_version(document.get("format_version"), FORMAT_VERSION, file)
    if document.get("format") != FORMAT or not isinstance(document.get("moments"), list):
        raise UserError(f"{file}: holds no moments of a training; remove it")
    return document
