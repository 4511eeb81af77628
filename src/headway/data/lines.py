"""Texts from files that hold one per line: the whole line, a column of it, or a field of its JSON object. Also parts of
such files, for jobs that share a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, TypeVar

from headway.data.compressed import LONGEST_LINE, compression, damages, open_bytes
from headway.data.corpus import decode_lines, go_to, read_lines
from headway.data.two_sided import HEAD, NO_LANGUAGES, fields_of, form_of_table
from headway.errors import UserError
from headway.text.characters import HALF_PAIR, is_blank, is_unicode

LINES_AT_ONCE, CHARACTERS_AT_ONCE = 2048, 1 << 24
"""The most that is read, sorted by length and translated together. It bounds memory."""
BLOCK = 1 << 20
"""Bytes that are read at a time to count lines."""
PAUSE = 0.02
"""Seconds without a new line after which the lines before it no longer wait for more."""
READ_AHEAD = 64
"""Lines of a pipe that are read before they are wanted."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Line:
    """A line of a file, and the text to take from it."""

    number: int
    """Counted from 1."""
    text: str
    fault: str = ""
    """Why the line has no such text; empty if it has one."""


@dataclass(frozen=True)
class Layout:
    """Where a line has its text. Without column and field the text is the whole line."""

    column: int | None = None
    """The TAB-separated column, counted from 1."""
    field: str | None = None
    """The field of the line's JSON object, or of the object `translation` in it."""
    quoted: bool = False
    """Whether columns may be quoted, as `two_sided.form_of_table` finds."""

    def of_file(self, path: Path) -> Layout:
        """The layout, with quoted columns if those of the file are."""
        if self.column is None:
            return self
        return replace(self, quoted=form_of_table(list(islice(read_lines(path), HEAD)), NO_LANGUAGES).quoted)

    def lines(self, lines: Iterable[str], first: int = 1) -> Iterator[Line]:
        """The text of each line. A blank line has a blank text. first: the number of the first line."""
        for number, line in enumerate(lines, start=first):
            if self == Layout() or is_blank(line):
                yield Line(number, line)
            elif self.column is not None:
                yield self._of_column(number, line, self.column)
            else:
                yield self._of_field(number, line)

    def _of_column(self, number: int, line: str, column: int) -> Line:
        columns = fields_of(line) if self.quoted else line.split("\t", column)
        if columns is None:
            return Line(number, "", "has a quoted text without its end")
        if len(columns) < column:
            return Line(number, "", f"has only {len(columns)} column{'s' * (len(columns) > 1)}")
        return Line(number, columns[column - 1])

    def _of_field(self, number: int, line: str) -> Line:
        try:
            document = json.loads(line.lstrip("\ufeff"))  # of joined files
        except (ValueError, RecursionError):
            return Line(number, "", "is not JSON")
        objects = [document, document.get("translation")] if isinstance(document, dict) else []  # as Hugging Face's
        text = next((one[self.field] for one in objects if isinstance(one, dict) and self.field in one), None)
        if not isinstance(text, str):
            return Line(number, "", f"is not an object with a text {self.field!r}")
        if not is_unicode(text):
            return Line(number, "", HALF_PAIR)
        return Line(number, text.replace("\n", " ").replace("\r", " "))


@dataclass(frozen=True)
class Span:
    """Consecutive lines of a file."""

    offset: int
    """The position of the first byte, in a compressed file that of the uncompressed content."""
    first: int
    """The number of the first line, counted from 1."""
    lines: int

    def read(self, path: Path) -> Iterator[str]:
        """Raises UserError with file and line."""
        return islice(read_lines(path, offset=self.offset, first=self.first), self.lines)


class SpanReader:
    """Reads spans of files. It keeps the last file open. To reach a later span of a compressed file, it then
    decompresses only what lies between the two, not everything before it."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._stream: IO[bytes] | None = None

    def read(self, path: Path, span: Span) -> Iterator[str]:
        """The lines, which must be read before the next call. Raises UserError with file and line."""
        if self._stream is None or self._path != path:
            self.close()
            self._path, self._stream = path, open_bytes(path)
        go_to(self._stream, span.offset, path)
        yield from islice(decode_lines(self._stream, str(path), faults=damages(path), first=span.first), span.lines)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def span_of_shard(path: Path, shard: int, shards: int) -> Span:
    """The lines of one of `shards` parts of similar size in bytes. shard: counted from 1. The shards in order are the
    file: a line belongs to the shard that its first byte is in. Raises UserError for what isn't a regular file."""
    if not path.is_file():
        raise UserError(f"{path}: isn't a regular file; shards are parts of a file, so its size must be known")
    try:
        size = _size(path)
        with open_bytes(path) as stream:
            start, end = _boundaries(stream, [size * (shard - 1) // shards, size * shard // shards])
    except damages(path) as error:
        raise UserError(f"{path}: can't be read ({error}); is it complete?") from None
    return Span(offset=start[1], first=start[0] + 1, lines=end[0] - start[0])


def chunks(items: Iterable[Item | None], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Lists of LINES_AT_ONCE items, or fewer once their sizes, in characters, reach CHARACTERS_AT_ONCE, or where a
    None among them stands for a pause."""
    chunk: list[Item] = []
    characters = 0
    for item in items:
        if item is not None:
            chunk.append(item)
            characters += size(item)
        if chunk and (item is None or len(chunk) == LINES_AT_ONCE or characters >= CHARACTERS_AT_ONCE):
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def with_pauses(items: Iterable[Item]) -> Iterator[Item | None]:
    """The items, and None each time that the next one takes longer than PAUSE, as after the last line that a program
    has written to a pipe. A thread reads them, because Windows can't tell whether a pipe has more."""
    arrived: Queue[tuple[Item] | Exception | None] = Queue(READ_AHEAD)

    def read() -> None:
        try:
            for item in items:
                arrived.put((item,))
            arrived.put(None)
        except Exception as error:
            arrived.put(error)

    Thread(target=read, daemon=True).start()
    while True:
        try:
            found = arrived.get(timeout=PAUSE)
        except Empty:
            yield None
            continue
        if found is None:
            return
        if isinstance(found, Exception):
            raise found
        yield found[0]


def _size(path: Path) -> int:
    """The bytes of the uncompressed content."""
    if not compression(path):
        return path.stat().st_size
    with open_bytes(path) as stream:
        return sum(map(len, iter(lambda: stream.read(BLOCK), b"")))


def _boundaries(stream: IO[bytes], positions: list[int]) -> list[tuple[int, int]]:
    """For each position, in ascending order: how many lines begin before it, and at which byte the next one begins."""
    found: list[tuple[int, int]] = []
    at, ends, last = 0, 0, (0, 0)
    for position in positions:
        if at >= position:  # 0, or the line at the previous position extends beyond this one
            found.append(last)
            continue
        while block := stream.read(min(BLOCK, position - 1 - at)):
            at += len(block)
            ends += block.count(b"\n")
        before = ends + 1
        while rest := stream.readline(LONGEST_LINE):
            at += len(rest)
            if rest.endswith(b"\n"):
                ends += 1
                break
        found.append(last := (before, at))
    return found
