"""headway inspect"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.loading import language_prefix, load_translator
from headway.cli.options import Device, Model, TargetLanguage, check_output
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.insight import AttentionMaps
    from headway.insight.pictures import HeatMap

KINDS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "encoder-decoder attention"}


def inspect(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="SENTENCE", help="Text to translate and look into.")],
    target: Annotated[str | None, typer.Option(help="Look into this translation; default: the model's own.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Page (.html), picture (.svg, .png) or data (.json); default: text in the terminal."),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="Which attention: cross, encoder, decoder; several with commas, or all.")
    ] = "cross",
    layers: Annotated[str, typer.Option(help="Numbers from 1 with commas, last, or all.")] = "last",
    heads: Annotated[str, typer.Option(help="Numbers from 1 with commas, all, or mean (of all).")] = "mean",
    words: Annotated[bool, typer.Option("--words", help="Join the pieces of a word.")] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Of a run: every model that it has kept, how they came to be.")
    ] = False,
    target_language: TargetLanguage = None,
    device: Device = "auto",
) -> None:
    """Look inside a translation: its attention maps, each row a piece that asks, each column a piece that answers. A
    page or data have all that the model computes.

    \b
    headway inspect runs/multi30k-de-en "Ein Hund läuft."
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --output page.html
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --kind all --layers all --heads all --output maps.svg
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --layers 3 --heads 1,2 --checkpoints --output growing.svg
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --target "A cat sleeps." --output record.json
    """
    from headway.insight import draw_map, usual_cases
    from headway.insight.pictures import check_picture_path, draw_heat_maps, save_picture

    check_output(output)
    if output is not None:
        check_picture_path(output, others=(".html", ".json"))
    suffix = "" if output is None else output.suffix.lower()
    whole = suffix in (".html", ".json")
    if whole and (kind, layers, heads, words) != ("cross", "last", "mean", False):
        raise UserError(f"a {suffix} file holds every map; leave --kind, --layers, --heads and --words out")
    kinds = _kinds(kind)
    history = _kept_models(model) if checkpoints else []
    translator = load_translator(model, device)
    text = language_prefix(translator, target_language) + text
    cases = usual_cases(translator.model.config, text) if suffix == ".html" else []
    if cases:
        typer.echo(f"trying {len(cases)} edits of the model and of the text for the page", err=True)
    record = translator.inspect(text, target, cases=cases, history=history)
    if output is not None and whole:
        content = record.to_page() if suffix == ".html" else record.to_json() + "\n"
        output.write_text(content, encoding="utf-8", newline="\n")
        return
    moments = [("", record.maps)]
    if history:
        moments = [(f", {moment.name}", record.past(number)) for number, moment in enumerate(record.history)]
    moments = [(name, maps.words() if words else maps) for name, maps in moments]
    charts = _chosen_maps(moments, kinds, layers, heads)
    if output is not None:
        save_picture(draw_heat_maps(charts), output)
        return
    for one in (one for row in charts for one in row):
        typer.echo(f"{one.title}\n\n{draw_map(one.values, one.rows, one.columns)}\n")


def _kept_models(run: Path) -> list[Path]:
    from headway.training.checkpoint import step_folders

    models = step_folders(run / "models")
    if not models:
        raise UserError(f"{run}: --checkpoints needs a run directory with models")
    return models


def _kinds(text: str) -> list[str]:
    kinds = list(KINDS) if text == "all" else text.split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"--kind {text}: {kind!r} is none of {', '.join(KINDS)}, all")
    return kinds


def _chosen_maps(
    moments: Sequence[tuple[str, AttentionMaps]], kinds: Sequence[str], layers: str, heads: str
) -> list[list[HeatMap]]:
    """A row of maps for each layer; of several moments, whose names end the titles, a row for each map."""
    rows = []
    for kind in kinds:
        by_moment = [_layers_of(maps, kind, layers, heads, name) for name, maps in moments]
        for charts in zip(*by_moment, strict=True):  # of one layer: for each moment its maps
            rows.extend(map(list, charts if len(moments) == 1 else zip(*charts, strict=True)))
    return rows


def _layers_of(maps: AttentionMaps, kind: str, layers: str, heads: str, moment: str) -> list[list[HeatMap]]:
    """The chosen maps of each chosen layer."""
    from headway.insight.pictures import HeatMap

    if kind not in maps.attention:
        raise UserError(f"--kind {kind}: the model has no such layers")
    weights = maps.attention[kind]  # type: ignore[index]  # (layers, heads, query, key)
    queries, keys = maps.labels(kind)  # type: ignore[arg-type]
    rows = []
    for layer in _numbers("--layers", str(len(weights)) if layers == "last" else layers, len(weights)):
        title = f"{KINDS[kind]}, layer {layer}"
        if heads == "mean":
            mean = weights[layer - 1].mean(axis=0)
            rows.append([HeatMap(f"{title}, mean of its heads{moment}", mean, queries, keys)])
        else:
            rows.append(
                [
                    HeatMap(f"{title}, head {head}{moment}", weights[layer - 1, head - 1], queries, keys)
                    for head in _numbers("--heads", heads, weights.shape[1])
                ]
            )
    return rows


def _numbers(option: str, text: str, count: int) -> list[int]:
    """`1,3` or `all` to numbers from 1 to `count`. Raises UserError."""
    if text == "all":
        return list(range(1, count + 1))
    numbers = [int(number) if number.strip().isdecimal() else 0 for number in text.split(",")]
    if not all(1 <= number <= count for number in numbers):
        raise UserError(f"{option} {text}: must be numbers from 1 to {count}, with commas, or all")
    return numbers
