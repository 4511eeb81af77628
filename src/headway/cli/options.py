"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from headway.errors import UserError
from headway.text.compressed import open_bytes

if TYPE_CHECKING:
    from headway.decoding import Sampling

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best model).")
]
Source = Annotated[Path, typer.Option(help="Text, one sentence per line; or a .tsv or .jsonl file with both sides.")]
BeamSize = Annotated[int | None, typer.Option(min=1, help="Beam size; 1 is greedy search. Default: the model's own.")]
LengthPenalty = Annotated[
    float | None, typer.Option(help="GNMT's alpha; 0 favours short translations. Default: the model's own.")
]
Mbr = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Of the N best translations (with --sample: N samples), choose the one most similar to all, by chrF.",
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(
        metavar="KEY=VALUE,...", help="Sample instead of beam search; any of temperature, top_k, top_p, seed."
    ),
]
Ensemble = Annotated[
    list[Path] | None,
    typer.Option(metavar="MODEL", help="Another model to translate with. Repeat the option for more models."),
]
Tokenize = Annotated[
    str | None,
    typer.Option(help="sacreBLEU tokenizer: 13a, none, zh, char, ... Default: by language; none for whole words."),
]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="A Python function that scores translations, besides BLEU, chrF and TER. Repeat the option for more.",
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option(metavar="CODE", help="For a model with several target languages: tag each line with >>CODE<<."),
]
Alignments = Annotated[
    bool,
    typer.Option(
        "--alignments", help="Add links between the words of both sides at the end of the line: ` ||| 0-0 1-2`."
    ),
]
Confidence = Annotated[
    bool,
    typer.Option(
        "--confidence",
        help="Add the probability that the translation is acceptable: ` ||| 0.8312` (calibrated model), with "
        "`out-of-domain` where the source is unlike the text of the calibration.",
    ),
]
LinkedPieces = Annotated[bool, typer.Option("--pieces", help="With --alignments: link tokens, not words.")]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print JSON: a single document, or one per line.")]
PrecisionOption = Annotated[
    str, typer.Option("--precision", help="auto, fp32, bf16, or int8 with CTranslate2; auto is fp32 on CPU.")
]
Engine = Annotated[str, typer.Option(help="Engine that runs the model: torch, or ctranslate2, which is faster on CPU.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Cores to use. Default: HEADWAY_THREADS, or all that affinity and the CPU limit allow."
    ),
]


def given_options(context: typer.Context) -> dict[str, str]:
    """The options that stand on the command line: parameter names, and the flags as a user knows them."""
    flags = {one.name: one.opts[0] for one in context.command.params if one.name and one.param_type_name == "option"}
    sources = {name: context.get_parameter_source(name) for name in flags}
    return {name: flags[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def check_output(path: Path | None) -> None:
    """Raises UserError where no file can be written, before any work is done for it."""
    if path is None:
        return
    if str(path) == "-":
        raise UserError("--output -: results go to standard output where --output is left out")
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no such folder")


@contextmanager
def writer(path: Path) -> Iterator[TextIO]:
    """A file that appears when all is written, so that it may be the input's own; .gz, .xz and .zst are
    compressed. A link keeps its place, and what is no file, such as a device, is written to as it is."""
    if path.exists() and not path.is_file():
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    path = path.resolve()
    partial = path.with_name(f"{path.name}.partial")
    try:
        opened = open_bytes(partial, "wb", as_named=path)
        with TextIOWrapper(opened, encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def parse_sampling(text: str) -> Sampling:
    """The record of `temperature=0.8,top_k=20`. Raises UserError."""
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
