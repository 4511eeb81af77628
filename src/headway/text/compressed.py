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
    openers: dict[str, Callable[[Path, str], IO[bytes]]] = {
        ".gz": lambda file, how: gzip.open(file, how),  # type: ignore[return-value]
        ".xz": lambda file, how: lzma.open(file, how),  # type: ignore[return-value]
        ".zst": lambda file, how: _zstandard(file).open(file, how),
    }
    return openers.get((as_named or path).suffix.lower(), lambda file, how: open(file, how))(path, mode)


def compress(path: Path, data: bytes) -> bytes:
    """The data as a file of this name holds them. Compressed they are a member of their own, so that a file may end
    after it and go on later; the same data give the same bytes. Raises UserError as `open_bytes` does."""
    compressors: dict[str, Callable[[bytes], bytes]] = {
        ".gz": lambda plain: gzip.compress(plain, mtime=0),
        ".xz": lzma.compress,
        ".zst": lambda plain: _zstandard(path).compress(plain),
    }
    return compressors.get(path.suffix.lower(), bytes)(data)


def damages(path: Path) -> tuple[type[Exception], ...]:
    """What reading the opened file raises where it is damaged or incomplete."""
    of_format: dict[str, Callable[[], type[Exception]]] = {
        ".gz": lambda: zlib.error,
        ".xz": lambda: lzma.LZMAError,
        ".zst": lambda: _zstandard(path).ZstdError,
    }
    own = of_format.get(path.suffix.lower())
    return (OSError, EOFError, own()) if own is not None else (OSError,)


def _zstandard(path: Path) -> ModuleType:
    try:
        from compression import zstd  # type: ignore[import-not-found]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise UserError(f"{path}: .zst needs a package more: pip install 'headway[zst]'") from None
    return zstd
