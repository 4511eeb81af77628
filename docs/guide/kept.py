"""What takes long is kept between builds, as long as the code that it comes from stays as it is."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def kept(name: str) -> Path:
    """A folder in _build/ for results of this code; results of other code are removed."""
    digest = hashlib.sha256()
    for file in sorted([*(ROOT / "src").rglob("*.py"), ROOT / "constraints.txt", HERE / "matplotlibrc"]):
        digest.update(file.read_bytes())
    folder = HERE / "_build" / name
    own = folder / digest.hexdigest()[:16]
    for other in folder.glob("*"):
        if other != own:
            shutil.rmtree(other)
    return own
