"""Recipes from YAML files and command lines.

Precedence is defaults < file < command line. Unknown keys are errors that suggest the nearest known one. Paths in a
file are relative to its folder, paths on the command line to the current one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from headway.errors import UserError
from headway.model import ModelConfig
from headway.text.corpus import is_gzip, is_two_sided
from headway.training.initial import initial_sections
from headway.training.recipe import DEFAULT_LEARNING_RATE, DataSection, Recipe, model_keys
from headway.training.run_directory import check_name

_NOT_YAML = (yaml.YAMLError, ValueError, TypeError, RecursionError)
"""Text that PyYAML can't read, or can't build: a date that no calendar has, a list as a key, a thousand lists deep."""


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which no key may stand twice; the second would replace the first silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_recipe(path: Path, overrides: Iterable[str] = ()) -> Recipe:
    """Reads a recipe; `overrides` are `key.path=value`. Raises UserError."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; give a recipe.yaml, or --resume {path} to go on with a run") from None
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    except _NOT_YAML as error:
        problem = " ".join(str(error).replace('in "<unicode string>", ', "").split())
        raise UserError(f"{path}: is not YAML: {problem}") from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: must hold the sections data, tokenizer, model, training, decoding")
    return make_recipe(_anchored(document, path.parent), overrides, origin=str(path))


def make_recipe(document: dict[str, Any], overrides: Iterable[str] = (), origin: str = "recipe") -> Recipe:
    """A recipe from nested dictionaries and `key.path=value` overrides; relative paths are to the current folder.
    Raises UserError."""
    changes: dict[str, Any] = {}
    for override in overrides:
        _set(changes, override)
    document = _with_initial_sections(_anchored(_merged(document, changes), Path.cwd()))
    try:
        recipe = Recipe.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{origin}: {_first_problem(error)}") from None
    for corpus in (*recipe.data.train, *recipe.data.valid):
        for file in (*corpus.source, *corpus.target):
            check_name(file)
    _check_model(recipe, origin)
    return _resolved(recipe)


def _with_initial_sections(document: dict[str, Any]) -> dict[str, Any]:
    """Where a run starts from a model, what the sections `model` and `tokenizer` leave open is that model's; a preset
    leaves nothing open. Its vocabulary is taken whole."""
    training, model, tokenizer = (document.get(section) or {} for section in ("training", "model", "tokenizer"))
    if not all(isinstance(section, dict) for section in (training, model, tokenizer)):
        return document
    path, resolved = training.get("init_from"), model_keys().keys() <= model.keys()
    if not isinstance(path, str) or resolved:  # of a run that goes on, all is written out
        return document
    initial = initial_sections(Path(path))
    if "preset" not in model:
        document = {**document, "model": {**initial["model"], **model}}
    vocab_size = {"vocab_size": initial["tokenizer"]["vocab_size"]}
    return {**document, "tokenizer": {**initial["tokenizer"], **tokenizer, **vocab_size}}


def _resolved(recipe: Recipe) -> Recipe:
    """With what follows from other keys written out: languages, the preset's sizes, the learning rate."""
    languages = {
        f"{side}_language": getattr(recipe.data, f"{side}_language") or _language_of(recipe.data, side)
        for side in ("source", "target")
    }
    config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4).to_dict()
    sizes = {name: config[name] for name in model_keys()}
    rate = recipe.training.learning_rate
    if rate is None and recipe.training.schedule != "paper":
        rate = DEFAULT_LEARNING_RATE
    return recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update=languages),
            "model": recipe.model.model_copy(update=sizes),
            "training": recipe.training.model_copy(update={"learning_rate": rate}),
        }
    )


def _language_of(data: DataSection, side: str) -> str:
    """The language of a side, by the suffix of its first file."""
    files: list[Path] = getattr(data.train[0], side)
    if side == "target" and data.tags:
        return "mul"
    if not files or is_two_sided(files[0]):
        return side
    file = files[0].with_suffix("") if is_gzip(files[0]) else files[0]
    return file.suffix.lstrip(".") or side


def _check_model(recipe: Recipe, origin: str) -> None:
    """Impossible sizes are told before any work starts."""
    size = max(recipe.tokenizer.vocab_size, 4)
    try:
        config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=size, target_vocab_size=size)
    except ValueError as error:
        raise UserError(f"{origin}: model: {error}") from None
    if config.share_embeddings == "all" and not recipe.tokenizer.joint:
        raise UserError(f"{origin}: model.share_embeddings: all needs one vocabulary; set tokenizer.joint: true")
    if recipe.data.tags and recipe.tokenizer.kind == "word":
        raise UserError(f"{origin}: data.train: tags need tokenizer.kind: bpe or unigram")
    if recipe.decoding.max_length is not None and recipe.decoding.max_length >= config.max_length:
        raise UserError(
            f"{origin}: decoding.max_length={recipe.decoding.max_length} must be less than "
            f"model.max_length={config.max_length}"
        )


def _set(document: dict[str, Any], override: str) -> None:
    path, equals, value = override.partition("=")
    keys = path.split(".")
    if not equals or not all(keys) or not value.strip():
        raise UserError(f"{override!r}: must be key.path=value, such as training.max_steps=1000 (null is none at all)")
    try:
        parsed = yaml.safe_load(value)
    except _NOT_YAML:
        raise UserError(f"{override!r}: the value is not YAML") from None
    for key in keys[:-1]:
        document = document.setdefault(key, {})
        if not isinstance(document, dict):
            raise UserError(f"{override!r}: {key} is given a value and a key below it")
    document[keys[-1]] = parsed


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _anchored(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The document with the paths of its data section made absolute, relative to `folder`."""

    def anchor(value: Any) -> Any:
        if isinstance(value, list):
            return [anchor(below) for below in value]
        if not isinstance(value, str):
            return value
        path = Path(value)
        with suppress(RuntimeError):  # a name that begins with `~`
            path = path.expanduser()
        return str((folder / path).absolute())

    def anchored_corpora(value: Any) -> Any:
        if isinstance(value, list):
            return [anchored_corpora(corpus) for corpus in value]
        if not isinstance(value, dict):
            return value
        return {key: anchor(below) if key in ("source", "target") else below for key, below in value.items()}

    document = dict(document)
    data, training = document.get("data"), document.get("training")
    if isinstance(data, dict):
        document["data"] = {
            key: anchored_corpora(value) if key in ("train", "valid") else value for key, value in data.items()
        }
    if isinstance(training, dict) and "init_from" in training:
        document["training"] = {**training, "init_from": anchor(training["init_from"])}
    return document


def _first_problem(error: ValidationError) -> str:
    problems = error.errors()
    problem = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in problem["loc"] if part != 0]  # the first corpus is mostly the only one
    name = ".".join(place)
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], _known_keys(place[:-1]), n=1, cutoff=0.5)
        return f"unknown key {name}" + (f"; did you mean {'.'.join([*place[:-1], near[0]])}?" if near else "")
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "model_type":
        return f"{name}: must be a section of keys, not {problem['input']!r}"
    message = problem["msg"].removeprefix("Value error, ")
    given = problem["input"]
    return f"{name}: {message}" + ("" if isinstance(given, (dict, list, BaseModel)) else f" (given: {given!r})")


def _known_keys(place: list[str]) -> list[str]:
    section: Any = Recipe
    for part in place:
        if not part.isdigit():  # the number of a corpus among several
            annotation = section.model_fields[part].annotation
            section = next(iter(get_args(annotation)), annotation)  # that of a list's items
    return list(section.model_fields)
