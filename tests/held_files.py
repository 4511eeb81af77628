"""Files as Windows keeps them: what this process has open or mapped can't be renamed, replaced or removed.

Where the system has no /proc, nothing is known to be held.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

PROCESS = Path("/proc/self")


def held_files() -> set[str]:
    """Those that this process has open or mapped."""
    if not PROCESS.exists():
        return set()
    lines = (PROCESS / "maps").read_text().splitlines()
    mapped = {fields[5] for line in lines if len(fields := line.split(maxsplit=5)) == 6}
    opened = set()
    for descriptor in (PROCESS / "fd").iterdir():
        with suppress(FileNotFoundError):  # another thread has closed it
            opened.add(descriptor.readlink())
    return mapped | {str(path) for path in opened if not path.is_dir()}  # Windows opens no folders


def _refuse_held(path: Any, dir_fd: int | None) -> None:
    folder = Path() if dir_fd is None else PROCESS / "fd" / str(dir_fd)
    whole = str((folder / path).parent.resolve() / Path(path).name)  # a link itself may go
    if any(one == whole or one.startswith(f"{whole}/") for one in held_files()):
        raise PermissionError(errno.EACCES, "the file is being used by this process", whole)


def _careful(call: Callable[..., None], dir_fds: tuple[str, ...]) -> Callable[..., None]:
    """The function, with a path for each of `dir_fds`, the options that name a folder which the path is relative to."""

    @wraps(call)
    def careful(*paths: Any, **options: Any) -> None:
        for path, dir_fd in zip(paths, dir_fds, strict=True):
            _refuse_held(path, options.get(dir_fd))
        call(*paths, **options)

    return careful


@pytest.fixture
def held_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renames, replacements and removals of files that are held fail, as on Windows."""
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, _careful(getattr(os, name), ("src_dir_fd", "dst_dir_fd")))
    monkeypatch.setattr(os, "unlink", _careful(os.unlink, ("dir_fd",)))
