"""headway translate"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from headway.errors import UserError

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
    longest, number, failed = translator.longest_source, 0, False
    with _writer(output) as out:
        while chunk := list(islice(lines, 1 if sys.stdin.isatty() and file == "-" else LINES_AT_ONCE)):
            for translation in translator.translate(
                chunk, beam_size=beam_size, length_penalty=length_penalty, max_length=max_length, n_best=n_best
            ):
                number += 1
                if translation.stopped == "too_long":
                    failed = True
                    pieces = len(translation.source_tokens)
                    typer.echo(
                        f"headway: line {number} has {pieces} pieces, the model reads at most {longest}; "
                        "its translation is left blank, split the line",
                        err=True,
                    )
                if as_json:
                    out.write(json.dumps(asdict(translation), ensure_ascii=False) + "\n")
                elif n_best > 1:
                    for one in (translation, *translation.alternatives):
                        out.write(f"{number} ||| {one.text} ||| {one.score:.4f}\n")
                else:
                    out.write(translation.text + "\n")
            out.flush()
    raise typer.Exit(2 if failed else 0)


def _lines(file: str) -> Iterator[str]:
    from headway.text.corpus import decode_lines, read_lines

    if file == "-":
        return decode_lines(sys.stdin.buffer, "standard input")
    if not Path(file).is_file():
        raise UserError(
            f"{file}: {'is a folder' if Path(file).is_dir() else 'no such file'}; "
            "give a text file, or - for standard input"
        )
    return read_lines(Path(file))


def _writer(output: Path | None):
    from contextlib import nullcontext
    from io import TextIOWrapper

    if output is not None:
        if not output.parent.is_dir():
            raise UserError(f"{output.parent}: no such folder")
        return open(output, "w", encoding="utf-8", newline="\n")
    assert isinstance(sys.stdout, TextIOWrapper)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    return nullcontext(sys.stdout)
