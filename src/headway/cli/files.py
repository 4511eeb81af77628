"""Input and output of commands: standard streams, printed tables, lines and pairs of lines, files, models.

Losing a notice never loses work: a notice that can't be written to standard error is dropped. A closed stream is an
error only where a result has to go there.
"""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import typer

from headway.data.compressed import is_plain, open_bytes
from headway.data.corpus import CorpusFiles, Pair, decode_lines, is_two_sided, read_lines
from headway.data.lines import Layout, Line, chunks, span_of_shard, with_pauses
from headway.data.two_sided import NO_LANGUAGES, Sides
from headway.documents.kinds import MOST_BYTES
from headway.errors import UserError
from headway.insight.terminal import draw_table
from headway.storage.atomic import write_file
from headway.storage.steps import step_folders
from headway.threads import use_threads

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from headway.translator import Translator

Item = TypeVar("Item")
_BAR = re.compile(r"(?<!\\)\|")
"""The mark between cells of a Markdown table. In the last cell of a row it is text."""
_RULE = re.compile(r":?-+:?")
"""A cell of the line below the head of a table."""


class Unfailing(io.RawIOBase):
    """The bytes of a stream. Drops those that the stream doesn't take, because it is full or has no reader."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, data: ReadableBuffer, /) -> int:
        with suppress(OSError):
            self._stream.buffer.write(data)
            self._stream.buffer.flush()
        return memoryview(data).nbytes


class ClosedOutput(io.TextIOBase):
    """Standard output that is closed. Raises UserError for a result that should go there."""

    def write(self, text: str, /) -> int:
        raise UserError("standard output is closed; redirect it to a file or to /dev/null")


def tell(text: str) -> None:
    """Prints a line on standard error, where everything but results goes."""
    typer.echo(text, err=True)


def prepare_streams() -> None:
    """Makes the standard streams ready for a command: in UTF-8, with standard error that never fails."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:  # a file would be opened in a closed stream's place
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")  # Hangul and shades, whatever the system's encoding
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
    elif isinstance(sys.stderr, io.TextIOWrapper):
        errors = "backslashreplace"  # names of files that aren't UTF-8
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(Unfailing(sys.stderr)), encoding="utf-8", errors=errors, line_buffering=True
        )


