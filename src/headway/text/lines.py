r"""Texts out of files that hold one a line: the whole line, a column of it, or a field of the JSON object that it is.
And parts of such files, for jobs that share one among them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

from headway.errors import UserError
from headway.text.compressed import damages, is_compressed, open_bytes
from headway.text.corpus import LONGEST_LINE, decode_lines, is_blank, read_lines

LINES_AT_ONCE, CHARACTERS_AT_ONCE = 2048, 1 << 24
"""Read, sorted by length and worked on together; bound memory."""
BLOCK = 1 << 20
"""Bytes that are counted together."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Line:
    """One line of a file, and the text that is asked for of it."""

    number: int
    """Counted from 1."""
    text: str
    fault: str = ""
    """Why the line has no such text; empty where it has one."""


@dataclass(frozen=True)
class Layout:
    """Where in a line its text is; without column and field it is the whole line."""

    column: int | None = None
    """Of columns that TABs separate, counted from 1."""
    field: str | None = None
    """Of a JSON object."""

    def lines(self, lines: Iterable[str], first: int = 1) -> Iterator[Line]:
        """The text of each line; `first` is the number of the first one. A blank line has a blank text."""
        for number, line in enumerate(lines, start=first):
            if self == Layout() or is_blank(line):
                yield Line(number, line)
            elif self.column is not None:
                yield self._of_column(number, line, self.column)
            else:
                yield self._of_field(number, line)

    def _of_column(self, number: int, line: str, column: int) -> Line:
        columns = line.split("\t", column)
        if len(columns) < column:
            return Line(number, "", f"has {len(columns)} column{'s' * (len(columns) > 1)} alone")
        return Line(number, columns[column - 1])

    def _of_field(self, number: int, line: str) -> Line:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return Line(number, "", "is not JSON")
        text = document.get(self.field) if isinstance(document, dict) else None
        if not isinstance(text, str):
            return Line(number, "", f"is not an object with a text {self.field!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            return Line(number, "", "holds half of a surrogate pair, which is no character")
        return Line(number, text.replace("\n", " ").replace("\r", " "))


@dataclass(frozen=True)
class Span:
    """Lines of a file, one after the other."""

    offset: int
    """The byte that the first one begins with, where the file is compressed of what it holds."""
    first: int
    """The number of the first one, counted from 1."""
    lines: int

    def read(self, path: Path) -> Generator[str]:
        """Raises UserError with file and line."""
        yield from islice(read_lines(path, offset=self.offset, first=self.first), self.lines)


class SpanReader:
    """Reads spans of files. The file of the last one stays open, so that a span further on of a compressed file costs
    what lies between them, not all that lies before it."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._stream: IO[bytes] | None = None

    def read(self, path: Path, span: Span) -> Iterator[str]:
        """The lines; they must be read before those of the next span. Raises UserError with file and line."""
        if self._stream is None or self._path != path:
            self.close()
            self._path, self._stream = path, open_bytes(path)
        try:
            self._stream.seek(span.offset)
        except damages(path) as error:
            raise UserError(f"{path}: can't be read ({error}); is it complete?") from None
        yield from islice(decode_lines(self._stream, str(path), faults=damages(path), first=span.first), span.lines)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def span_of_shard(path: Path, shard: int, shards: int) -> Span:
    """The lines of a shard, counted from 1, of so many of like size in bytes. One after the other the shards are the
    file: a line belongs to the shard in which its first byte is. Raises UserError for what can't be read twice."""
    if not path.is_file():
        raise UserError(f"{path}: is no file; shards are parts of a file, whose size must be known")
    try:
        size = _size(path)
        with open_bytes(path) as stream:
            start, end = _boundaries(stream, [size * (shard - 1) // shards, size * shard // shards])
    except damages(path) as error:
        raise UserError(f"{path}: can't be read ({error}); is it complete?") from None
    return Span(offset=start[1], first=start[0] + 1, lines=end[0] - start[0])


def chunks(items: Iterable[Item], size: Callable[[Item], int], at_most: int = LINES_AT_ONCE) -> Iterator[list[Item]]:
    """The items in lists of `at_most`, fewer where their sizes, in characters, reach CHARACTERS_AT_ONCE."""
    chunk: list[Item] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += size(item)
        if len(chunk) == at_most or characters >= CHARACTERS_AT_ONCE:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _size(path: Path) -> int:
    """Bytes of the content."""
    if not is_compressed(path):
        return path.stat().st_size
    with open_bytes(path) as stream:
        return sum(map(len, iter(lambda: stream.read(BLOCK), b"")))


def _boundaries(stream: IO[bytes], positions: list[int]) -> list[tuple[int, int]]:
    """For each position, ascending: how many lines begin before it, and the byte that the next one begins with."""
    found: list[tuple[int, int]] = []
    at, ends = 0, 0
    for position in positions:
        if position == 0:
            found.append((0, 0))
            continue
        if found and at >= position:  # the line that the last position was in reaches over this one
            found.append(found[-1])
            continue
        while at < position - 1:
            block = stream.read(min(BLOCK, position - 1 - at))
            if not block:
                break
            at += len(block)
            ends += block.count(b"\n")
        before = ends + 1
        while rest := stream.readline(LONGEST_LINE):
            at += len(rest)
            if rest.endswith(b"\n"):
                ends += 1
                break
        found.append((before, at))
    return found
