"""Parallel text in chunks of lines, as bytes. The process that reads the files does little work. Other processes can
decode the lines and do the rest.

The text alone decides where a chunk ends, so processing the chunks in order always gives the same result.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import IO

from headway.errors import UserError
from headway.text.compressed import damages
from headway.text.corpus import (
    BYTE_ORDER_MARK,
    Pair,
    check_files,
    decode_lines,
    matching_files,
    notices_of,
    open_text,
    raw_lines,
    read_pairs,
    two_sided_pairs,
    uneven,
)
from headway.text.signatures import LOW
from headway.text.two_sided import HEAD, NO_LANGUAGES, Form, Sides, form_of

LINES = 2**14
"""Most lines of a chunk."""
BYTES = 2**23
"""A chunk ends after the line that brings it to this size."""


@dataclass(frozen=True)
class CorpusFiles:
    """The files of a corpus, as `read_pairs` takes them."""

    sources: tuple[Path, ...]
    targets: tuple[Path, ...]
    languages: Sides = NO_LANGUAGES
    """Codes of source and target, as far as they are known."""

    def pairs(self) -> Iterator[Pair]:
        """The pairs of the corpus, as `read_pairs` reads them."""
        return read_pairs(self.sources, self.targets, languages=self.languages)

    def notices(self) -> Iterator[str]:
        """Notices about how the files are read."""
        return notices_of(self.sources, self.languages)


def as_corpus(sources: Sequence[Path], targets: Sequence[Path], languages: Sides = NO_LANGUAGES) -> CorpusFiles:
    """The files that match the given names and patterns. Raises UserError if a pattern of the sources matches a
    different number of files than its pattern of the targets."""
    found: tuple[list[Path], list[Path]] = [], []
    for index, source in enumerate(sources):
        found[0].extend(these := matching_files([source]))
        if targets:
            found[1].extend(those := matching_files([targets[index]]))
            if len(these) != len(those):
                raise UserError(
                    f"{source} is {len(these)} files, but {targets[index]} is {len(those)}: each needs its translation"
                )
    return CorpusFiles(tuple(found[0]), tuple(found[1]), languages)


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of one pair of files, or of one file that holds both sides."""

    corpus: int
    """The index of its corpus."""
    source_file: Path
    target_file: Path | None
    first: int
    """The number of the first line in its file, from 1."""
    lines: int
    source: bytes
    target: bytes
    form: Form | None
    """The layout of a file with both sides."""
    done: float
    """The share of all source files' bytes that has been read so far, 0 to 1."""

    def pairs(self) -> Iterator[Pair]:
        """Its pairs, as `read_pairs` gives them. Raises UserError."""
        for line, (source, target) in enumerate(zip(*self.texts(), strict=True), start=self.first):
            yield Pair(source, target, self.source_file, line, self.target_file)

    def texts(self) -> tuple[list[str], list[str]]:
        """The sources and the targets of its pairs. Raises UserError."""
        sources = _decoded(self.source, self.source_file, self.first)
        if self.form is not None:
            pairs = list(two_sided_pairs(sources, self.source_file, self.form, first=self.first))
            return [pair.source for pair in pairs], [pair.target for pair in pairs]
        assert self.target_file is not None
        return sources, _decoded(self.target, self.target_file, self.first)

    def pair(self, line: int, source: bytes, target: bytes) -> Pair:
        """The pair of the line with this number, whose sides are given without their line ends. Raises UserError."""
        alone = replace(self, first=line, lines=1, source=source + b"\n", target=target + b"\n")
        return next(alone.pairs())


def read_chunks(corpora: Sequence[CorpusFiles], skip: int = 0) -> Iterator[Chunk]:
    """The text of all corpora, without the first `skip` chunks. Raises UserError as `read_pairs` does, except for
    faults within a line."""
    sizes = [file.stat().st_size for corpus in corpora for file in corpus.sources if file.is_file()]
    reader = _Reader(max(1, sum(sizes)))
    number = 0
    for place, corpus in enumerate(corpora):
        check_files(corpus.sources, corpus.targets)
        for index, source_file in enumerate(corpus.sources):
            target_file = corpus.targets[index] if corpus.targets else None
            for chunk in reader.chunks(place, source_file, target_file, corpus.languages):
                if number >= skip:
                    yield chunk
                number += 1


@dataclass
class _Reader:
    size: int
    """Bytes of all source files."""
    read: int = 0
    """Bytes of the source files that are read to their end."""

    def chunks(self, corpus: int, source_file: Path, target_file: Path | None, languages: Sides) -> Iterator[Chunk]:
        with ExitStack() as files:
            streams = [files.enter_context(open_text(file)) for file in (source_file, target_file) if file is not None]
            sources = _lines(streams[0], source_file)
            targets = _lines(streams[1], target_file) if target_file else None
            descriptor = streams[0].fileno()
            form = None
            if target_file is None:
                head = list(islice(sources, HEAD))
                form = form_of(_decoded_leniently(head, source_file), source_file, languages)
                sources = chain(head[form.header :], sources)
            first = 2 if form and form.header else 1
            while lines := _taken(sources, targets):
                if lines[-1][0] is None or lines[-1][1] is None:
                    assert targets is not None
                    assert target_file is not None
                    whole = first + len(lines) - 2
                    longer = whole + 1 + sum(1 for _ in (targets if lines[-1][0] is None else sources))
                    counts = (whole, longer) if lines[-1][0] is None else (longer, whole)
                    raise uneven(source_file, target_file, *counts)
                done = min(1.0, (self.read + os.lseek(descriptor, 0, os.SEEK_CUR)) / self.size)
                source, target = (b"".join(column) for column in zip(*lines, strict=True))
                yield Chunk(corpus, source_file, target_file, first, len(lines), source, target, form, done)
                first += len(lines)
        self.read += source_file.stat().st_size


def _lines(stream: IO[bytes], file: Path) -> Iterator[bytes]:
    """The raw lines. A file with nothing but a byte order mark has none."""
    lines = raw_lines(stream, str(file), damages(file))
    first = next(lines, BYTE_ORDER_MARK)
    return lines if first == BYTE_ORDER_MARK else chain([first], lines)


def _taken(sources: Iterator[bytes], targets: Iterator[bytes] | None) -> list[tuple[bytes, bytes]]:
    """The lines of the next chunk. If one file ends before the other, the last pair lacks a side."""
    taken: list[tuple[bytes, bytes]] = []
    size = 0
    for pair in zip_longest(sources, targets) if targets is not None else zip(sources, iter(bytes, None), strict=False):
        taken.append(pair)
        if pair[0] is None or pair[1] is None:
            break
        size += len(pair[0]) + len(pair[1])
        if len(taken) == LINES or size >= BYTES:
            break
    return taken


def _decoded_leniently(lines: Sequence[bytes], file: Path) -> list[str]:
    """The first lines of a file, faulty ones too."""
    return list(decode_lines(io.BytesIO(b"".join(lines)), str(file), lenient=True))


def _decoded(text: bytes, file: Path, first: int) -> list[str]:
    """The lines that `decode_lines` gives, decoded all at once if none can be at fault."""
    try:
        lines = text.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        lines = None
    if lines is None or first == 1 or len(text.translate(None, LOW)) < len(text):
        return list(decode_lines(io.BytesIO(text), str(file), first=first))  # names the faulty line
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if b"\r" in text else lines
