"""The validation pairs of a run."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from headway.errors import UserError


def validation_pairs(model: Path) -> list[tuple[str, str]]:
    """Source and target, a tag in front of the source where the model has several target languages: those that a run
    directory keeps, or the folder that it was prepared in. None for a model directory, which has no data, and for a run
    whose folder or recipe can't be read any more: its model can be used all the same."""
    from headway.training.prepared import VALID_TEXTS
    from headway.training.reading import load_recipe

    file, recipe = model / "data" / VALID_TEXTS, model / "recipe.yaml"
    with suppress(UserError, OSError, ValueError):
        if not file.is_file() and recipe.is_file() and (prepared := load_recipe(recipe).data.prepared):
            file = prepared / VALID_TEXTS
        if file.is_file():
            return [(source, target) for source, target in json.loads(file.read_text(encoding="utf-8"))]
    return []
