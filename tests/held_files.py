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


def is_held(whole: str) -> bool:
    """Whether this process has the file, or one in the folder, open or mapped."""

    def is_it(other: str) -> bool:
        return other == whole or other.startswith(f"{whole}/")

    if not PROCESS.exists():
        return False
    maps = (PROCESS / "maps").read_text()
    if whole in maps and any(is_it(line.split(maxsplit=5)[-1]) for line in maps.splitlines()):
        return True
    with os.scandir(PROCESS / "fd") as descriptors:
        return any(
            is_it(one) and not Path(one).is_dir() for one in map(_target, descriptors)
        )  # Windows opens no folders


def _target(descriptor: os.DirEntry[str]) -> str:
    with suppress(FileNotFoundError):  # another thread has closed it
        return os.readlink(descriptor)  # noqa: PTH115  # some hundred for each change, so in half the time
    return ""


def _refuse_held(path: Any, dir_fd: int | None) -> None:
    folder = Path() if dir_fd is None else PROCESS / "fd" / str(dir_fd)
    whole = str((folder / path).parent.resolve() / Path(path).name)  # a link itself may go
    if is_held(whole):
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
