r"""Reads lines of text files, and pairs of sentences of parallel files: line i of the source belongs to line i of the
target, or one file holds both sides: .tsv or .jsonl (`data.two_sided`), a table (`data.tables`) or a translators' file
(`data.memories`). Rows of a table and pairs of a translators' file are read as lines of .tsv and .jsonl.

Lines end at "\n" only, so that U+2028, U+0085 or "\r" inside a line never shift the pairing; a final "\r" and a byte
order mark are not text. All files are read as streams. Pairs are read in chunks of lines, as bytes: the reading process
does little work, and others can decode the lines and do the rest. The text alone decides where a chunk ends.
"""

import glob
import io
import json
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat, zip_longest
from pathlib import Path
from typing import IO

from headway.data.compressed import LOW, fault_of_line, is_plain, naming_damage, open_text, plain_name, raw_lines
from headway.data.memories import languages_of, read_entries
from headway.data.tables import read_rows
from headway.data.two_sided import HEAD, MEMORIES, NO_LANGUAGES, TABLES, Form, Sides, form_of
from headway.errors import UserError
from headway.languages import is_suffix_of_language
from headway.text.characters import is_blank

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TWO_SIDED = (".tsv", ".jsonl", *TABLES, *MEMORIES)
ANY_PAIRS = ", ".join(TWO_SIDED)
"""Files that hold both sides, in messages and help."""
LINES = 2**14
"""Most lines of a chunk. A line of a pipe is a chunk of its own."""
BYTES = 2**23
"""A chunk ends after the line that brings it to this size."""


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
    """The file of the translation, if it is another one."""


@dataclass(frozen=True)
class CorpusFiles:
    """The files of a corpus."""

    sources: Sequence[Path]
    targets: Sequence[Path]
    """The translations, a file for each source file. Empty if the sources hold both sides."""
    languages: Sides = NO_LANGUAGES
    """Codes of source and target, as far as they are known: columns or keys may be named after them."""
    swapped: bool = False
    """Whether source and target of files with both sides change places."""
    columns: tuple[int, int] | None = None
    """The columns of source and target in .tsv files and tables, from 0, if they are chosen."""

    def pairs(self, *, lenient: bool = False) -> Iterator[Pair]:
        """The pairs of the corpus, blank ones included; `lenient` as in `decode_lines`. Raises UserError."""
        for chunk in read_chunks([self], lenient=lenient):
            yield from chunk.pairs()

    def notices(self) -> Iterator[str]:
        """Notices about how files with both sides are read. Raises UserError."""
        for file, form in self._forms():
            yield from (f"{file}: {notice}" for notice in form.notices)

    def named_languages(self) -> Sides:
        """The languages by suffixes of the first files, or by their first row or keys. Raises UserError."""
        if self.targets:
            return suffix_of_language(self.sources[0]), suffix_of_language(self.targets[0])
        if self.sources[0].is_file() and is_memory(self.sources[0]):
            return languages_of(self.sources[0])
        return next((form.languages for _, form in self._forms()), NO_LANGUAGES)

    def _forms(self) -> Iterator[tuple[Path, Form]]:
        """The layout of each file with both sides; none for pipes, which can be read only once."""
        for file in self.sources:
            if is_two_sided(file) and file.is_file() and not self.swapped:  # the other direction has the notices
                left_out = Counter[str]()
                with open_text(file) as stream:
                    form, lines = self._opened(stream, file, left_out)
                    for _ in lines if is_memory(file) else ():  # counts what is left out
                        pass
                if left_out:
                    reasons = ", ".join(f"{reason} {count:,}" for reason, count in left_out.items())
                    form = replace(form, notices=(*form.notices, f"entries left out: {reasons}"))
                yield file, form

    def _opened(self, stream: IO[bytes], file: Path, left_out: Counter[str]) -> tuple[Form, Iterator[bytes]]:
        """The layout of a file with both sides, and its lines."""
        lines = _lines(stream, file, self.languages, left_out)
        head = list(islice(lines, HEAD))
        texts = _decoded(b"".join(head), file, 1, lenient=True)
        return form_of(texts, file, self.languages, self.columns), chain(head, lines)


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of one pair of files, or of one file that holds both sides."""

    corpus: int
    source_file: Path
    target_file: Path | None
    first: int
    """The number of the first line in its file, from 1."""
    lines: int
    source: bytes
    target: bytes
    form: Form | None
    done: float
    """The share of all source files' bytes that has been read so far, 0 to 1."""
    lenient: bool
    """Whether bytes that aren't UTF-8 are read, as in `decode_lines`."""

    def pairs(self) -> Iterator[Pair]:
        """The pairs, blank ones included. Raises UserError."""
        sources = self.source_lines()
        if self.target_file is not None:
            targets = _decoded(self.target, self.target_file, self.first, self.lenient)
            for (line, source), target in zip(sources, targets, strict=True):
                yield Pair(source, target, self.source_file, line, self.target_file)
            return
        assert self.form is not None
        for line, text in sources:
            sides = ("", "") if is_blank(text) else self.form.split(text)
            if isinstance(sides, str):
                raise UserError(f"{self.source_file}, line {line}: {sides}")
            yield Pair(*sides, self.source_file, line)

    def source_lines(self) -> list[tuple[int, str]]:
        """The lines of the source file and their numbers. Raises UserError."""
        lines = _decoded(self.source, self.source_file, self.first, self.lenient)
        if self.form is None or not self.form.numbered:
            return list(enumerate(lines, start=self.first))
        parts = (line.partition("\t") for line in lines)
        return [(int(number), line) for number, _, line in parts]


