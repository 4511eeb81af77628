"""headway translate"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.translator import Translation

LINES_AT_ONCE = 2048
"""Read, sorted by length and translated together; bounds memory."""


def translate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best).")],
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Text, one sentence a line; - is standard input.")
    ] = "-",
    output: Annotated[Path | None, typer.Option(help="Write here instead of standard output.")] = None,
    beam_size: Annotated[int | None, typer.Option(min=1, help="Hypotheses side by side; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's alpha; 0 favours short translations.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations a line, as `line ||| text ||| score`.")] = 1,
    max_length: Annotated[int | None, typer.Option(min=1, help="Most pieces of a translation.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line: text, score, tokens, ...")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Translate text, line by line: raw text in, raw text out, one line for each, blank for blank.

    \b
    echo "Ein Hund läuft." | headway translate runs/multi30k-de-en
    headway translate runs/multi30k-de-en input.de --output output.en
    """
    from headway.translator import Translator

    lines = _lines(file)
    translator = Translator.load(model, device=device)  # type: ignore[arg-type]
    options = translator.search_options(
        beam_size=beam_size, length_penalty=length_penalty, max_length=max_length, n_best=n_best
    )
    number, failed = 0, False
    with _writer(output) as out:
        while chunk := list(islice(lines, 1 if sys.stdin.isatty() and file == "-" else LINES_AT_ONCE)):
            for translation in translator.translate(chunk, **asdict(options)):
                number += 1
                failed |= translation.stopped == "too_long"
                _notice(translation, number, translator.longest_source)
                out.write(_shown(translation, number, as_json, n_best))
            out.flush()
    raise typer.Exit(2 if failed else 0)


def _shown(translation: Translation, number: int, as_json: bool, n_best: int) -> str:
    if as_json:
        return json.dumps(asdict(translation), ensure_ascii=False) + "\n"
    if n_best > 1:
        every = (translation, *translation.alternatives)
        return "".join(f"{number} ||| {one.text} ||| {one.score:.4f}\n" for one in every)
    return translation.text + "\n"


def _notice(translation: Translation, number: int, longest: int) -> None:
    """Says on standard error where a translation is not whole."""
    if translation.stopped == "too_long":
        typer.echo(
            f"headway: line {number} has {len(translation.source_tokens)} pieces, the model reads at most {longest}; "
            "its translation is left blank, split the line",
            err=True,
        )
    elif translation.stopped == "max_length":
        typer.echo(
            f"headway: line {number} was cut off after {len(translation.tokens)} pieces; --max-length allows more",
            err=True,
        )


def _lines(file: str) -> Iterator[str]:
    from headway.text.corpus import decode_lines, read_lines

    if file == "-":
        return decode_lines(sys.stdin.buffer, "standard input")
    if not Path(file).exists() or Path(file).is_dir():
        raise UserError(
            f"{file}: {'is a folder' if Path(file).is_dir() else 'no such file'}; "
            "give a text file, or - for standard input"
        )
    return read_lines(Path(file))


@contextmanager
def _writer(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears when all is written, so that it may be the input's own."""
    if output is None:
        yield sys.stdout
        return
    partial = output.with_name(f"{output.name}.partial")
    with open(partial, "w", encoding="utf-8", newline="\n") as file:
        yield file
    partial.replace(output)