def print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table on standard output."""
    typer.echo(textwrap.indent(draw_table(rows), "  "))


def with_plain_tables(markdown: str) -> str:
    """The text with the columns of its tables aligned, without their rules and blank heads."""
    blocks = []
    for may_be_table, block in groupby(markdown.split("\n"), key=lambda line: line.startswith("|")):
        lines = list(block)
        columns = len(_BAR.split(lines[0])) - 2
        rows = [_BAR.split(line.rstrip().removesuffix("|")[1:], columns - 1) for line in lines] if columns > 1 else []
        if may_be_table and len(rows) > 1 and all(_RULE.fullmatch(cell.strip()) for cell in rows[1]):
            cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in (rows[0], *rows[2:])]
            blocks.append(draw_table([row for row in cells if any(row)]))
        else:
            blocks += lines
    return "\n".join(blocks)


def input_lines(file: str, layout: Layout, shard: str | None = None) -> Iterator[Line]:
    """The texts of the file, or of a shard of it, such as `3/8`. Raises UserError before the first line."""
    if file == "-":
        if shard is not None:
            raise UserError("--shard needs a FILE: the size of standard input isn't known before its end")
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file")
        # detached: at its end Python closes `sys.stdin`, and would fail where a thread still reads it
        stream = cast("io.TextIOWrapper[io.BufferedReader]", sys.stdin).detach()
        return layout.lines(decode_lines(stream, "standard input"))
    path = Path(file)
    check_input(path, layout)
    layout = layout.of_file(path)
    if shard is None:
        return layout.lines(read_lines(path))
    found = re.fullmatch(r"(\d+)/(\d+)", shard)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"--shard {shard}: must be I/N, whole numbers with I from 1 to N, such as 1/8")
    span = span_of_shard(path, int(found[1]), int(found[2]))
    return layout.lines(span.read(path), span.first)


def input_bytes(file: str) -> bytes:
    """The content of a file or of standard input. Raises UserError."""
    if file == "-" and sys.stdin is None:
        raise UserError("standard input is closed; give a file")
    if file == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    _check_is_file(Path(file), "a file")
    with open(file, "rb") as stream:
        return stream.read(MOST_BYTES + 1)


def check_input(path: Path, layout: Layout) -> None:
    """Raises UserError for anything but a file with one text per line."""
    _check_is_file(path, "a text file")
    if is_two_sided(path) and layout == Layout():
        raise UserError(
            f"{path}: holds two sides; say where the source texts are: --column N, or its name in JSON: --column NAME"
        )


def _check_is_file(path: Path, wanted: str) -> None:
    if path.is_dir() or not path.exists():
        problem = "is a folder" if path.is_dir() else "no such file"
        raise UserError(f"{path}: {problem}; give {wanted}, or - for standard input")


def parallel_pairs(
    source: Sequence[Path],
    target: Sequence[Path | None],
    model: Path | None = None,
    target_language: str | None = None,
    *,
    lenient: bool = False,
    languages: Sides = NO_LANGUAGES,
    columns: tuple[int, int] | None = None,
) -> Iterator[Pair]:
    """The pairs of the files, after notices of their layout. model: its languages tell the sides."""
    from headway.storage.model_directory import model_info

    targets = [file for file in target if file is not None]
    if model is not None and any(map(is_two_sided, source)):
        info, (from_language, _, to_language) = model_info(model), (target_language or "").rpartition(":")
        languages = from_language or info["source_language"], to_language or info["target_language"]
    corpus = CorpusFiles(source, targets, languages, columns=columns)
    for notice in corpus.notices():
        tell(f"notice: {notice}")
    return corpus.pairs(lenient=lenient)


def is_device(output: Path) -> bool:
    """Whether this is a device or a pipe, which is written to directly."""
    return output.exists() and not output.is_file()


def write_bytes(data: bytes, output: Path | None) -> None:
    """Writes a whole file. A link keeps its place. output: None is standard output."""
    if output is not None and is_device(output):
        output.write_bytes(data)
    elif output is not None:
        write_file(output.resolve(), data)
    elif isinstance(sys.stdout, ClosedOutput):
        sys.stdout.write("")
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


def arriving_chunks(items: Iterator[Item], size: Callable[[Item], int], *files: str | Path) -> Iterator[list[Item]]:
    """The chunks of items that are read from these files; a chunk ends where a pipe or terminal pauses."""
    plain = (stat.S_ISREG(os.fstat(0).st_mode) if str(file) == "-" else is_plain(Path(file)) for file in files)
    return chunks(items if all(plain) else with_pauses(items), size)


def write_as_they_arrive(
    lines: Iterator[Line], file: str, output: Path | None, text_of: Callable[[list[Line]], str]
) -> None:
    """Writes the text that belongs to the lines of the file, chunk by chunk. output: None is standard output."""
    with writer(output) as out:
        for chunk in arriving_chunks(lines, lambda line: len(line.text), file):
            out.write(text_of(chunk))
            out.flush()


@contextmanager
def writer(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears when all is written, so that it may be the input's own; .gz, .xz and .zst
    are compressed. A link keeps its place."""
    if path is None:
        yield sys.stdout
        return
    if is_device(path):
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    path = path.resolve()
    partial = path.with_name(f"{path.name}.partial")
    try:
        with io.TextIOWrapper(open_bytes(partial, "wb", as_named=path), encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_translator(
    model: Path,
    device: str,
    precision: str = "auto",
    engine: str = "auto",
    threads: int | None = None,
    ensemble: Sequence[Path] | None = None,
    core: str | None = None,
) -> Translator:
    """Loads the translator that the options name, after setting the threads. Raises UserError."""
    from headway.translator import Translator

    use_threads(threads)
    given: Any = {"device": device, "precision": precision, "engine": engine, "core": core}
    return Translator.load(model, ensemble=ensemble or [], **given)


def tell_of_aligner(translator: Translator, model: Path) -> None:
    """Tells a user who wants alignments where the model has no choice for them."""
    if translator.info.aligner is None:
        tell(f"notice: {model} has no chosen attention, so the mean of all aligns; headway aligner chooses")


def last_models(run: Path, last: int | None) -> list[Path]:
    """The last models that a run directory keeps, or all, oldest first. Raises UserError where it has fewer."""
    from headway.storage.model_directory import stage_of

    models = step_folders(stage_of(run) / "models")
    if last is not None and len(models) < last:
        raise UserError(f"{run}: --last {last} needs a run directory with so many models, it has {len(models)}")
    return models[-last:] if last is not None else models


def validation_pairs(model: Path) -> list[tuple[str, str]]:
    """The validation pairs of a run directory, or of the folder in which its text was prepared. Where the model has
    several target languages, a tag stands in front of each source. Empty for a model directory, and for a run whose
    folder or recipe can't be read any more: its model can still be used."""
    import yaml

    from headway.storage.model_directory import stage_of

    model = stage_of(model)
    file, recipe = model / "data" / "valid.json", model / "recipe.yaml"
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError, yaml.YAMLError):
        if not file.is_file():  # the recipe is read unchecked: training, which checks recipes, needs torch
            file = model / yaml.safe_load(recipe.read_text(encoding="utf-8"))["data"]["prepared"] / "valid.json"
        return [(source, target) for source, target in json.loads(file.read_text(encoding="utf-8"))]
    return []
