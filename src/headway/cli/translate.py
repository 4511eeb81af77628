"""headway translate"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.files import (
    check_input,
    input_bytes,
    input_lines,
    is_device,
    tell,
    tell_of_aligner,
    write_as_they_arrive,
    write_bytes,
)
from headway.data.lines import Layout, Line
from headway.documents.kinds import KINDS, kind_of
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.cluster.worker import Work
    from headway.serving.client import ServerTranslator
    from headway.translator.lines import JobNotice

SHOWN = 20
"""Lines of a job that are named one by one on standard error, of each kind."""
FOLLOWED_BY_SERVERS = {"server", "as_", "source_language", "target_language", "beam_size", "output"}
"""Options that don't need the model here."""
OF_WHOLE_FILES = {
    *("output", "as_", "glossary", "target_language", "ensemble"),
    *("device", "precision", "engine", "core", "threads"),
    *options.SEARCH,
}
"""Options of files that aren't read as lines, with those of the search."""


class Notices:
    """Notices on standard error: all but those of lines beyond the first few of each kind, which are counted. A billion
    lines may have a billion of these."""

    def __init__(self) -> None:
        self._lines = Counter[str]()
        """Number of lines with each fault."""
        self.failed = 0
        """Lines that have no translation."""

    def __call__(self, notice: JobNotice) -> None:
        if notice.fault is None:
            tell(notice.text)
            return
        self._lines[notice.fault] += 1
        if self._lines[notice.fault] <= SHOWN:
            tell(f"headway: {notice.text}")

    def end(self) -> None:
        for fault, lines in self._lines.items():
            if lines > SHOWN:
                tell(f"headway: {lines - SHOWN:,} more lines {fault}")