def read_lines(path: Path, *, offset: int = 0, first: int = 1) -> Generator[str]:
    """The lines of a UTF-8 text file, compressed or not, without their line ends; line number `first` begins at byte
    `offset`. Raises UserError with file and line."""
    with open_text(path) as stream:
        if offset:
            with naming_damage(path):
                stream.seek(offset)
        yield from decode_lines(stream, str(path), first=first)


def decode_lines(stream: IO[bytes], name: str, *, lenient: bool = False, first: int = 1) -> Iterator[str]:
    """Decodes lines that end at "\\n"; `name` is the origin in messages, `first` the number of the first line.
    `lenient` reads bytes that aren't UTF-8 as surrogates (PEP 383)."""
    for number, raw in enumerate(raw_lines(stream, name, first), start=first):
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


def read_chunks(corpora: Sequence[CorpusFiles], skip: int = 0, *, lenient: bool = False) -> Iterator[Chunk]:
    """The text of all corpora after the first `skip` chunks. Raises UserError; `Chunk.pairs` finds faults."""
    size = sum(file.stat().st_size for corpus in corpora for file in corpus.sources if file.is_file())
    read = number = 0
    for place, corpus in enumerate(corpora):
        check_files(corpus.sources, corpus.targets)
        for source_file, target_file in zip_longest(corpus.sources, corpus.targets):
            for chunk in _chunks_of(place, corpus, source_file, target_file, read, max(1, size), lenient):
                if number >= skip:
                    yield chunk
                number += 1
            read += source_file.stat().st_size


def _chunks_of(
    number: int, corpus: CorpusFiles, source_file: Path, target_file: Path | None, before: int, size: int, lenient: bool
) -> Iterator[Chunk]:
    """The chunks of a file or of two, of corpus `number`. before, size: bytes of earlier source files, and of all."""
    plain = is_plain(source_file)
    if target_file and not plain and target_file.exists() and source_file.samefile(target_file):
        raise UserError(f"{source_file}: is a pipe, which can't be both sides; give two files")
    most = LINES if plain and (target_file is None or is_plain(target_file)) else 1
    with ExitStack() as files:
        stream = files.enter_context(open_text(source_file))
        form, first = None, 1
        if target_file is None:
            form, lines = corpus._opened(stream, source_file, Counter())
            form = form.swapped() if corpus.swapped else form
            rows = zip(islice(lines, form.header, None), repeat(b""))
            first += form.header
        else:
            targets = files.enter_context(open_text(target_file))
            rows = zip_longest(_lines(stream, source_file), _lines(targets, target_file))
        at_end = False
        while not at_end:
            lines, taken, lacking = [], 0, None
            for pair in islice(rows, most):
                if None in pair:
                    lacking = pair
                    break
                lines.append(pair)
                taken += len(pair[0]) + len(pair[1])
                if taken >= BYTES:
                    break
            else:
                at_end = len(lines) < most
            if lines:
                position = os.lseek(stream.fileno(), 0, os.SEEK_CUR) if plain else 0
                source, target = (b"".join(column) for column in zip(*lines, strict=True))
                done = min(1.0, (before + position) / size)
                yield Chunk(number, source_file, target_file, first, len(lines), source, target, form, done, lenient)
                first += len(lines)
            if lacking:
                assert target_file is not None
                shorter = last = first - 1
                for last, (source, target) in enumerate(chain([lacking], rows), start=first):
                    _decoded(source or target, target_file if source is None else source_file, last, lenient)
                counts = (shorter, last) if lacking[0] is None else (last, shorter)
                raise UserError(
                    f"{source_file} has {counts[0]} lines but {target_file} has {counts[1]}: "
                    "line i of one must be the translation of line i of the other"
                )


