r"""Parallel text files to pairs of sentences: line i of the source belongs to line i of the target, or one file holds
both sides: .tsv or .jsonl (`text.two_sided`).

Lines end at "\n" only, so that U+2028, U+0085 or "\r" inside a line never shift the pairing; a final "\r" and a byte
order mark are not text. Compressed files are decompressed. All files are read as streams, and a plain
file must stay as it is meanwhile.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO

from headway.errors import UserError
from headway.text.characters import is_blank
from headway.text.compressed import damages, open_bytes, plain_name
from headway.text.signatures import fault_of_line
from headway.text.two_sided import HEAD, NO_LANGUAGES, Form, Sides, form_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TWO_SIDED = (".tsv", ".jsonl")
"""Suffixes of files with both sides."""
LONGEST_LINE = 64 << 20
"""Bytes of a line, at most: a file without line ends would take all memory."""
CHANGED = "was changed while it was read; start again when it stays as it is"


@dataclass(frozen=True)
class Pair:
    """One sentence and its translation, and the place they come from."""

    source: str
    target: str
    file: Path
    """The source file."""
    line: int
    """Counted from 1, the same on both sides."""
    target_file: Path | None = None
    """The file of the translation, where it is another one."""


def read_lines(path: Path, *, lenient: bool = False, offset: int = 0, first: int = 1) -> Generator[str]:
    """The lines of a UTF-8 text file, compressed or not, without their line ends. Raises UserError with file and line;
    `lenient` reads bytes that aren't UTF-8 as surrogates (PEP 383). `offset` is the byte of the content where line
    number `first` begins."""
    with open_text(path) as stream:
        if offset:
            _go_to(stream, offset, path)
        yield from decode_lines(stream, str(path), lenient=lenient, faults=damages(path), first=first)


@contextmanager
def open_text(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed. Raises UserError where the file can't be opened, or was another one when the
    block ended."""
    with closing(_open(path)) as stream:
        before = os.fstat(stream.fileno())
        yield stream
        if stat.S_ISREG(before.st_mode) and version(os.fstat(stream.fileno())) != version(before):
            raise UserError(f"{path}: {CHANGED}")


def decode_lines(
    stream: IO[bytes],
    name: str,
    *,
    lenient: bool = False,
    faults: tuple[type[Exception], ...] = (OSError,),
    first: int = 1,
) -> Iterator[str]:
    """Bytes that end at "\\n" to lines of text; `name` is what an error calls their origin, `faults` what the stream
    raises where it can't be read, `first` the number of the first line in its file."""
    for number, raw in enumerate(raw_lines(stream, name, faults, first), start=first):
        if fault := fault_of_line(raw, number):
            raise UserError(f"{name}, line {number}: {fault}")
        text = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
        if not text:  # an empty file that has a mark
            return
        try:
            line = text.decode("utf-8", "surrogateescape" if lenient else "strict")
        except UnicodeDecodeError as error:
            byte = text[error.start]
            raise UserError(
                f"{name}, line {number}: byte 0x{byte:02x} at column {error.start + 1} is not UTF-8; "
                "convert the file, for example with iconv"
            ) from None
        yield line.removesuffix("\n").removesuffix("\r")


@contextmanager
def unchanged(files: Iterable[Path]) -> Iterator[None]:
    """Raises UserError where one of the files is another one when the block ends: what read it several times has read
    different things."""
    before = {file: version(file.stat()) for file in files}
    yield
    for file, then in before.items():
        if not file.exists() or version(file.stat()) != then:
            raise UserError(f"{file}: {CHANGED}")


def read_pairs(
    source_files: Sequence[Path],
    target_files: Sequence[Path],
    *,
    lenient: bool = False,
    languages: Sides = NO_LANGUAGES,
) -> Iterator[Pair]:
    """The pairs of parallel files, in order, blank ones included; without target files, those of .tsv and .jsonl files,
    whose columns or keys may be named after the `languages` of source and target. Raises UserError where they
    don't match; `lenient` as in `read_lines`."""
    check_files(source_files, target_files)
    if not target_files:
        for file in source_files:
            yield from _pairs_of_file(file, lenient, languages)
    for source_file, target_file in zip(source_files, target_files, strict=False):
        yield from _pairs_of_files(source_file, target_file, lenient)


def check_files(source_files: Sequence[Path], target_files: Sequence[Path]) -> None:
    """Raises UserError for files that don't go together, by their names."""
    for file in (*source_files, *target_files):
        if target_files and is_two_sided(file):
            raise UserError(f"{file}: holds both sides; give it as the source alone")
        if not target_files and not is_two_sided(file):
            raise UserError(
                f"{file}: without a file of translations it must be a .tsv or .jsonl file, which holds both sides"
            )
    if target_files and len(source_files) != len(target_files):
        raise UserError(
            f"{len(source_files)} source files but {len(target_files)} target files: "
            "give them in pairs, in the same order"
        )


