"""headway translate"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.loading import LINES_AT_ONCE, chunks, language_prefix, load_translator
from headway.cli.options import (
    BeamSize,
    Device,
    Engine,
    Ensemble,
    JsonOutput,
    LengthPenalty,
    PrecisionOption,
    TargetLanguage,
    Threads,
    check_output,
    writer,
)
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.decoding import Sampling
    from headway.translator import Translation


def translate(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best).")
    ] = None,
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Text, one sentence a line; - is standard input.")
    ] = "-",
    output: Annotated[
        Path | None,
        typer.Option(help="Write the translations to this file once all are done. It may be FILE itself."),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int,
        typer.Option(min=1, help="Translations a line, best first by score / penalty, as `line ||| text ||| score`."),
    ] = 1,
    max_length: Annotated[int | None, typer.Option(min=1, help="Most pieces of a translation.")] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(min=0, help="Never repeat a run of this many tokens in a translation.")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="KEY=VALUE,...", help="Draw by chance, no beam: any of temperature, top_k, top_p, seed."),
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="What each translation begins with.")] = "",
    target_language: TargetLanguage = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="In place of MODEL: a server, of `headway serve` or LibreTranslate."),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Of a server with several directions.")
    ] = None,
    ensemble: Ensemble = None,
    as_json: JsonOutput = False,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "torch",
    threads: Threads = None,
) -> None:
    """Translate text line by line.

    Raw text in, raw text out: one line for each, and a blank line for a blank one.

    \b
    echo "Ein Hund läuft." | headway translate runs/multi30k-de-en
    headway translate runs/multi30k-de-en input.de --output output.en
    headway translate runs/multi30k-de-en input.de --n-best 3 --sample temperature=0.8,top_k=20,seed=7
    headway translate --server http://localhost:5000 input.de --output output.en
    """
    check_output(output)
    if server is not None:
        options_of_models = {
            "length_penalty": (length_penalty, None),
            "n_best": (n_best, 1),
            "max_length": (max_length, None),
            "no_repeat_ngram": (no_repeat_ngram, None),
            "sample": (sample, None),
            "prefix": (prefix, ""),
            "ensemble": (ensemble or None, None),
            "json": (as_json, False),
            "device": (device, "auto"),
            "precision": (precision, "auto"),
            "engine": (engine, "torch"),
            "threads": (threads, None),
        }
        _check_for_server(options_of_models)
        if file != "-":
            raise UserError(f"{file}: with --server one FILE alone is given, and no MODEL")
        _ask_server(server, source_language, target_language, beam_size, "-" if model is None else str(model), output)
        return
    from headway.threads import use_threads

    if source_language is not None:
        raise UserError("--source-language is of --server: a model has one")
    if model is None:
        raise UserError("a MODEL is missing, or --server URL")
    sampling = None if sample is None else _parse_sampling(sample)
    lines = _lines(file)
    use_threads(threads)
    translator = load_translator(model, device, precision, ensemble, engine)
    options: dict[str, Any] = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "max_length": max_length,
        "n_best": n_best,
        "no_repeat_ngram": no_repeat_ngram,
        "sample": sampling,
    }
    translator.search_options(**options)  # complains before the first line is read
    tag = language_prefix(translator, target_language)
    number, failed = 0, False
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(lines, len, 1 if sys.stdin.isatty() and file == "-" else LINES_AT_ONCE):
            translations = translator.translate([tag + line for line in chunk], prefix=prefix, **options)
            for line, translation in zip(chunk, translations, strict=True):
                number += 1
                failed |= translation.stopped == "too_long"
                _notice(line, translation, number, translator.longest_source)
                out.write(_shown(translation, number, as_json, n_best))
            out.flush()
    raise typer.Exit(2 if failed else 0)


def _check_for_server(options: dict[str, tuple[Any, Any]]) -> None:
    """Raises UserError for options, (value, default) each, that only a model of one's own knows."""
    for name, (value, default) in options.items():
        if value != default:
            raise UserError(f"--{name.replace('_', '-')} is not for --server: the server has settings of its own")


def _ask_server(
    url: str, source: str | None, target: str | None, beam_size: int | None, file: str, output: Path | None
) -> None:
    """Line by line, as with a model. A line that is too long for the server is left blank, and the exit code is 2."""
    from headway.serving.client import ServerTranslator

    lines = _lines(file)
    translator = ServerTranslator(url, source, target)
    number, failed = 0, False
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(lines, len, 1 if sys.stdin.isatty() and file == "-" else LINES_AT_ONCE):
            for line, text in zip(chunk, translator.translate(chunk, beam_size=beam_size), strict=True):
                number += 1
                if translator.is_too_long(line):
                    failed = True
                    typer.echo(
                        f"headway: line {number} has {len(line):,} characters, the server takes at most "
                        f"{translator.longest:,}; its translation is left blank, split the line",
                        err=True,
                    )
                out.write(text.replace("\n", " ") + "\n")
            out.flush()
    raise typer.Exit(2 if failed else 0)


def _parse_sampling(text: str) -> Sampling:
    """`temperature=0.8,top_k=20` to its record. Raises UserError."""
    from headway.decoding import Sampling

    kinds = {field.name: type(field.default) for field in fields(Sampling)}
    given: dict[str, Any] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        try:
            given[name] = kinds[name](value)
        except (KeyError, ValueError):
            raise UserError(
                f"--sample {text}: {item!r} is not one of {', '.join(f'{name}=NUMBER' for name in kinds)}"
            ) from None
    return Sampling(**given)


def _shown(translation: Translation, number: int, as_json: bool, n_best: int) -> str:
    if as_json:
        document = translation.to_dict()
        for alternative in document["alternatives"]:
            del alternative["source_tokens"], alternative["alternatives"]  # those of the best
        return json.dumps(document, ensure_ascii=False) + "\n"
    if n_best > 1:
        every = (translation, *translation.alternatives)
        return "".join(f"{number} ||| {one.text} ||| {one.score:.4f}\n" for one in every)
    return translation.text + "\n"


def _notice(line: str, translation: Translation, number: int, longest: int) -> None:
    """Says on standard error where a translation is not whole."""
    if translation.stopped == "too_long":
        pieces = len(translation.source_tokens)
        size = f"{pieces} pieces" if pieces else f"{len(line):,} characters"
        typer.echo(
            f"headway: line {number} has {size}, the model reads at most {longest} pieces; "
            "its translation is left blank, split the line",
            err=True,
        )
    elif translation.stopped == "max_length":
        remedy = "--max-length allows more" if len(translation.tokens) < longest else "the model knows no more places"
        typer.echo(f"headway: line {number} was cut off after {len(translation.tokens)} pieces; {remedy}", err=True)


def _lines(file: str) -> Iterator[str]:
    from headway.text.corpus import decode_lines, is_two_sided, read_lines

    if file == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file")
        return decode_lines(sys.stdin.buffer, "standard input")
    if not Path(file).exists() or Path(file).is_dir():
        raise UserError(
            f"{file}: {'is a folder' if Path(file).is_dir() else 'no such file'}; "
            "give a text file, or - for standard input"
        )
    if is_two_sided(Path(file)):
        raise UserError(f"{file}: holds two sides; give the source texts alone, one a line")
    return read_lines(Path(file))