def _lines(
    stream: IO[bytes], file: Path, languages: Sides = NO_LANGUAGES, left_out: Counter[str] | None = None
) -> Iterator[bytes]:
    """The raw lines. A table or a translators' file has one for each row or pair: its number, a TAB, and the row as in
    a .tsv file or the pair as in a .jsonl file. languages, left_out: as in `read_entries`."""
    kind = _kind(file)
    if kind in TABLES:
        for number, cells in read_rows(stream, decode_lines(stream, str(file)), file):
            yield "\t".join([str(number), *cells]).encode() + b"\n"
    elif is_memory(file):
        for entry in read_entries(stream, file, languages, Counter() if left_out is None else left_out):
            fields = {**entry.documents, "source": entry.source, "target": entry.target}
            yield f"{entry.line}\t{json.dumps(fields)}\n".encode()
    else:
        lines = raw_lines(stream, str(file))
        first = next(lines, BYTE_ORDER_MARK)
        if first != BYTE_ORDER_MARK:  # a file with nothing else has no lines
            yield first
        yield from lines


def _decoded(text: bytes, file: Path, first: int, lenient: bool) -> list[str]:
    """The lines as by `decode_lines`, decoded all at once if none can be at fault."""
    if first == 1 and text:  # the first line shows the format of the file
        end = text.find(b"\n") + 1 or len(text)
        line = decode_lines(io.BytesIO(text[:end]), str(file), lenient=lenient)
        return [*line, *_decoded(text[end:], file, 2, lenient)]
    try:
        lines = text.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        lines = None
    if lines is None or len(text.translate(None, LOW)) < len(text):
        return list(decode_lines(io.BytesIO(text), str(file), lenient=lenient, first=first))  # names the faulty line
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if b"\r" in text else lines


def check_files(source_files: Sequence[Path], target_files: Sequence[Path]) -> None:
    """Raises UserError for files that don't go together, by their names."""
    for file in (*source_files, *target_files):
        if target_files and is_two_sided(file):
            raise UserError(f"{file}: holds both sides; give it as the source alone")
        if not target_files and file.is_dir():
            raise UserError(f"{file}: is a folder; give files")
        if not target_files and not is_two_sided(file):
            raise UserError(f"{file}: target is missing; give its translation, or one file of both sides ({ANY_PAIRS})")
    if target_files and len(source_files) != len(target_files):
        raise UserError(
            f"{len(source_files)} source files but {len(target_files)} target files: "
            "give them in pairs, in the same order"
        )


def same_text(pairs: Iterable[Pair]) -> bool:
    """Whether every pair has the same text on both sides; False if all is blank. Reads no further than necessary."""
    has_text = False
    for pair in pairs:
        if pair.source != pair.target:
            return False
        has_text |= not is_blank(pair.source)
    return has_text


def is_two_sided(path: Path) -> bool:
    """Whether the file holds both sides, by its suffix before that of a compression."""
    return _kind(path) in TWO_SIDED


def is_memory(path: Path) -> bool:
    """Whether it is a translators' file, by its suffix."""
    return _kind(path) in MEMORIES


def _kind(path: Path) -> str:
    return plain_name(path).suffix.lower()


def suffix_of_language(path: Path) -> str:
    """The code of a language at the end of the name, before compression and pattern, or "": `train.de.gz` -> `de`."""
    suffix = plain_name(Path(path.name.rstrip("*?."))).suffix.lstrip(".")
    return suffix if is_suffix_of_language(suffix) else ""


def as_corpus(sources: Sequence[Path], targets: Sequence[Path], languages: Sides = NO_LANGUAGES) -> CorpusFiles:
    """The files of these names and patterns. Raises UserError unless both sides of a pattern are as many."""
    found = [matching_files(source) for source in sources], [matching_files(target) for target in targets]
    for source, target, these, those in zip(sources, targets, *found, strict=False):
        if len(these) != len(those):
            raise UserError(f"{source} is {len(these)} files, but {target} is {len(those)}: each needs its translation")
    return CorpusFiles(tuple(chain.from_iterable(found[0])), tuple(chain.from_iterable(found[1])), languages)


def matching_files(path: Path) -> list[Path]:
    """The files of a pattern such as `part-*.de.gz`, sorted, or an existing file that has the name of a pattern. Raises
    UserError for a pattern that matches nothing."""
    if not glob.has_magic(str(path)) or path.exists():
        return [path]
    folder = next((one for one in path.parents if one.exists()), Path())  # its name may look like a pattern, too
    pattern = str(path.relative_to(folder))
    if not glob.has_magic(pattern):
        return [path]
    matches = sorted(folder / name for name in glob.glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207
    if not (files := [match for match in matches if not match.is_dir()]):
        raise UserError(f"{path}: no file has a name of this pattern")
    return files
