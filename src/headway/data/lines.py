"""Takes texts from files that hold one per line: the whole line, a column, or a field of its JSON object. Also divides
files into parts, for jobs that share a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from os import SEEK_END
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, TypeVar

from headway.data.compressed import LONGEST_LINE, naming_damage, open_bytes
from headway.data.corpus import decode_lines, read_lines
from headway.data.two_sided import HEAD, NO_LANGUAGES, fields_of, form_of_table, parsed_line
from headway.errors import UserError
from headway.text.characters import HALF_PAIR, is_blank, is_unicode

LINES_AT_ONCE, CHARACTERS_AT_ONCE = 2048, 1 << 24
"""Most lines that are read, sorted by length and translated together, to bound memory."""
BLOCK = 1 << 20
"""Bytes that are read at a time to count lines."""
PAUSE = 0.02
"""Seconds without a new line after which earlier lines no longer wait for more."""
READ_AHEAD = 64
"""Lines of a pipe that are read in advance."""
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
    """The place of the text in a line. Without column and field the text is the whole line."""

    column: int | None = None
    """The TAB-separated column, counted from 1."""
    field: str | None = None
    """The field of the line's JSON object, or of the object `translation` in it."""
    quoted: bool = False
    """Whether columns may be quoted, as `two_sided.form_of_table` finds."""

    def of_file(self, path: Path) -> Layout:
        """The layout, with quoted columns if those of the file are. A pipe, which can be read only once, is left."""
        if self.column is None or not path.is_file():
            return self
        return replace(self, quoted=form_of_table(list(islice(read_lines(path), HEAD)), NO_LANGUAGES).quoted)

    def lines(self, lines: Iterable[str], first: int = 1) -> Iterator[Line]:
        """The text of each line. A blank line has a blank text. first: the number of the first line."""
        for number, line in enumerate(lines, start=first):
            is_whole = self == Layout() or is_blank(line)
            yield Line(number, line) if is_whole else Line(number, *self._found(line))

    def _found(self, line: str) -> tuple[str, str]:
        """Text and fault."""
        if self.column is not None:
            columns = fields_of(line) if self.quoted else line.split("\t", self.column)
            if columns is None:
                return "", "has a quoted text without its end"
            if len(columns) < self.column:
                return "", f"has only {len(columns)} column{'s' * (len(columns) > 1)}"
            return columns[self.column - 1], ""
        document = parsed_line(line)
        if document is None:
            return "", "is not JSON"
        items = dict(document) if isinstance(document, tuple) else {}
        nested = items.get("translation")  # as in the datasets of Hugging Face
        text = {**(dict(nested) if isinstance(nested, tuple) else {}), **items}.get(self.field)
        if not isinstance(text, str):
            return "", f"is not an object with a text {self.field!r}"
        return (text.replace("\n", " ").replace("\r", " "), "") if is_unicode(text) else ("", HALF_PAIR)


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
    """Reads spans of files. It keeps the last file open, so that no part is decompressed again for a later span."""

    def __init__(self) -> None:
        self._streams: dict[Path, IO[bytes]] = {}

    def read(self, path: Path, span: Span) -> Iterator[str]:
        """The lines, which must be read before the next call. Raises UserError with file and line."""
        if path not in self._streams:
            self.close()
            self._streams[path] = open_bytes(path)
        with naming_damage(path):
            self._streams[path].seek(span.offset)
        yield from islice(decode_lines(self._streams[path], str(path), first=span.first), span.lines)

    def close(self) -> None:
        while self._streams:
            self._streams.popitem()[1].close()


def span_of_shard(path: Path, shard: int, shards: int) -> Span:
    """The lines of one of `shards` parts of similar size in bytes. shard: counted from 1. The shards in order are the
    file: a line belongs to the shard that its first byte is in. Raises UserError for what isn't a regular file."""
    if not path.is_file():
        raise UserError(f"{path}: isn't a regular file; shards are parts of a file, so its size must be known")
    bounds: list[tuple[int, int]] = []
    """The lines that begin before the shard and before its end, and the byte at which the next line begins."""
    at = lines = 0
    with naming_damage(path), open_bytes(path) as stream:
        size = stream.seek(0, SEEK_END)
        stream.seek(0)
        for position in (size * (shard - 1) // shards, size * shard // shards):
            if at < position:  # the line at the previous position doesn't extend beyond this one
                while block := stream.read(min(BLOCK, position - 1 - at)):
                    at += len(block)
                    lines += block.count(b"\n")
                lines += 1
                while rest := stream.readline(LONGEST_LINE):
                    at += len(rest)
                    if rest.endswith(b"\n"):
                        break
            bounds.append((lines, at))
    (before, offset), (end, _) = bounds
    return Span(offset, before + 1, end - before)


def chunks(items: Iterable[Item | None], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Lists of LINES_AT_ONCE items, or fewer if their sizes reach CHARACTERS_AT_ONCE or None marks a pause."""
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