@options.with_search_options
def translate(
    context: typer.Context,
    model: Annotated[
        Path | None, Argument(metavar="MODEL", help="Model directory, or run directory (then its best model).")
    ] = None,
    files: Annotated[
        list[str] | None,
        Argument(
            metavar="[FILE|-]...",
            help="Text, one sentence per line, also .gz, .xz, .zst, or a document, known by its name; - is standard "
            "input. Several only with --cluster.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        options.output(
            "Write the translations to this file once all are done, compressed if its name says so. It may be FILE "
            "itself. With --cluster: a folder."
        ),
    ] = None,
    as_: Annotated[
        str | None,
        Option(
            "--as",
            metavar="lines|KIND",
            help=f"Read FILE as lines of text whatever its name, or as a document: {', '.join(KINDS)}.",
        ),
    ] = None,
    column: Annotated[
        str | None,
        Option(
            metavar="N|NAME",
            help="Translate the N-th of the TAB-separated columns, or this field of each line, which is a JSON object.",
        ),
    ] = None,
    shard: Annotated[
        str | None, Option(metavar="I/N", help="Translate only the I-th of N parts of FILE; cat joins their outputs.")
    ] = None,
    split: Annotated[
        bool,
        Option(
            "--split", help="Split lines into sentences and translate each sentence, for lines longer than a sentence."
        ),
    ] = False,
    resume: Annotated[
        bool,
        Option(
            "--resume",
            help="Continue where the same command was killed; start from the beginning if there is nothing yet.",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        Option(
            metavar="local|ADDRESS", help="Translate with Ray: on all cores of this machine, or on a running cluster."
        ),
    ] = None,
    search: dict[str, Any],
    n_best: Annotated[
        int,
        Option(
            min=1,
            help="Translations per line, the best (score / length penalty) first: `line ||| text ||| score`. "
            "The score is nan for a line without a translation.",
        ),
    ] = 1,
    prefix: Annotated[str, Option(metavar="TEXT", help="Text that each translation begins with.")] = "",
    glossary: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Terms that translations must use: each line is a source term, a TAB, a target term."
        ),
    ] = None,
    target_language: options.TargetLanguage = None,
    server: Annotated[
        str | None,
        Option(metavar="URL", help="Translate with a server instead of MODEL: `headway serve` or LibreTranslate."),
    ] = None,
    source_language: Annotated[
        str | None, Option(metavar="CODE", help="Source language, for a server with several language pairs.")
    ] = None,
    ensemble: options.Ensemble = None,
    alignments: options.Alignments = False,
    pieces: options.LinkedPieces = False,
    confidence: Annotated[
        bool,
        Option(
            "--confidence",
            help="Add the probability that the translation is acceptable: ` ||| 0.8312` (calibrated model), with "
            "`out-of-domain` where the source is unlike the text of the calibration.",
        ),
    ] = False,
    as_json: options.JsonOutput = False,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    engine: options.Engine = "auto",
    core: options.Core = None,
    threads: options.Threads = None,
) -> None:
    """Translate text line by line, or a document.

    Raw text in, raw text out: one output line for each input line, and a blank line for a blank one. A document,
    such as .html or .srt, comes back with its layout.

    \b
    echo "Ein Hund läuft." | headway translate runs/multi30k-de-en
    headway translate runs/multi30k-de-en input.de --output output.en
    headway translate runs/multi30k-de-en page.html --output page.en.html
    headway translate runs/multi30k-de-en input.de --n-best 3 --sample temperature=0.8,top_k=20,seed=7
    headway translate runs/multi30k-de-en input.de --alignments
    headway translate runs/multi30k-de-en input.de --glossary terms.tsv
    headway translate models/calibrated input.de --confidence
    headway translate runs/multi30k-de-en input.tsv.zst --column 2 --output output.en.zst --resume
    headway translate runs/multi30k-de-en paragraphs.de --split --output paragraphs.en
    headway translate runs/multi30k-de-en input.de --shard 3/8 --output output-3.en
    headway translate runs/multi30k-de-en part-*.de.gz --output translated --cluster local
    headway translate --server http://localhost:5000 input.de --output output.en
    """
    notices = Notices()
    kind = _kind(context, as_, [str(model)] if server is not None and model is not None else files or [])
    if cluster is None:
        options.check_output(output)
    if server is not None:
        given = options.given_options(context)
        if refused := [flag for name, flag in given.items() if name not in FOLLOWED_BY_SERVERS]:
            raise UserError(f"{refused[0]} is not for --server: the server has settings of its own")
        if files:
            raise UserError(f"{files[0]}: --server takes only one FILE, and no MODEL")
        from headway.serving.client import ServerTranslator

        file, beam_size = "-" if model is None else str(model), search.get("beam_size")
        _on_server(ServerTranslator(server, source_language, target_language), beam_size, file, output, notices)
    elif source_language is not None:
        raise UserError("--source-language is for --server: a model has only one")
    elif model is None:
        raise UserError("a MODEL is missing, or --server URL")
    elif cluster is not None and shard is not None:
        raise UserError("--shard is for a scheduler of your own; --cluster makes its shards itself")
    elif cluster is None and len(files or []) > 1:
        raise UserError("several files need --cluster; or join them: cat FILES | headway translate MODEL")
    else:
        from headway.cluster.worker import Work
        from headway.translator.lines import LineOptions

        asked = {one.name: context.params[one.name] for one in fields(LineOptions) if one.name != "search"}
        asked |= {"search": {**search, "n_best": n_best}, "glossary": _read_glossary(glossary)}
        layout = options.layout_of(column, "--column") or Layout()
        work = Work(model, tuple(ensemble or ()), device, precision, engine, layout, LineOptions(**asked), core)
        if kind is not None:
            _whole_file(work, (files or ["-"])[0], kind, output, threads)
        elif cluster is None:
            _here(work, (files or ["-"])[0], output, shard, resume, threads, notices)
        else:
            _on_cluster(work, files or [], output, cluster, threads, notices)
    notices.end()
    raise typer.Exit(2 if notices.failed else 0)


def _kind(context: typer.Context, as_: str | None, files: Sequence[str]) -> str | None:
    """The kind of the files, None for lines. Raises UserError."""
    if as_ not in (None, "lines", *KINDS):
        raise UserError(f"--as {as_}: choose lines, {', '.join(KINDS)}")
    given = options.given_options(context)
    if as_ == "lines" or (as_ is None and "column" in given):
        return None
    file, kind = next(((file, kind) for file in files if (kind := as_ or kind_of(file))), ("-", as_))
    refused = [flag for name, flag in given.items() if name not in OF_WHOLE_FILES]
    if kind is not None and refused:
        raise UserError(f"{refused[0]} is for lines, and {file} is read as {kind}; see --as")
    return kind


def _read_glossary(path: Path | None) -> tuple[tuple[str, str], ...]:
    from headway.translator.glossary import Glossary

    if path is None:
        return ()
    terms = Glossary.read(path).terms
    if not terms:
        tell(f"notice: {path}: has no terms")
    return tuple((term.source, term.target) for term in terms)


