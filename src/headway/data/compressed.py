"""Opens text files, also compressed ones: .gz, .xz, and .zst, which needs a package before Python 3.14. Recognises
files that aren't text.

A file is written as its suffix says. It is read as its first bytes say, whatever its suffix is: downloads often lose
their suffix, or keep it although they were decompressed on the way. A file must not change while it is read.
"""

import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO

from headway.errors import UserError

MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
"""First bytes of compressed files. No UTF-8 text begins so."""
ZSTD = ("compression.zstd", "backports.zstd")
"""Modules for .zst, of Python 3.14 and of a package."""
LONGEST_LINE = 64 << 20
"""Bytes of a line, at most: a file without line ends would take all memory."""
MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Byte order marks; those of UTF-32 come first, because one of them begins like one of UTF-16."""
_SAVE = "save its text as a plain text file"
FORMATS = {
    b"PK\x03\x04": f"a ZIP archive, as .docx, .xlsx and .odt files are; {_SAVE}",
    b"\xd0\xcf\x11\xe0": f"a document of an old Office format; {_SAVE}",
    b"{\\rtf": f"an RTF document; {_SAVE}",
    b"%PDF-": f"a PDF document; {_SAVE}",
    b"\x89PNG": "an image; give a text file",
    b"\xff\xd8\xff": "an image; give a text file",
    b"\x1f\x8b": "compressed with gzip; decompress it first, as with `gzip -dc`",
    b"\xfd7zXZ\0": "compressed with xz; decompress it first, as with `xz -dc`",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; decompress it first, as with `zstd -dc`",
    b"BZh91AY&SY": "compressed with bzip2; decompress it first, as with `bzip2 -dc`",
}
LOW = bytes(range(9))
"""Bytes that are rare in text, but every second one of alphabetic text in UTF-16: 0 in Latin, 4 in Cyrillic."""
FEWEST_LOW = 4
"""A line with fewer low bytes is text with stray control characters."""

CHANGED = "was changed while it was read; start again when it stays as it is"


def compression(path: Path) -> str:
    """The suffix of a file's compression, by its first bytes, or for a pipe by its name; "" if it isn't compressed."""
    if not path.is_file():
        return _named_compression(path)
    with open(path, "rb") as file:
        beginning = file.read(max(map(len, MAGIC)))
    return next((suffix for magic, suffix in MAGIC.items() if beginning.startswith(magic)), "")


def plain_name(path: Path) -> Path:
    """The path without the suffix of the compression: `train.de.gz` -> `train.de`."""
    return path.with_suffix("") if _named_compression(path) else path


def open_bytes(path: Path, mode: str = "rb", *, as_named: Path | None = None) -> IO[bytes]:
    """Opens the content for reading (`rb`), by its `compression`, or for writing (`wb`), compressed by the name of
    `as_named`, or else of `path`. Raises the errors of `open`, and UserError if the package for .zst is missing."""
    suffix = compression(path) if mode == "rb" else _named_compression(as_named or path)
    return _package(suffix, path).open(path, mode) if suffix else open(path, mode)  # type: ignore[return-value]


def compress(path: Path, data: bytes) -> bytes:
    """The data in the form of a file of this name. Compressed data are a complete member, so a file may end after it
    and be continued later. Equal data give equal bytes. Raises UserError as `open_bytes` does."""
    suffix = _named_compression(path)
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    return _package(suffix, path).compress(data) if suffix else data


def damages() -> tuple[type[Exception], ...]:
    """The exceptions that reading an opened file raises if it is damaged or incomplete."""
    zstd = (module.ZstdError for name in ZSTD if (module := sys.modules.get(name)) is not None)
    return OSError, EOFError, zlib.error, lzma.LZMAError, *zstd


@contextmanager
def naming_damage(file: Path) -> Iterator[None]:
    """Raises UserError if what the block reads of the file is damaged or incomplete."""
    try:
        yield
    except damages() as error:
        raise UserError(f"{file}: can't be read ({error}); is it complete?") from None


@contextmanager
def open_text(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes. Raises UserError if the file can't be opened, or was changed before the block ended."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder, a text file is needed")
    try:
        opened = open_bytes(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except ValueError:  # NUL, which a recipe may spell
        raise UserError(f"{str(path)!r}: is no name of a file") from None
    with closing(opened) as stream:
        before = os.fstat(stream.fileno())
        yield stream
        if stat.S_ISREG(before.st_mode) and _version(os.fstat(stream.fileno())) != _version(before):
            raise UserError(f"{path}: {CHANGED}")


@contextmanager
def unchanged(files: Iterable[Path]) -> Iterator[None]:
    """Raises UserError if a file was changed before the block ended, so that several readings may have differed."""
    before = {file: _version(file.stat()) for file in files}
    yield
    for file, then in before.items():
        if not file.exists() or _version(file.stat()) != then:
            raise UserError(f"{file}: {CHANGED}")


def raw_lines(stream: IO[bytes], name: str, first: int = 1) -> Iterator[bytes]:
    """The lines with their line ends; `first` is the number of the first. Raises UserError as `decode_lines` does."""
    number = first - 1
    try:
        while raw := stream.readline(LONGEST_LINE + 1):
            number += 1
            if len(raw) > LONGEST_LINE:
                raise UserError(f"{name}, line {number}: is longer than {LONGEST_LINE:,} bytes; is it a text file?")
            yield raw
    except damages() as error:
        raise UserError(f"{name}: can't be read after line {number} ({error}); is it complete?") from None


def is_plain(path: Path) -> bool:
    """Whether it can be read again; False for a path that exists and is neither file nor folder, such as a pipe."""
    return path.is_file() or path.is_dir() or not path.exists()


def _named_compression(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix in MAGIC.values() else ""


def _package(suffix: str, path: Path) -> ModuleType:
    if suffix != ".zst":
        return gzip if suffix == ".gz" else lzma
    for name in ZSTD:
        with suppress(ImportError):
            return import_module(name)
    raise UserError(f"{path}: .zst needs an extra package: pip install 'headway[zst]'")


def _version(status: os.stat_result) -> tuple[int, ...]:
    """Numbers that change when the file is written or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def fault_of_line(raw: bytes, number: int) -> str | None:
    """The fault of a line that isn't UTF-8, with the remedy; None if it may be text. Only line 1 can show a format."""
    if number == 1:
        if encoding := next((encoding for mark, encoding in MARKS.items() if raw.startswith(mark)), ""):
            return _to_convert(encoding)
        if meaning := next((meaning for start, meaning in FORMATS.items() if raw.startswith(start)), ""):
            return f"is {meaning}"
    low = len(raw) - len(raw.translate(None, LOW))
    if low < FEWEST_LOW or low * 3 < len(raw) or not raw.strip(LOW + b"\r\n"):
        return None
    odd = sum(place % 2 for place, byte in enumerate(raw) if byte in LOW) / low
    order = "" if number > 1 else "BE" if raw[0] in LOW else "LE"
    if not 0.1 < odd < 0.9:
        return _to_convert(f"UTF-16{order}")
    if low > 0.7 * len(raw) and not 0.4 < odd < 0.6:
        return _to_convert(f"UTF-32{order}")
    return "holds bytes that no text has; is it a text file?"


def _to_convert(encoding: str) -> str:
    return f"is {encoding}; convert the file, for example with `iconv -f {encoding} -t UTF-8`"
