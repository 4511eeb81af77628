"""What takes long is kept between builds, as long as the code that it comes from stays as it is."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def kept(name: str, *own: Path) -> Path:
    """A folder in _build/ for results of this code and of files of the guide's own; other results are removed."""
    digest = hashlib.sha256()
    for file in sorted([*(ROOT / "src").rglob("*.py"), ROOT / "constraints.txt", HERE / "matplotlibrc", *own]):
        digest.update(file.read_bytes())
    folder = HERE / "_build" / name
    now = folder / digest.hexdigest()[:16]
    for other in folder.glob("*"):
        if other != now:
            shutil.rmtree(other)
    return now