def _here(
    work: Work, file: str, output: Path | None, shard: str | None, resume: bool, threads: int | None, notices: Notices
) -> None:
    from headway.devices import keep_few_matrix_kernels
    from headway.threads import use_threads
    from headway.translator.job import Job

    if resume and (output is None or is_device(output)):
        raise UserError("--resume needs --output FILE, which keeps what is done")
    lines = input_lines(file, work.layout, shard)
    keep_few_matrix_kernels()
    use_threads(threads)
    translator = work.load()
    if work.options.alignments:
        tell_of_aligner(translator.translator, work.model)

    def text_of(chunk: list[Line]) -> str:
        written = translator.translate(chunk)
        notices.failed += written.failed
        for notice in written.notices:
            notices(notice)
        return written.text

    if output is None or is_device(output):
        write_as_they_arrive(lines, file, output, text_of)
        return
    output = output.resolve()  # a link keeps its place
    identity = {
        **work.identity(),
        "device": translator.translator.device,
        "engine": translator.translator.engine,
        "precision": translator.translator.engines.precision,
        "column or field": {"column": work.layout.column, "field": work.layout.field},
        "shard": shard,
    }
    job = Job(output, identity, in_place=file != "-" and output.exists() and output.samefile(file))
    at_once, stop = translator.at_once, translator.translator.engines.stop
    notices.failed = job.run(lines, translator.translate, resume=resume, notice=notices, at_once=at_once, stop=stop)


def _whole_file(work: Work, file: str, kind: str, output: Path | None, threads: int | None) -> None:
    """Translates a document, which is written when all of it is translated."""
    from rich.console import Console
    from rich.progress import Progress

    from headway.devices import keep_few_matrix_kernels
    from headway.documents.translator import translate_file
    from headway.threads import use_threads
    from headway.translator.glossary import Glossary

    data = input_bytes(file)
    if output is None and sys.stdout.isatty() and b"\0" in data:
        raise UserError(f"{file}: give --output FILE: {kind} is no text for a terminal")
    if output is not None and not is_device(output):
        _check_end(output, file, kind)
    keep_few_matrix_kernels()
    use_threads(threads)
    lines = work.load()
    wanted = {"target_language": work.options.target_language, "glossary": Glossary.of(work.options.glossary)}
    search = {name: value for name, value in work.options.search.items() if name != "n_best"}
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("sentences", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        found = translate_file(lines.translator, kind, data, name=file, progress=show, **wanted, **search)
    if found.truncated:
        tell(f"notice: {file}: a sentence of {found.truncated} texts was cut off; --max-length allows more")
    write_bytes(found.data, output)


def _check_end(output: Path, file: str, kind: str) -> None:
    """Raises UserError if the name to write is that of another kind."""
    with suppress(UserError):  # of a kind that isn't translated
        if kind_of(output.name) in (None, kind):
            return
    end = "strings.xml" if kind == "android" else f".{kind}"
    raise UserError(f"{output}: {file} is read as {kind}, so {kind} is written; give a name that ends in {end}")


def _on_cluster(
    work: Work, files: list[str], output: Path | None, address: str, threads: int | None, notices: Notices
) -> None:
    from headway.cluster.engine import translate_on_cluster
    from headway.threads import current_threads, use_threads

    if output is None:
        raise UserError("--cluster needs --output FOLDER")
    if not files or "-" in files:
        raise UserError("--cluster needs files that every machine can read, not standard input")
    for file in files:
        check_input(Path(file), work.layout)
    work = replace(work, model=work.model.resolve(), ensemble=tuple(one.resolve() for one in work.ensemble))
    inputs = [Path(file).resolve() for file in files]
    if address == "local":
        use_threads(threads)
        threads = current_threads()
    notices.failed = translate_on_cluster(work, inputs, output.resolve(), address, threads, notices)


def _on_server(
    server: ServerTranslator, beam_size: int | None, file: str, output: Path | None, notices: Notices
) -> None:
    """Translates with a server, and leaves blank what is too long for it."""
    from headway.translator.lines import JobNotice

    def text_of(chunk: list[Line]) -> str:
        texts = server.translate([line.text for line in chunk], beam_size=beam_size)
        for line in chunk:
            if server.is_too_long(line.text):
                notices.failed += 1
                size = f"{len(line.text):,} characters, the server takes at most {server.longest:,}"
                text = f"line {line.number} has {size}; its translation is left blank, split the line"
                notices(JobNotice(text, "were left blank"))
        return "".join(text.replace("\n", " ") + "\n" for text in texts)

    write_as_they_arrive(input_lines(file, Layout()), file, output, text_of)
