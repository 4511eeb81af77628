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


def open_bytes(path: Path, mode: str = "rb") -> IO[bytes]:
    """The file's content, to be read (`rb`) or written (`wb`). Raises what `open` raises, and UserError for .zst where
    its package is missing."""
    return _opener(path)(path, mode)


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
