"""Files and directories that appear whole or not at all (temporary name, fsync, rename), and locks on them."""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headway.errors import UserError

TEMPORARY_SUFFIX = ".partial"
REPLACED_SUFFIX = ".old" + TEMPORARY_SUFFIX
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ERROR_NUMBER = re.compile(r"\(os error (\d+)\)")
"""Safetensors' form of an error of the operating system."""


@contextmanager
def write_directory(path: Path, size: int = 0) -> Iterator[Path]:
    """A folder to fill. It replaces `path` when the block ends without an error, and is removed otherwise. Raises
    UserError if the disk is full. size: approximate number of bytes to be written, 0 if unknown."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = (path.with_name(path.name + suffix) for suffix in (TEMPORARY_SUFFIX, REPLACED_SUFFIX))
    shutil.rmtree(temporary, ignore_errors=True)
    with _refusing_full_disk(path, size):
        if size > shutil.disk_usage(path.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        temporary.mkdir()
        try:
            yield temporary
            # Modes are as the umask says; safetensors makes files for their owner alone.
            readable = temporary.stat().st_mode & 0o666
            for file in temporary.rglob("*"):
                if file.is_file():
                    with suppress(OSError):  # a file system without modes
                        file.chmod(readable)
                sync(file)
            sync(temporary)
            shutil.rmtree(old, ignore_errors=True)
            if path.exists():
                path.rename(old)
            temporary.rename(path)
            sync(path.parent)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


@contextmanager
def _refusing_full_disk(path: Path, size: int) -> Iterator[None]:
    """Raises UserError if the disk is full in the block."""
    try:
        yield
    except BaseException as error:
        if not is_out_of_space(error):
            raise
        needed = f"about {size / 1e6:,.1f} MB needed, " if size else ""
        free = f"{shutil.disk_usage(path.parent).free / 1e6:,.1f} MB free"
        number = _number(error) or 0
        remedy = "make room" if number == errno.ENOSPC else f"raise what limits it ({os.strerror(number)})"
        told = f"{path}: no space to write it: {needed}{free}; what was there before is intact, {remedy}"
        raise UserError(told) from None


def is_out_of_space(error: BaseException) -> bool:
    """Whether an error of Python or safetensors means that the disk or a quota is full, or a file is too large."""
    return _number(error) in _NO_SPACE


def _number(error: BaseException) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    found = _ERROR_NUMBER.search(str(error))
    return int(found[1]) if found else None


def remove_directory(path: Path) -> None:
    """Removes a folder. If it is interrupted, `remove_leftovers` removes the rest."""
    leftover = path.with_name(path.name + TEMPORARY_SUFFIX)
    shutil.rmtree(leftover, ignore_errors=True)
    path.rename(leftover)
    sync(path.parent)
    shutil.rmtree(leftover)


def write_file(path: Path, data: bytes) -> None:
    """Replaces the file in one rename. Raises UserError if the disk is full."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with _refusing_full_disk(path, len(data)):
        try:
            temporary.write_bytes(data)
            sync(temporary)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    sync(path.parent)


def write_json(path: Path, document: Any) -> None:
    """Replaces a JSON file in one rename."""
    write_file(path, json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8") + b"\n")


def remove_leftovers(folder: Path) -> None:
    """Removes the remains of a killed save from the folder, and restores what it was about to replace."""
    for old in folder.glob(f"*{REPLACED_SUFFIX}"):
        path = old.with_name(old.name.removesuffix(REPLACED_SUFFIX))
        if not path.exists():
            old.rename(path)
    for leftover in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Waits until the file, or the names in the folder, are on the disk."""
    if path.is_dir() and os.name == "nt":  # Windows can't open a folder
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Locks an open file or folder until the process ends, however it ends. False if another process holds the lock.
    Always True on Windows and on file systems without locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True
