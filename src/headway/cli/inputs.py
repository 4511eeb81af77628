"""Inputs of commands: lines of a file, of a shard of one, or of standard input, and pairs of lines."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import typer

from headway.errors import UserError

if TYPE_CHECKING:
    from io import BufferedReader, TextIOWrapper

    from headway.text.corpus import Pair
    from headway.text.lines import Layout, Line

Item = TypeVar("Item")


def input_lines(file: str, layout: Layout, shard: str | None) -> Iterator[Line]:
    """The texts of the file or of a shard of it. Raises UserError before the first line for a file that can't be
    read."""
    from headway.text.corpus import decode_lines, read_lines
    from headway.text.lines import span_of_shard

    part = None if shard is None else _parse_shard(shard)
    if file == "-":
        if part is not None:
            raise UserError("--shard needs a FILE: the size of standard input isn't known before its end")
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file")
        # detached: at its end Python closes `sys.stdin`, and would fail where a thread still reads it
        stream = cast("TextIOWrapper[BufferedReader]", sys.stdin).detach()
        return layout.lines(decode_lines(stream, "standard input"))
    check_input(file, layout)
    layout = layout.of_file(Path(file))
    if part is None:
        return layout.lines(read_lines(Path(file)))
    span = span_of_shard(Path(file), *part)
    return layout.lines(span.read(Path(file)), span.first)


def check_input(file: str, layout: Layout) -> None:
    """Raises UserError for anything but a file with one text per line."""
    from headway.text.corpus import is_two_sided
    from headway.text.lines import Layout

    if not Path(file).exists() or Path(file).is_dir():
        raise UserError(
            f"{file}: {'is a folder' if Path(file).is_dir() else 'no such file'}; "
            "give a text file, or - for standard input"
        )
    if is_two_sided(Path(file)) and layout == Layout():
        raise UserError(f"{file}: holds two sides; say where the source texts are: --column N, or --field NAME")


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
    from headway.text.corpus import is_two_sided, notices_of, read_pairs
    from headway.text.two_sided import NO_LANGUAGES

    languages = NO_LANGUAGES
    if model is not None and any(map(is_two_sided, source)):
        info = model_info(model)
        languages = info["source_language"], target_language or info["target_language"]
    for notice in notices_of(source, languages):
        typer.echo(f"headway: notice: {notice}", err=True)
    return read_pairs(source, target, lenient=lenient, languages=languages)


def as_they_arrive(lines: Iterator[Item], *files: str | Path) -> Iterator[Item | None]:
    """The lines, with None where a pipe or terminal pauses; unchanged for plain files."""
    from headway.text.corpus import is_plain
    from headway.text.lines import with_pauses

    plain = (stat.S_ISREG(os.fstat(0).st_mode) if str(file) == "-" else is_plain(Path(file)) for file in files)
    return lines if all(plain) else with_pauses(lines)


def _parse_shard(text: str) -> tuple[int, int]:
    """The two numbers of `3/8`. Raises UserError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UserError(f"--shard {text}: must be I/N, whole numbers with I from 1 to N, such as 1/8")
    return int(number), int(count)
