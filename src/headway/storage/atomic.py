"""Files and directories that appear whole or not at all: temporary name, fsync, rename."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEMPORARY_SUFFIX = ".partial"


@contextmanager
def write_directory(path: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `path` (and replaces it) when the block ends well, and vanishes otherwise."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for file in temporary.rglob("*"):
            _fsync(file)
        _fsync(temporary)
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
        _fsync(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def write_file(path: Path, data: bytes) -> None:
    """Replaces the file in one rename."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    temporary.write_bytes(data)
    _fsync(temporary)
    temporary.replace(path)
    _fsync(path.parent)


def write_json(path: Path, document: Any) -> None:
    """Replaces a JSON file in one rename."""
    write_file(path, json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8") + b"\n")


def remove_leftovers(folder: Path) -> None:
    """Removes what a killed save left in the folder."""
    for leftover in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _fsync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows can't open a folder
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