def same_text(pairs: Iterable[Pair]) -> bool:
    """Whether every pair has the same text on both sides; False where all is blank. Reads no further than it must."""
    has_text = False
    for pair in pairs:
        if pair.source != pair.target:
            return False
        has_text |= not is_blank(pair.source)
    return has_text


def is_plain(path: Path) -> bool:
    """Whether it can be read again; False for what is there and is neither file nor folder, such as a pipe."""
    return path.is_file() or path.is_dir() or not path.exists()


def is_two_sided(path: Path) -> bool:
    """Whether the file holds both sides, by its suffix (that of a compression aside)."""
    return plain_name(path).suffix.lower() in TWO_SIDED


def _pairs_of_file(file: Path, lenient: bool, languages: Sides) -> Iterator[Pair]:
    with closing(read_lines(file, lenient=lenient)) as lines:
        head = list(islice(lines, HEAD))
        form = form_of(head, file, languages)
        rows = chain(head[form.header :], lines)
        yield from two_sided_pairs(rows, file, form, first=1 + form.header)


def notices_of(files: Iterable[Path], languages: Sides = NO_LANGUAGES) -> Iterator[str]:
    """Notices about how files with both sides are read; none for pipes, which can be read only once. Raises
    UserError."""
    for file in files:
        if is_two_sided(file) and file.is_file():
            with closing(read_lines(file, lenient=True)) as lines:
                form = form_of(list(islice(lines, HEAD)), file, languages)
            yield from (f"{file}: {notice}" for notice in form.notices)


def two_sided_pairs(lines: Iterable[str], file: Path, form: Form, *, first: int) -> Iterator[Pair]:
    """The pairs of lines with both sides. first: the number of the first line in its file. Raises UserError."""
    for number, line in enumerate(lines, start=first):
        if is_blank(line):
            yield Pair("", "", file, number)
            continue
        sides = form.split(line)
        if isinstance(sides, str):
            raise UserError(f"{file}, line {number}: {sides}")
        yield Pair(*sides, file, number)


def _pairs_of_files(source_file: Path, target_file: Path, lenient: bool) -> Iterator[Pair]:
    if not is_plain(source_file) and target_file.exists() and source_file.samefile(target_file):
        raise UserError(f"{source_file}: is a pipe, which can't be both sides; give two files")
    with (
        closing(read_lines(source_file, lenient=lenient)) as sources,
        closing(read_lines(target_file, lenient=lenient)) as targets,
    ):
        for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
            if source is None or target is None:
                shorter = number - 1
                longer = number + sum(1 for _ in (targets if source is None else sources))
                counts = (shorter, longer) if source is None else (longer, shorter)
                raise uneven(source_file, target_file, *counts)
            yield Pair(source, target, source_file, number, target_file)


def uneven(source_file: Path, target_file: Path, source_lines: int, target_lines: int) -> UserError:
    """The error of two files whose lines can't be each other's translations."""
    return UserError(
        f"{source_file} has {source_lines} lines but {target_file} has {target_lines}: "
        "line i of one must be the translation of line i of the other"
    )


def matching_files(paths: Iterable[Path]) -> list[Path]:
    """The files, those of a pattern such as `part-*.de.gz` in sorted order; a file that has such a name is itself.
    Raises UserError for a pattern that matches nothing."""
    found = []
    for path in paths:
        if not is_pattern(path) or path.exists():
            found.append(path)
            continue
        matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207 - takes any path
        files = [match for match in matches if not match.is_dir()]
        if not files:
            raise UserError(f"{path}: no file has a name of this pattern")
        found += files
    return found


def is_pattern(path: Path) -> bool:
    """Whether the name may stand for several files."""
    return glob.has_magic(str(path))


def version(status: os.stat_result) -> tuple[int, ...]:
    """Of a file, by its `os.stat`; differs where it was written or replaced in between."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _open(path: Path) -> IO[bytes]:
    if path.is_dir():
        raise UserError(f"{path}: is a folder, a text file is needed")
    try:
        return open_bytes(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except ValueError:  # NUL, which a recipe may spell
        raise UserError(f"{str(path)!r}: is no name of a file") from None


def _go_to(stream: IO[bytes], offset: int, path: Path) -> None:
    try:
        stream.seek(offset)
    except damages(path) as error:
        raise UserError(f"{path}: can't be read ({error}); is it complete?") from None


def raw_lines(stream: IO[bytes], name: str, faults: tuple[type[Exception], ...], first: int = 1) -> Iterator[bytes]:
    """The lines as they are, line ends included; `first` is the number of the first. Raises UserError as `decode_lines`
    does."""
    number = first - 1
    try:
        while raw := stream.readline(LONGEST_LINE + 1):
            number += 1
            if len(raw) > LONGEST_LINE:
                raise UserError(f"{name}, line {number}: is longer than {LONGEST_LINE:,} bytes; is it a text file?")
            yield raw
    except faults as error:
        raise UserError(f"{name}: can't be read after line {number} ({error}); is it complete?") from None
