"""headway translate"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.loading import load_translator
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
    from headway.text.lines import Layout, Line
    from headway.translator.lines import LineOptions, LineTranslator


def translate(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best).")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|-]...",
            help="Text, one sentence a line, .gz, .xz and .zst too; - is standard input. Several with --cluster alone.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the translations to this file once all are done; compressed as its name says. It may be FILE "
            "itself. With --cluster a folder."
        ),
    ] = None,
    column: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Translate the N-th of columns that TABs separate.")
    ] = None,
    field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Each line is a JSON object; translate this text of it.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Translate the I-th of N parts of FILE alone; their outputs are joined by cat."
        ),
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="Lines may be longer than a sentence: translate each sentence of them.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on where the same command was killed; begin where there is nothing yet."),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS", help="Translate with Ray: on all cores of this machine, or on a cluster that runs."
        ),
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
    headway translate runs/multi30k-de-en input.tsv.zst --column 2 --output output.en.zst --resume
    headway translate runs/multi30k-de-en paragraphs.de --split --output paragraphs.en
    headway translate runs/multi30k-de-en input.de --shard 3/8 --output output-3.en
    headway translate runs/multi30k-de-en part-*.de.gz --output translated --cluster local
    headway translate --server http://localhost:5000 input.de --output output.en
    """
    if server is not None:
        check_output(output)
        options_of_models = {
            "length_penalty": (length_penalty, None),
            "n_best": (n_best, 1),
            "max_length": (max_length, None),
            "no_repeat_ngram": (no_repeat_ngram, None),
            "sample": (sample, None),
            "prefix": (prefix, ""),
            "column": (column, None),
            "field": (field, None),
            "shard": (shard, None),
            "split": (split, False),
            "resume": (resume, False),
            "cluster": (cluster, None),
            "ensemble": (ensemble or None, None),
            "json": (as_json, False),
            "device": (device, "auto"),
            "precision": (precision, "auto"),
            "engine": (engine, "torch"),
            "threads": (threads, None),
        }
        _check_for_server(options_of_models)
        if files:
            raise UserError(f"{files[0]}: with --server one FILE alone is given, and no MODEL")
        _ask_server(server, source_language, target_language, beam_size, "-" if model is None else str(model), output)
        return
    if source_language is not None:
        raise UserError("--source-language is of --server: a model has one")
    if model is None:
        raise UserError("a MODEL is missing, or --server URL")
    from headway.text.lines import Layout
    from headway.translator.lines import LineOptions

    if column is not None and field is not None:
        raise UserError("--column and --field: a line is either columns or a JSON object; give one of them")
    layout = Layout(column, field)
    options = LineOptions(
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length=max_length,
        n_best=n_best,
        no_repeat_ngram=no_repeat_ngram,
        sample=None if sample is None else _parse_sampling(sample),
        prefix=prefix,
        target_language=target_language,
        as_json=as_json,
        split=split,
    )
    how: dict[str, Any] = {"device": device, "precision": precision, "ensemble": ensemble, "engine": engine}
    if cluster is not None:
        if shard is not None:
            raise UserError("--shard is for a scheduler of your own; --cluster makes its shards itself")
        failed = _on_cluster(model, files or [], output, layout, options, how, cluster, threads)
    else:
        if len(files or []) > 1:
            raise UserError("several files need --cluster; or join them: cat FILES | headway translate MODEL")
        failed = _here(model, (files or ["-"])[0], output, layout, options, how, shard, resume, threads)
    raise typer.Exit(2 if failed else 0)


def _here(
    model: Path,
    file: str,
    output: Path | None,
    layout: Layout,
    options: LineOptions,
    how: dict[str, Any],
    shard: str | None,
    resume: bool,
    threads: int | None,
) -> int:
    """Translates in this process; the number of lines that were left blank."""
    from headway.devices import keep_few_matrix_kernels
    from headway.text.lines import LINES_AT_ONCE, chunks
    from headway.threads import use_threads
    from headway.translator.job import Job
    from headway.translator.lines import LineTranslator

    check_output(output)
    output = None if output is None else output.resolve()  # a link keeps its place
    is_device = output is not None and output.exists() and not output.is_file()
    if resume and (output is None or is_device):
        raise UserError("--resume needs --output FILE, where what is done can be kept")
    lines = _lines(file, layout, shard)
    keep_few_matrix_kernels()
    use_threads(threads)
    translator = LineTranslator(load_translator(model, **how), options)
    at_most = 1 if sys.stdin is not None and sys.stdin.isatty() and file == "-" else LINES_AT_ONCE
    if output is not None and not is_device:
        identity = _identity(model, file, translator, how, layout, shard)
        return Job(output, identity).run(lines, translator.translate, resume=resume, notice=_notice, at_most=at_most)
    failed = 0
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(lines, lambda line: len(line.text), at_most):
            written = translator.translate(chunk)
            failed += written.failed
            for notice in written.notices:
                _notice(notice)
            out.write(written.text)
            out.flush()
    return failed


