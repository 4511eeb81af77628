"""headway inspect"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.loading import language_prefix, load_translator
from headway.cli.options import Device, Model, TargetLanguage, check_output
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.insight import TranslationRecord
    from headway.insight.pictures import HeatMap

KINDS = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "encoder-decoder attention"}


def inspect(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="SENTENCE", help="Text to translate and look into.")],
    target: Annotated[str | None, typer.Option(help="Look into this translation; default: the model's own.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Picture (.svg, .png) or data (.json); default: text in the terminal.")
    ] = None,
    kind: Annotated[
        str, typer.Option(help="Which attention: cross, encoder, decoder; several with commas, or all.")
    ] = "cross",
    layers: Annotated[str, typer.Option(help="Numbers from 1 with commas, last, or all.")] = "last",
    heads: Annotated[str, typer.Option(help="Numbers from 1 with commas, all, or mean (of all).")] = "mean",
    words: Annotated[bool, typer.Option("--words", help="Join the pieces of a word.")] = False,
    target_language: TargetLanguage = None,
    device: Device = "auto",
) -> None:
    """Look inside a translation: its attention maps, each row a piece that asks, each column a piece that answers.

    \b
    headway inspect runs/multi30k-de-en "Ein Hund läuft."
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --kind all --layers all --heads all --output maps.svg
    headway inspect runs/multi30k-de-en "Ein Hund läuft." --target "A cat sleeps." --words --output record.json
    """
    from headway.insight import draw_map
    from headway.insight.pictures import check_picture_path, draw_heat_maps, save_picture

    check_output(output)
    if output is not None:
        check_picture_path(output, others=(".json",))
    as_json = output is not None and output.suffix.lower() == ".json"
    if as_json and (kind, layers, heads) != ("cross", "last", "mean"):
        raise UserError("a .json file holds every map; leave --kind, --layers and --heads out")
    kinds = _kinds(kind)
    translator = load_translator(model, device)
    record = translator.inspect(language_prefix(translator, target_language) + text, target)
    if words:
        record = record.words()
    if output is not None and as_json:
        output.write_text(json.dumps(record.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")
        return
    maps = [row for name in kinds for row in _chosen_maps(record, name, layers, heads)]
    if output is not None:
        save_picture(draw_heat_maps(maps), output)
        return
    for one in (one for row in maps for one in row):
        typer.echo(f"{one.title}\n\n{draw_map(one.values, one.rows, one.columns)}\n")


def _kinds(text: str) -> list[str]:
    kinds = list(KINDS) if text == "all" else text.split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"--kind {text}: {kind!r} is none of {', '.join(KINDS)}, all")
    return kinds


def _chosen_maps(record: TranslationRecord, kind: str, layers: str, heads: str) -> list[list[HeatMap]]:
    """A row of maps for each layer."""
    from headway.insight.pictures import HeatMap

    if kind not in record.attention:
        raise UserError(f"--kind {kind}: the model has no such layers")
    weights = record.attention[kind].float().numpy()  # type: ignore[index]  # (layers, heads, query, key)
    queries, keys = record.labels(kind)  # type: ignore[arg-type]
    rows = []
    for layer in _numbers("--layers", str(len(weights)) if layers == "last" else layers, len(weights)):
        title = f"{KINDS[kind]}, layer {layer}"
        if heads == "mean":
            rows.append([HeatMap(f"{title}, mean of its heads", weights[layer - 1].mean(axis=0), queries, keys)])
        else:
            rows.append(
                [
                    HeatMap(f"{title}, head {head}", weights[layer - 1, head - 1], queries, keys)
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
