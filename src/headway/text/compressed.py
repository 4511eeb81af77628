"""Files that may be compressed, by their suffix: .gz, .xz and, with a package more before Python 3.14, .zst."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO

from headway.errors import UserError

SUFFIXES = (".gz", ".xz", ".zst")


def is_compressed(path: Path) -> bool:
    """Whether the file is compressed, by its suffix."""
    return path.suffix.lower() in SUFFIXES


def plain_name(path: Path) -> Path:
    """Without the suffix of the compression: `train.de.gz` -> `train.de`."""
    return path.with_suffix("") if is_compressed(path) else path


def open_bytes(path: Path, mode: str = "rb", *, as_named: Path | None = None) -> IO[bytes]:
    """The file's content, to be read (`rb`) or written (`wb`), as the suffix of `path`, or of `as_named`, says. Raises
    what `open` raises, and UserError for .zst where its package is missing."""
    return _opener(as_named or path)(path, mode)


def compress(path: Path, data: bytes) -> bytes:
    """The data as a file of this name holds them. Compressed they are a member of their own, so that a file may end
    after it and go on later; the same data give the same bytes. Raises UserError as `open_bytes` does."""
    match path.suffix.lower():
        case ".gz":
            return gzip.compress(data, mtime=0)
        case ".xz":
            return lzma.compress(data)
        case ".zst":
            return _zstandard(path).compress(data)
    return data


def damages(path: Path) -> tuple[type[Exception], ...]:
    """What reading the opened file raises where it is damaged or incomplete."""
    match path.suffix.lower():
        case ".gz":
            return OSError, EOFError, zlib.error
        case ".xz":
            return OSError, EOFError, lzma.LZMAError
        case ".zst":
            return OSError, EOFError, _zstandard(path).ZstdError
    return (OSError,)


def _opener(path: Path) -> Callable[[Path, str], IO[bytes]]:
    match path.suffix.lower():
        case ".gz":
            return gzip.open  # type: ignore[return-value]
        case ".xz":
            return lzma.open  # type: ignore[return-value]
        case ".zst":
            return _zstandard(path).open
    return open  # type: ignore[return-value]


def _zstandard(path: Path) -> ModuleType:
    try:
        from compression import zstd  # type: ignore[import-not-found]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise UserError(f"{path}: .zst needs a package more: pip install 'headway[zst]'") from None
    return zstd