def _identity(
    model: Path, file: str, translator: LineTranslator, how: dict[str, Any], layout: Layout, shard: str | None
) -> dict[str, Any]:
    """What must be the same for a job to go on."""
    from dataclasses import asdict

    from headway.storage.model_directory import model_fingerprint

    size = Path(file).stat().st_size if file != "-" and Path(file).is_file() else None
    return {
        "model": [model_fingerprint(one) for one in (model, *(how["ensemble"] or []))],
        "options": translator.options.to_dict(),
        "engine": how["engine"],
        "precision": how["precision"],
        "device": translator.translator.device.type,
        "input": {"size": size},
        "column or field": asdict(layout),
        "shard": shard,
    }


def _on_cluster(
    model: Path,
    files: list[str],
    output: Path | None,
    layout: Layout,
    options: LineOptions,
    how: dict[str, Any],
    address: str,
    threads: int | None,
) -> int:
    """Translates with Ray; the number of lines that were left blank."""
    import torch

    from headway.cli.loading import check_engine
    from headway.cluster.engine import translate_on_cluster
    from headway.cluster.worker import Work
    from headway.threads import use_threads

    if output is None:
        raise UserError("--cluster needs --output FOLDER")
    if not files or "-" in files:
        raise UserError("--cluster needs files that every machine can read, not standard input")
    for file in files:
        _check_file(file, layout)
    check_engine(how["precision"], how["engine"])
    work = Work(
        model=model.resolve(),
        ensemble=tuple(one.resolve() for one in how["ensemble"] or []),
        device=how["device"],
        precision=how["precision"],
        engine=how["engine"],
        layout=layout,
        options=options,
    )
    inputs = [Path(file).resolve() for file in files]
    if address == "local":
        use_threads(threads)
        threads = torch.get_num_threads()
    return translate_on_cluster(work, inputs, output.resolve(), address, threads, _notice)


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
    from headway.text.lines import LINES_AT_ONCE, Layout, chunks

    lines = (line.text for line in _lines(file, Layout(), None))
    translator = ServerTranslator(url, source, target)
    number, failed = 0, False
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(lines, len, 1 if sys.stdin.isatty() and file == "-" else LINES_AT_ONCE):
            for line, text in zip(chunk, translator.translate(chunk, beam_size=beam_size), strict=True):
                number += 1
                if translator.is_too_long(line):
                    failed = True
                    _notice(
                        f"line {number} has {len(line):,} characters, the server takes at most "
                        f"{translator.longest:,}; its translation is left blank, split the line"
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


def _parse_shard(text: str) -> tuple[int, int]:
    """`3/8` to its numbers. Raises UserError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UserError(f"--shard {text}: must be I/N, whole numbers with I from 1 to N, such as 1/8")
    return int(number), int(count)


def _lines(file: str, layout: Layout, shard: str | None) -> Iterator[Line]:
    """The texts of the file, or of a shard of it. Raises UserError at once for a file that can't be read."""
    from headway.text.corpus import decode_lines, read_lines
    from headway.text.lines import span_of_shard

    part = None if shard is None else _parse_shard(shard)
    if file == "-":
        if part is not None:
            raise UserError("--shard needs a FILE: the parts of standard input are not known before its end")
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file")
        return layout.lines(decode_lines(sys.stdin.buffer, "standard input"))
    _check_file(file, layout)
    if part is None:
        return layout.lines(read_lines(Path(file)))
    span = span_of_shard(Path(file), *part)
    return layout.lines(span.read(Path(file)), span.first)


def _check_file(file: str, layout: Layout) -> None:
    """Raises UserError for what is no file of one text a line."""
    from headway.text.corpus import is_two_sided
    from headway.text.lines import Layout

    if not Path(file).exists() or Path(file).is_dir():
        raise UserError(
            f"{file}: {'is a folder' if Path(file).is_dir() else 'no such file'}; "
            "give a text file, or - for standard input"
        )
    if is_two_sided(Path(file)) and layout == Layout():
        raise UserError(f"{file}: holds two sides; say where the source texts are: --column N, or --field NAME")


def _notice(text: str) -> None:
    typer.echo(f"headway: {text}", err=True)
