"""Files that may be compressed, as their suffix says: .gz, .xz, and .zst, which needs a package before Python 3.14."""

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
    """The path without the suffix of the compression: `train.de.gz` -> `train.de`."""
    return path.with_suffix("") if is_compressed(path) else path


def open_bytes(path: Path, mode: str = "rb", *, as_named: Path | None = None) -> IO[bytes]:
    """The file's content, to be read (`rb`) or written (`wb`). The suffix of `as_named`, or else of `path`, decides the
    compression. Raises what `open` raises, and UserError if the package for .zst is missing."""
    return _opener(as_named or path)(path, mode)


def compress(path: Path, data: bytes) -> bytes:
    """The data as a file of this name holds them. Compressed data are a complete member, so a file may end after it and
    be continued later. Equal data give equal bytes. Raises UserError as `open_bytes` does."""
    match path.suffix.lower():
        case ".gz":
            return gzip.compress(data, mtime=0)
        case ".xz":
            return lzma.compress(data)
        case ".zst":
            return _zstandard(path).compress(data)
    return data


def damages(path: Path) -> tuple[type[Exception], ...]:
    """The exceptions that reading the opened file raises if it is damaged or incomplete."""
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
            raise UserError(f"{path}: .zst needs an extra package: pip install 'headway[zst]'") from None
    return zstd
