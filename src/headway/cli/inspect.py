"""headway inspect and headway show"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer import Argument, Option

from headway.cli import files, options
from headway.cli.analysing import check_names, requested, write_table
from headway.errors import UserError
from headway.insight.pictures import HeatMap, check_picture_path, draw_heat_maps, heat_maps, save_picture

if TYPE_CHECKING:
    from headway.insight.maps import AttentionKind, AttentionMaps
    from headway.insight.record import TranslationRecord

WHOLE = (".html", ".json")
"""Files that hold the whole record."""


def inspect(
    model: options.Model,
    text: Annotated[str | None, Argument(metavar="[SENTENCE]", help="Text to translate and inspect.")] = None,
    source: Annotated[
        str | None, Option(metavar="FILE", help="Analyse every line of this file, or of - (standard input), instead.")
    ] = None,
    target: Annotated[
        str | None, Option(help="Inspect this translation; with --source, a file of them. Default: the model's own.")
    ] = None,
    output: Annotated[
        Path | None,
        options.output(
            "Page (.html), picture (.svg, .png), data (.json); with --source, table (.jsonl). Default: in the terminal."
        ),
    ] = None,
    kind: Annotated[str, Option(help="Attention: cross, encoder, decoder, several with commas, or all.")] = "cross",
    layers: Annotated[str, Option(help="Layer numbers from 1, with commas; or last, or all.")] = "last",
    heads: Annotated[str, Option(help="Head numbers from 1, with commas; or all, or mean (of all heads).")] = "mean",
    words: Annotated[bool, Option("--words", help="Join the tokens of each word.")] = False,
    last: Annotated[int | None, Option(min=1, help="Compare this many of the last models of a run.")] = None,
    analysis: Annotated[
        list[str] | None,
        Option(
            metavar="NAME[=TEXT]",
            help="Analyse the translation, for example by contributions or erasure; docs/analyses.md lists all. "
            "Repeat the option for more.",
        ),
    ] = None,
    target_language: options.TargetLanguage = None,
    device: options.Device = "auto",
    core: options.Core = None,
    threads: options.Threads = None,
) -> None:
    """Inspect a translation, mainly its attention.

    In an attention map each row is a query, each column a key. A row of the decoder is named by the token that it
    predicts, a column by the token at its position. A page (.html) or data (.json) holds everything that the model
    computes. Analyses go into a page, into a .json file, or to the terminal instead of the map. If you name none, a
    page has those that need only the sentence, for up to 40 tokens. A table (.jsonl) has one line of JSON for each line
    of --source.

    \b
    headway inspect runs/multi30k-de-en "Ein Hund läuft."
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --output page.html
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --kind all --layers all --heads all --output maps.svg
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --layers 3 --heads 1,2 --last 5 --output growing.svg
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --target "A cat sleeps." --output record.json
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --analysis contributions --analysis "contrast=A dog walks."
    headway inspect runs/multi30k-de-en --source test.de --target test.en --analysis erasure --output table.jsonl
    """
    from headway.insight.analyses import names_by_sentence
    from headway.insight.analyses.analysis import LONGEST_ANALYSED, TokenNames
    from headway.insight.maps import KINDS
    from headway.storage import find_model
    from headway.translator.lines import language_prefix

    options.check_output(output)
    chooses_maps = (kind, layers, heads, words) != ("cross", "last", "mean", False)
    check_names(analysis or [])
    if text is None:
        if source is None:
            raise UserError("give a SENTENCE, or --source FILE")
        if chooses_maps or last is not None:
            raise UserError("--source makes a table: --kind, --layers, --heads, --words and --last are for maps")
        load = partial(files.load_translator, model, device, threads=threads, core=core)
        write_table(model, load, analysis or [], source, target, output, target_language)
        return
    if source is not None:
        raise UserError("give a SENTENCE or --source FILE, not both")
    suffix = _checked_suffix(output, chooses_maps=chooses_maps, last=last, analyses=bool(analysis))
    kinds = list(KINDS) if kind == "all" else cast("list[AttentionKind]", [one.strip() for one in kind.split(",")])
    if unknown := [one for one in kinds if one not in KINDS]:
        raise UserError(f"--kind {kind}: {unknown[0]!r} is none of {', '.join(KINDS)}, all")
    history = files.last_models(model, last) if last is not None else []
    history = [one for one in history if one.name != find_model(model).name]
    translator = files.load_translator(model, device, threads=threads, core=core)
    translator.domain = [source for source, _ in files.validation_pairs(model)]
    text = language_prefix(translator, target_language) + text
    is_page = suffix == ".html"
    if is_page:
        files.tell("trying edits of the model and of the text for the page")
        if not analysis and translator.is_readable(text, LONGEST_ANALYSED):
            analysis = names_by_sentence()
    analyses = requested(analysis or [], model, translator)
    cases = "usual" if is_page else ()
    record = translator.inspect(text, target, cases=cases, history=history, analyses=analyses)
    if output is not None and suffix in WHOLE:
        content = record.to_page() if is_page else record.to_json() + "\n"
        output.write_text(content, encoding="utf-8", newline="\n")
        if is_page:
            files.tell(f"{output}: written")
        return
    if analyses:
        target_names, source_names = record.maps.labels("cross")
        names = TokenNames(source_names, target_names, record.vocabulary)
        typer.echo("\n\n".join(text for one in record.analyses.found().values() for text in one.text(names)))
        return
    moments = {"": record.maps} if last is None else _moments(record, translator.info.name)
    if words:
        moments = {name: maps.words() for name, maps in moments.items()}
    charts = _chosen_maps(moments, kinds, layers, heads)
    _show_maps(charts, output)


def _show_maps(charts: list[list[HeatMap]], output: Path | None) -> None:
    """Writes a picture, or prints the maps."""
    from headway.insight.terminal import draw_map

    if output is not None:
        save_picture(draw_heat_maps(charts), output)
        return
    for one in (one for row in charts for one in row):
        typer.echo(f"{one.title}\n\n{draw_map(one.values, one.rows, one.columns)}\n")


def _checked_suffix(output: Path | None, *, chooses_maps: bool, last: int | None, analyses: bool) -> str:
    """The suffix of the file to write, or "". Raises UserError if such a file can't hold what is asked for."""
    if output is None and analyses and (chooses_maps or last is not None):
        raise UserError("--analysis takes the place of maps: leave --kind, --layers, --heads, --words and --last out")
    suffix = "" if output is None else output.suffix.lower()
    if output is not None:
        check_picture_path(output, others=WHOLE)
    if suffix in WHOLE and chooses_maps:
        raise UserError(f"a {suffix} file holds every map; leave --kind, --layers, --heads and --words out")
    if analyses and suffix in (".svg", ".png"):
        raise UserError(f"a {suffix} file shows attention; write what --analysis finds to a .json or .html file")
    return suffix


