"""Files that may be compressed: .gz, .xz, and .zst, which needs a package before Python 3.14.

A file is written as its suffix says. It is read as its first bytes say, whatever its suffix is: downloads often lose
their suffix, or keep it although they were decompressed on the way.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import IO

from headway.errors import UserError

MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
"""First bytes of compressed files. No UTF-8 text begins so."""


def compression(path: Path) -> str:
    """The suffix for the compression of a file that is there, or "" where it has none: by its first bytes. A pipe is
    what its name says."""
    if not path.is_file():
        return _named_compression(path)
    with open(path, "rb") as file:
        beginning = file.read(max(map(len, MAGIC)))
    return next((suffix for magic, suffix in MAGIC.items() if beginning.startswith(magic)), "")


def plain_name(path: Path) -> Path:
    """The path without the suffix of the compression: `train.de.gz` -> `train.de`."""
    return path.with_suffix("") if _named_compression(path) else path


def open_bytes(path: Path, mode: str = "rb", *, as_named: Path | None = None) -> IO[bytes]:
    """The file's content, to be read (`rb`), by its `compression`, or written (`wb`), compressed as the name of
    `as_named`, or else of `path`, says. Raises what `open` raises, and UserError if the package for .zst is missing."""
    suffix = compression(path) if mode == "rb" else _named_compression(as_named or path)
    return _opener(suffix, path)(path, mode)


def compress(path: Path, data: bytes) -> bytes:
    """The data as a file of this name holds them. Compressed data are a complete member, so a file may end after it and
    be continued later. Equal data give equal bytes. Raises UserError as `open_bytes` does."""
    match _named_compression(path):
        case ".gz":
            return gzip.compress(data, mtime=0)
        case ".xz":
            return lzma.compress(data)
        case ".zst":
            return _zstandard(path).compress(data)
    return data


def damages(path: Path) -> tuple[type[Exception], ...]:
    """The exceptions that reading the opened file raises if it is damaged or incomplete."""
    match compression(path):
        case ".gz":
            return OSError, EOFError, zlib.error
        case ".xz":
            return OSError, EOFError, lzma.LZMAError
        case ".zst":
            return OSError, EOFError, _zstandard(path).ZstdError
    return (OSError,)


def _named_compression(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix in MAGIC.values() else ""


def _opener(suffix: str, path: Path) -> Callable[[Path, str], IO[bytes]]:
    match suffix:
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
