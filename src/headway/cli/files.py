"""Input and output of commands: lines of files or of standard input, pairs of lines, outputs, and models."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar, cast

from headway.cli.streams import tell
from headway.data.compressed import is_plain, open_bytes
from headway.data.corpus import CorpusFiles, Pair, decode_lines, is_two_sided, read_lines, read_pairs
from headway.data.lines import Layout, Line, chunks, span_of_shard, with_pauses
from headway.data.two_sided import NO_LANGUAGES
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.translator import Translator

Item = TypeVar("Item")


def input_lines(file: str, layout: Layout, shard: str | None = None) -> Iterator[Line]:
    """The texts of the file or of a shard of it. Raises UserError before the first line for a file that can't be
    read."""
    if file == "-":
        if shard is not None:
            raise UserError("--shard needs a FILE: the size of standard input isn't known before its end")
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file")
        # detached: at its end Python closes `sys.stdin`, and would fail where a thread still reads it
        stream = cast("TextIOWrapper[BufferedReader]", sys.stdin).detach()
        return layout.lines(decode_lines(stream, "standard input"))
    path = Path(file)
    check_input(path, layout)
    layout = layout.of_file(path)
    if shard is None:
        return layout.lines(read_lines(path))
    span = span_of_shard(path, *_parse_shard(shard))
    return layout.lines(span.read(path), span.first)


def check_input(path: Path, layout: Layout) -> None:
    """Raises UserError for anything but a file with one text per line."""
    if path.is_dir() or not path.exists():
        problem = "is a folder" if path.is_dir() else "no such file"
        raise UserError(f"{path}: {problem}; give a text file, or - for standard input")
    if is_two_sided(path) and layout == Layout():
        raise UserError(f"{path}: holds two sides; say where the source texts are: --column N, or --field NAME")


def parallel_pairs(
    source: Sequence[Path],
    target: Sequence[Path],
    model: Path | None = None,
    target_language: str | None = None,
    *,
    lenient: bool = False,
) -> Iterator[Pair]:
    """The pairs of `read_pairs`. First prints notices about how files with both sides are read. model: its languages
    tell which side is which. Raises UserError."""
    from headway.storage.model_directory import model_info

    languages = NO_LANGUAGES
    if model is not None and any(map(is_two_sided, source)):
        info = model_info(model)
        languages = info["source_language"], target_language or info["target_language"]
    for notice in CorpusFiles(source, target, languages).notices():
        tell(f"headway: notice: {notice}")
    return read_pairs(source, target, lenient=lenient, languages=languages)


def arriving_chunks(items: Iterator[Item], size: Callable[[Item], int], *files: str | Path) -> Iterator[list[Item]]:
    """The chunks of items that are read from these files; one ends where a pipe or terminal pauses."""
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
    are compressed. A link keeps its place, and what is no file, such as a device, is written to as it is."""
    if path is None:
        yield sys.stdout
        return
    if path.exists() and not path.is_file():
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    path = path.resolve()
    partial = path.with_name(f"{path.name}.partial")
    try:
        opened = open_bytes(partial, "wb", as_named=path)
        with TextIOWrapper(opened, encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _parse_shard(text: str) -> tuple[int, int]:
    """The two numbers of `3/8`. Raises UserError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UserError(f"--shard {text}: must be I/N, whole numbers with I from 1 to N, such as 1/8")
    return int(number), int(count)


def load_translator(
    model: Path,
    device: str,
    precision: str = "auto",
    engine: str = "auto",
    threads: int | None = None,
    ensemble: Sequence[Path] | None = None,
) -> Translator:
    """Loads the translator that the options name, after setting the threads. Raises UserError."""
    from headway.threads import use_threads
    from headway.translator import Translator

    use_threads(threads)
    return Translator.load(model, device=device, precision=precision, ensemble=ensemble or [], engine=engine)  # type: ignore[arg-type]


def tell_of_aligner(translator: Translator, model: Path) -> None:
    """Tells a user who wants alignments where the model has no choice for them."""
    if translator.info.aligner is None:
        tell(f"notice: {model} has no chosen attention, so the mean of all aligns; headway aligner chooses")


def validation_pairs(model: Path) -> list[tuple[str, str]]:
    """Source and target, a tag in front of the source where the model has several target languages: those that a run
    directory keeps, or the folder that it was prepared in. None for a model directory, which has no data, and for a run
    whose folder or recipe can't be read any more: its model can be used all the same."""
    import yaml

    from headway.storage.model_directory import stage_of

    model = stage_of(model)
    file, recipe = model / "data" / "valid.json", model / "recipe.yaml"
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError, yaml.YAMLError):
        if not file.is_file():  # of the recipe as it is: training, which checks recipes, needs torch
            file = model / yaml.safe_load(recipe.read_text(encoding="utf-8"))["data"]["prepared"] / "valid.json"
        return [(source, target) for source, target in json.loads(file.read_text(encoding="utf-8"))]
    return []
