"""The validation pairs that a run directory keeps."""

from __future__ import annotations

import json
from pathlib import Path


def validation_pairs(model: Path) -> list[tuple[str, str]]:
    """Source and target, a tag in front of the source where the model has several target languages. Those of a run
    directory; none for a model directory, which has no data."""
    from headway.training.prepared import VALID_TEXTS

    file = model / "data" / VALID_TEXTS
    if not file.is_file():
        return []
    return [(source, target) for source, target in json.loads(file.read_text(encoding="utf-8"))]
