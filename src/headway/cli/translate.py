"""headway translate"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.inputs import as_they_arrive, check_input, input_lines
from headway.cli.loading import load_translator
from headway.cli.options import (
    Alignments,
    BeamSize,
    Confidence,
    Device,
    Engine,
    Ensemble,
    JsonOutput,
    LengthPenalty,
    LinkedPieces,
    Mbr,
    PrecisionOption,
    Sample,
    TargetLanguage,
    Threads,
    check_output,
    given_options,
    parse_sampling,
    writer,
)
from headway.errors import UserError

SHOWN = 20
"""Lines of a job that are named one by one on standard error."""

if TYPE_CHECKING:
    from headway.text.lines import Layout
    from headway.translator.lines import LineOptions, LineTranslator


class Notices:
    """What is told on standard error: everything about the job, the first few lines that were cut off, and the first
    few that were left blank. A billion lines may have a billion of these."""

    def __init__(self) -> None:
        self._lines = {"cut off": 0, "left blank": 0}

    def __call__(self, text: str) -> None:
        if not text.startswith("notice: "):
            kind = "cut off" if " was cut off" in text else "left blank"
            self._lines[kind] += 1
            if self._lines[kind] > SHOWN:
                return
        typer.echo(f"headway: {text}", err=True)

    def end(self) -> None:
        for kind, lines in self._lines.items():
            if lines > SHOWN:
                typer.echo(f"headway: {lines - SHOWN:,} more lines were {kind}", err=True)


def translate(
    context: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best model).")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|-]...",
            help="Text, one sentence per line, also .gz, .xz, .zst; - is standard input. Several only with --cluster.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write the translations to this file once all are done, compressed if its name says so. It may be "
            "FILE itself. With --cluster: a folder."
        ),
    ] = None,
    column: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Translate the N-th of the TAB-separated columns.")
    ] = None,
    field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Translate this field of each line, which is a JSON object.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Translate only the I-th of N parts of FILE; cat joins their outputs."),
    ] = None,
    split: Annotated[
        bool,
        typer.Option(
            "--split", help="Split lines into sentences and translate each sentence, for lines longer than a sentence."
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue where the same command was killed; start from the beginning if there is nothing yet.",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS", help="Translate with Ray: on all cores of this machine, or on a running cluster."
        ),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    n_best: Annotated[
        int,
        typer.Option(
            min=1,
            help="Translations per line, best score / penalty first, as `line ||| text ||| score`. "
            "The score is nan for a line without a translation.",
        ),
    ] = 1,
    max_length: Annotated[int | None, typer.Option(min=1, help="Maximum tokens of a translation.")] = None,
    no_repeat_ngram: Annotated[
        int | None, typer.Option(min=0, help="Never repeat an n-gram of this many tokens in a translation.")
    ] = None,
    sample: Sample = None,
    mbr: Mbr = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Text that each translation begins with.")] = "",
    glossary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Terms that translations must use: each line is a source term, a TAB, a target term."
        ),
    ] = None,
    target_language: TargetLanguage = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Translate with a server instead of MODEL: `headway serve` or LibreTranslate."
        ),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Source language, for a server with several language pairs.")
    ] = None,
    ensemble: Ensemble = None,
    alignments: Alignments = False,
    pieces: LinkedPieces = False,
    confidence: Confidence = False,
    as_json: JsonOutput = False,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "torch",
    threads: Threads = None,
) -> None:
    """Translate text line by line.

    Raw text in, raw text out: one output line for each input line, and a blank line for a blank one.

    \b
    echo "Ein Hund läuft." | headway translate runs/multi30k-de-en
    headway translate runs/multi30k-de-en input.de --output output.en
    headway translate runs/multi30k-de-en input.de --n-best 3 --sample temperature=0.8,top_k=20,seed=7
    headway translate runs/multi30k-de-en input.de --mbr 32 --sample temperature=0.7
    headway translate runs/multi30k-de-en input.de --alignments
    headway translate runs/multi30k-de-en input.de --glossary terms.tsv
    headway translate models/calibrated input.de --confidence
    headway translate runs/multi30k-de-en input.tsv.zst --column 2 --output output.en.zst --resume
    headway translate runs/multi30k-de-en paragraphs.de --split --output paragraphs.en
    headway translate runs/multi30k-de-en input.de --shard 3/8 --output output-3.en
    headway translate runs/multi30k-de-en part-*.de.gz --output translated --cluster local
    headway translate --server http://localhost:5000 input.de --output output.en
    """
    if server is not None:
        check_output(output)
        _refuse_options_of_models(context)
        if files:
            raise UserError(f"{files[0]}: --server takes only one FILE, and no MODEL")
        _ask_server(server, source_language, target_language, beam_size, "-" if model is None else str(model), output)
        return
    if source_language is not None:
        raise UserError("--source-language is for --server: a model has only one")
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
        sample=None if sample is None else parse_sampling(sample),
        mbr=mbr,
        prefix=prefix,
        glossary=() if glossary is None else _read_glossary(glossary),
        target_language=target_language,
        as_json=as_json,
        split=split,
        alignments=alignments,
        pieces=pieces,
        confidence=confidence,
    )
    notices = Notices()
    how: dict[str, Any] = {"device": device, "precision": precision, "ensemble": ensemble, "engine": engine}
    if cluster is not None:
        if shard is not None:
            raise UserError("--shard is for a scheduler of your own; --cluster makes its shards itself")
        failed = _on_cluster(model, files or [], output, layout, options, how, cluster, threads, notices)
    else:
        if len(files or []) > 1:
            raise UserError("several files need --cluster; or join them: cat FILES | headway translate MODEL")
        failed = _here(model, (files or ["-"])[0], output, layout, options, how, shard, resume, threads, notices)
    notices.end()
    raise typer.Exit(2 if failed else 0)


def _read_glossary(path: Path) -> tuple[tuple[str, str], ...]:
    from headway.text.glossary import Glossary

    terms = Glossary.read(path).terms
    if not terms:
        typer.echo(f"headway: {path}: has no terms", err=True)
    return tuple((term.source, term.target) for term in terms)


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
    notices: Notices,
) -> int:
    """Translates in this process, and returns how many lines were left blank."""
    from headway.devices import keep_few_matrix_kernels
    from headway.text.lines import chunks
    from headway.threads import use_threads
    from headway.translator.job import Job
    from headway.translator.lines import LineTranslator

    check_output(output)
    is_device = output is not None and output.exists() and not output.is_file()
    if output is not None and not is_device:
        output = output.resolve()  # a link keeps its place
    if resume and (output is None or is_device):
        raise UserError("--resume needs --output FILE, which keeps what is done")
    lines = input_lines(file, layout, shard)
    keep_few_matrix_kernels()
    use_threads(threads)
    translator = LineTranslator(load_translator(model, **how, alignments=options.alignments), options)
    if output is not None and not is_device:
        in_place = file != "-" and output.exists() and output.samefile(file)
        job = Job(output, _identity(model, translator, how, layout, shard), in_place=in_place)
        return job.run(lines, translator.translate, resume=resume, notice=notices)
    failed = 0
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(as_they_arrive(lines, file), lambda line: len(line.text)):
            written = translator.translate(chunk)
            failed += written.failed
            for notice in written.notices:
                notices(notice)
            out.write(written.text)
            out.flush()
    return failed


def _identity(
    model: Path, translator: LineTranslator, how: dict[str, Any], layout: Layout, shard: str | None
) -> dict[str, Any]:
    """What must stay the same for a job to continue."""
    from headway.storage.model_directory import model_fingerprint

    return {
        "model": [model_fingerprint(one) for one in (model, *(how["ensemble"] or []))],
        "options": translator.options.to_dict(),
        "engine": how["engine"],
        "precision": how["precision"],
        "device": translator.translator.device.type,
        "column or field": {"column": layout.column, "field": layout.field},
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
    notices: Notices,
) -> int:
    """Translates with Ray, and returns how many lines were left blank."""
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
        check_input(file, layout)
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
    return translate_on_cluster(work, inputs, output.resolve(), address, threads, notices)


def _refuse_options_of_models(context: typer.Context) -> None:
    """Raises UserError for an option that a server can't follow."""
    followed = {"server", "source_language", "target_language", "beam_size", "output"}
    for name, flag in given_options(context).items():
        if name not in followed:
            raise UserError(f"{flag} is not for --server: the server has settings of its own")


def _ask_server(
    url: str, source: str | None, target: str | None, beam_size: int | None, file: str, output: Path | None
) -> None:
    """Translates line by line, as with a model. If a line is too long for the server, its translation is left blank,
    and the exit code is 2."""
    from headway.serving.client import ServerTranslator
    from headway.text.lines import Layout, chunks

    lines = (line.text for line in input_lines(file, Layout(), None))
    translator = ServerTranslator(url, source, target)
    number, failed, notices = 0, False, Notices()
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(as_they_arrive(lines, file), len):
            for line, text in zip(chunk, translator.translate(chunk, beam_size=beam_size), strict=True):
                number += 1
                if translator.is_too_long(line):
                    failed = True
                    notices(
                        f"line {number} has {len(line):,} characters, the server takes at most "
                        f"{translator.longest:,}; its translation is left blank, split the line"
                    )
                out.write(text.replace("\n", " ") + "\n")
            out.flush()
    notices.end()
    raise typer.Exit(2 if failed else 0)
