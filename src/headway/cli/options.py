"""Options that several commands share, declared once, with the checks of their values."""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from typer import Argument, Option

from headway.data.corpus import ANY_PAIRS
from headway.data.lines import Layout
from headway.decoding.options import ONLY_TORCH, DefaultOptions, Sampling, SearchOptions
from headway.errors import UserError


def output(help: str, metavar: str | None = None) -> Any:
    """`--output` names what a command writes; `--out` is the same."""
    return Option("--output", "--out", help=help, metavar=metavar)


def files(help: str) -> Any:
    """An option that names text files and may be repeated, of type Files."""
    return Option(metavar="FILE", help=f"{help} May be repeated.")


def _default_option(field: FieldInfo) -> Any:
    """The type of the command-line option for one of `DefaultOptions`, with its help and its least value."""
    least = next((one.ge for one in field.metadata if hasattr(one, "ge")), None)
    help = f"{_help(field)} Default: the model's own."
    return Annotated[field.annotation | None, Option(min=least, help=help)]


def _help(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


SEARCH: dict[str, Any] = {
    **{name: _default_option(field) for name, field in DefaultOptions.model_fields.items()},
    "check_numbers": Annotated[
        bool | None, Option("--check-numbers", help=_help(SearchOptions.model_fields["check_numbers"]))
    ],
    "sample": Annotated[
        str | None,
        Option(metavar="KEY=VALUE,...", help="Sample instead of beam search; any of temperature, top_k, top_p, seed."),
    ],
}
"""Types of the options for a search, by name. The default of each is None: the model's own."""
Files = list[Path] | None
Pairs = Annotated[
    Files, Argument(metavar="[PAIRS]...", help=f"Files that hold both sides, or patterns of them: {ANY_PAIRS}.")
]
Model = Annotated[Path, Argument(metavar="MODEL", help="Model directory, or run directory (then its best model).")]
NewModel = Annotated[Path, output("Model directory to make.", "MODEL")]
Source = Annotated[Path, Option(help="Text, one sentence per line; or a file that holds both sides, such as .tsv.")]
Translation = Annotated[Path | None, Option(help="Its translation, line for line.")]
Reference = Annotated[Path | None, Option(help="The reference translation, line for line.")]
Ensemble = Annotated[
    list[Path] | None,
    Option(metavar="MODEL", help="Another model whose probabilities are averaged. May be repeated."),
]
Tokenize = Annotated[
    str | None, Option(help="sacreBLEU tokenizer: 13a, none, zh, char, ... Default: by language; none for whole words.")
]
Metric = Annotated[
    list[str] | None,
    Option(
        metavar="MODULE:FUNCTION",
        help="A Python function that scores translations, besides BLEU, chrF and TER. Repeat the option for more.",
    ),
]
TargetLanguage = Annotated[
    str | None, Option(metavar="CODE", help="For a model with several target languages: tag each line with >>CODE<<.")
]
Alignments = Annotated[
    bool,
    Option("--alignments", help="Add links between the words of both sides at the end of the line: ` ||| 0-0 1-2`."),
]
LinkedPieces = Annotated[bool, Option("--pieces", help="With --alignments: link tokens, not words.")]
JsonOutput = Annotated[bool, Option("--json", help="Print JSON: a single document, or one per line.")]
Precision = Annotated[
    str,
    Option(
        help="auto, fp32, bf16, fp16, or int8 with CTranslate2. auto on CPU: int8 if it costs the model no quality "
        "(see `headway show`), else fp32; on cuda: bf16, or fp16 if it lacks bf16."
    ),
]
Engine = Annotated[
    str,
    Option(
        help="auto, torch or ctranslate2. auto: CTranslate2 on CPU, torch elsewhere and for what CTranslate2 can't do: "
        f"{', '.join(ONLY_TORCH)}."
    ),
]
Core = Annotated[
    str | None,
    Option(
        metavar="MODULE:CLASS",
        help="The class that computes attention in a model trained with model.core; runs its code.",
    ),
]
Device = Annotated[str, Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Threads = Annotated[
    int | None,
    Option(metavar="N", help="Cores to use. Default: HEADWAY_THREADS, or all that affinity and the CPU limit allow."),
]


def check_output(path: Path | None) -> None:
    """Raises UserError where no file can be written, before any work is done for it."""
    if path is None:
        return
    if str(path) == "-":
        raise UserError("--output -: leave --output out, and results go to standard output")
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: no such folder")


def check_picture(path: Path | None) -> None:
    """Raises UserError where no picture can be written."""
    from headway.insight.pictures import check_picture_path

    check_output(path)
    if path is not None:
        check_picture_path(path)


def check_new(path: Path) -> None:
    """Raises UserError for a path that exists."""
    if path.exists():
        raise UserError(f"{path}: is there already; choose another --output")


def given_options(context: typer.Context) -> dict[str, str]:
    """The options that stand on the command line: parameter names, and the flags as a user knows them."""
    flags = {one.name: one.opts[0] for one in context.command.params if one.name and one.param_type_name == "option"}
    sources = {name: context.get_parameter_source(name) for name in flags}
    return {name: flags[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def with_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a search in place of its keyword `search`, a dictionary of those given."""

    @wraps(command)
    def with_options(**given: Any) -> None:
        search = {name: given.pop(name) for name in SEARCH}
        if search["sample"] is not None:
            search["sample"] = parse_sampling(search["sample"])
        command(**given, search={name: value for name, value in search.items() if value is not None})

    own = signature(command, eval_str=True)
    added = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in SEARCH.items()]
    parameters = [one for each in own.parameters.values() for one in (added if each.name == "search" else [each])]
    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return with_options


def parse_sampling(text: str) -> Sampling:
    """The record of `temperature=0.8,top_k=20`. Raises UserError."""
    kinds = {field.name: type(field.default) for field in fields(Sampling)}
    given: dict[str, Any] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        try:
            given[name] = kinds[name](value)
        except (KeyError, ValueError):
            known = ", ".join(f"{name}=NUMBER" for name in kinds)
            raise UserError(f"--sample {text}: {item!r} is not one of {known}") from None
    return Sampling(**given)


Columns = Annotated[
    list[int] | None,
    Option(
        "--column",
        metavar="N",
        min=1,
        help="Column of the source in .tsv, .csv and .xlsx files, then that of the target. Default: 1, 2.",
    ),
]
Document = Annotated[
    str | None,
    Option(
        metavar="N|NAME",
        help="Keep documents whole. The column or field with their names, such as original (.xliff), reference (.po).",
    ),
]


def columns_of(given: list[int] | None) -> tuple[int, int] | None:
    """The columns of source and target, from 0, as `--column` gives them. Raises UserError."""
    if not given:
        return None
    if len(given) != 2 or given[0] == given[1]:
        raise UserError("--column: give that of the source and that of the target, such as --column 2 --column 3")
    return given[0] - 1, given[1] - 1


def layout_of(given: str | None, option: str) -> Layout | None:
    """The place in a line, as `--column` and `--document` give it: a number of a column, from 1, or the name of a field
    of a JSON object. Raises UserError."""
    if given and not given.strip("0"):
        raise UserError(f"{option} {given}: columns are counted from 1")
    if not given:
        return None
    return Layout(column=int(given)) if given.isdecimal() else Layout(field=given)
