"""Writes docs/reference/ from the code: every command with its flags, every recipe key, every field of the model's
config, each with the sentence that stands where it is declared. `make reference` runs it; a test fails when it wasn't.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import torch
import typer

from headway.cli import app
from headway.cli.export import TARGETS
from headway.decoding.options import ABILITIES, SearchOptions, names_in
from headway.model import Transformer
from headway.model.config import PRESETS, ModelConfig
from headway.recipe.recipe import ModelSection, Recipe

VOCABULARIES = (8_000, 37_000)
"""Sizes at which the presets' parameters are counted."""
FOLDER = Path(__file__).parent / "reference"
NOTICE = "<!-- Made by `make reference` from the code; edit the code. -->\n\n"


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {"commands.md": commands_page(), "recipe.md": recipe_page(), "model.md": model_page()}


def flags() -> dict[str, list[str]]:
    """The flags of each command."""
    return {name: [parameter.opts[0] for parameter in options(command)] for name, command in commands().items()}


def recipe_keys() -> list[str]:
    """Every key of a recipe, as `section.key`."""
    return [key for key, _, _ in recipe_rows()]


def commands() -> dict[str, Any]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined]


def options(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "option"]


def commands_page() -> str:
    parts = [f"{NOTICE}# Commands\n"]
    for name, command in commands().items():
        about, _, examples = inspect.cleandoc(command.help).partition("\b")
        arguments = [one.metavar or one.name for one in command.params if one.param_type_name == "argument"]
        parts.append(f"## headway {name} {' '.join(arguments)}\n\n{' '.join(about.split())}\n")
        parts.append(f"```\n{textwrap.dedent(examples).strip()}\n```\n")
        rows = [(f"`{one.opts[0]}`", shown(one.default), one.help or "") for one in options(command)]
        parts.append(table(("Flag", "Default", "Meaning"), rows))
    return "\n".join(parts)


def recipe_page() -> str:
    rows = [(f"`{key}`", default, meaning) for key, default, meaning in recipe_rows()]
    about = (
        "A recipe is YAML in five sections. It may also have [stages](../stages.md), a list of trainings that make the "
        "model one after another. Precedence is defaults < sections < stage < command line, where "
        "`section.key=value` is for all stages and `stages.NAME.section.key=value` for one. `model` takes `preset` and "
        "any field of [the model's config](model.md). `data.train`, `data.monolingual`, `data.distilled`, "
        "`data.valid` and `data.held_out` may be lists of corpora. Paths in a file are relative to its folder, paths "
        "on the command line to the current folder. A recipe that comes with headway and is given by name reads "
        "`data/` of the current folder, where `headway data` puts its corpus."
    )
    engines = (
        "`decoding` has the search options that a model has as its own; `n_best` and `sample` are given with texts. "
        "An export says which values of a model it can't keep. CTranslate2 and Argos "
        "Translate keep none: they take their options with each text."
    )
    options = [
        (f"`{name}`", ", ".join(one.engines), ", ".join(to for to in TARGETS if name in names_in(to)))
        for name, one in ABILITIES.items()
        if name in SearchOptions.model_fields
    ]
    return (
        f"{NOTICE}# Recipe keys\n\n{about}\n\n{table(('Key', 'Default', 'Meaning'), rows)}\n"
        f"## Search options\n\n{engines}\n\n{table(('Option', 'Engines', 'Exports that keep it'), options)}"
    )


def recipe_rows() -> list[tuple[str, str, str]]:
    """Key, default and meaning."""
    rows: list[tuple[str, str, str]] = []
    for section, field in Recipe.model_fields.items():
        if section == "model":
            sizes = ", ".join(f"`{name}`" for name in PRESETS)
            about = f"Size of the model: {sizes} ([their parameters](model.md#presets)). Other fields of the section "
            rows.append(("model.preset", shown(ModelSection().preset), about + "change it."))
            continue
        rows += rows_of(section, next(iter(get_args(field.annotation)), field.annotation))
    return rows


def rows_of(prefix: str, section: Any) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name, field in section.model_fields.items():
        inner = next(iter(get_args(field.annotation)), field.annotation)
        if hasattr(inner, "model_fields"):
            if field.description:
                rows.append((f"{prefix}.{name}", "", " ".join(field.description.split())))
            rows += rows_of(f"{prefix}.{name}", inner)
        else:
            default = "" if field.is_required() else shown(field.get_default(call_default_factory=True))
            rows.append((f"{prefix}.{name}", default, " ".join((field.description or "").split())))
    return rows


def model_page() -> str:
    meanings = field_docstrings(ModelConfig)
    defaults = {
        field.name: "" if field.default is dataclasses.MISSING else shown(field.default)
        for field in dataclasses.fields(ModelConfig)
    }
    rows = [(f"`{name}`", default, meanings.get(name, "")) for name, default in defaults.items()]
    presets = [
        (f"`{name}`", *(f"{parameters(name, size):,}" for size in VOCABULARIES), changes(sizes) or "nothing")
        for name, sizes in PRESETS.items()
    ]
    heads = [f"Parameters with {size:,} tokens" for size in VOCABULARIES]
    about = (
        "How each preset changes the defaults above, and how many parameters the model then has. 37,000 tokens is the "
        "vocabulary of the paper's English-German models. If source and target share no embedding, each side has "
        "that many tokens."
    )
    return (
        f"{NOTICE}# ModelConfig\n\n{table(('Field', 'Default', 'Meaning'), rows)}\n"
        f"## Presets\n\n{about}\n\n{table(('Preset', *heads, 'Changes'), presets)}"
    )


def parameters(preset: str, vocabulary: int) -> int:
    """Of the preset's model, counted."""
    config = ModelConfig.preset(preset, source_vocab_size=vocabulary, target_vocab_size=vocabulary)
    with torch.device("meta"):  # no memory for them
        return sum(parameter.numel() for parameter in Transformer(config).parameters())


def changes(sizes: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sizes.items())


def field_docstrings(record: type) -> dict[str, str]:
    """The string under each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0].body  # type: ignore[attr-defined]
    meanings = {}
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
            assert isinstance(statement.target, ast.Name)
            meanings[statement.target.id] = " ".join(ast.literal_eval(following.value).split())
    return meanings


def shown(default: Any) -> str:
    if default is None or default in ("", [], ()):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    return line(head) + "|" + "---|" * len(head) + "\n" + "".join(map(line, rows))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