def _moments(record: TranslationRecord, name: str) -> dict[str, AttentionMaps]:
    """The maps of the models of a run by the ends of their titles, first to last. name: of the run's best model."""
    found = {moment.name: record.past(number) for number, moment in enumerate(record.history)} | {name: record.maps}
    return {f", {step}": found[step] for step in sorted(found)}


def _chosen_maps(
    moments: Mapping[str, AttentionMaps], kinds: Sequence[AttentionKind], layers: str, heads: str
) -> list[list[HeatMap]]:
    """A row of maps for each layer, or for each map if there are several moments, whose names end the titles."""
    rows = []
    for kind in kinds:
        weights = next(iter(moments.values())).attention.get(kind)
        if weights is None:
            raise UserError(f"--kind {kind}: the model has no such layers")
        count, width = weights.shape[:2]
        numbers = _numbers("--layers", str(count) if layers == "last" else layers, count, "last")
        wanted = None if heads == "mean" else _numbers("--heads", heads, width, "mean")
        grids = [
            [
                [replace(chart, title=f"{chart.title}{name}") for chart in row]
                for row in heat_maps(maps, kind, numbers, wanted)
            ]
            for name, maps in moments.items()
        ]
        if len(grids) == 1:
            rows += grids[0]
        else:
            rows += [list(charts) for of_layer in zip(*grids, strict=True) for charts in zip(*of_layer, strict=True)]
    return rows


def _numbers(option: str, text: str, count: int, other: str) -> list[int]:
    """`1,3` or `all` to numbers from 1 to `count`. other: what may be given instead. Raises UserError."""
    if text == "all":
        return list(range(1, count + 1))
    numbers = [int(number) if number.strip().isdecimal() else 0 for number in text.split(",")]
    if not all(1 <= number <= count for number in numbers):
        raise UserError(f"{option} {text}: must be {other}, all, or numbers from 1 to {count} separated by commas")
    return numbers


def show(model: options.Model, as_json: options.JsonOutput = False) -> None:
    """Show a model's languages, size, scores and training.

    The JSON also has the shape of every weight.

    \b
    headway show runs/multi30k-de-en
    """
    from headway.model.shapes import weight_shapes
    from headway.storage import read_model

    stored = read_model(model)
    if as_json:
        document = {
            "folder": str(stored.folder),
            "source_language": stored.source_language,
            "target_language": stored.target_language,
            "parameters": stored.num_parameters,
            "model": stored.config.to_dict(),
            "training_flops": stored.training_flops,
            "decoding": stored.decoding,
            "alignment": stored.aligner and vars(stored.aligner),
            "int8": stored.int8 and vars(stored.int8),
            "weights": weight_shapes(stored.config),
        }
        files.print_json(document)
        return
    languages = f"{stored.source_language} -> {stored.target_language}"
    typer.echo(f"{stored.folder}\n{languages}, {stored.num_parameters:,} parameters\n")
    of_encoder = {"decoder_num_heads": stored.config.num_heads, "decoder_d_ff": stored.config.d_ff}
    sizes = stored.config.to_dict().items()
    files.print_table(
        [(name, f"{of_encoder[name]} (as the encoder)" if size is None else str(size)) for name, size in sizes]
    )
    card = "".join(char for char in stored.card if char.isprintable() or char in "\n\t").rstrip()
    if card:
        typer.echo(f"\n{files.with_plain_tables(card)}")
