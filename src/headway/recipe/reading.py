"""Recipes from YAML files and command lines.

Precedence is defaults < sections < stage < command line. An unknown key is an error that suggests the nearest known
one, and an error names the file or the argument at fault. Paths in a file are relative to its folder, paths on the
command line to the current one.
"""

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from headway.data.corpus import is_memory, suffix_of_language
from headway.data.memories import languages_of
from headway.data.options import DataSection, listed
from headway.errors import UserError, said_briefly
from headway.languages import read_code
from headway.recipe.inherited import initial_sections, mismatches
from headway.recipe.recipe import DEFAULT_LEARNING_RATE, MODEL_KEYS, RETIRED, Recipe, Stage, stage_folder, with_teacher

MARK = "# The recipe of the run in this folder, every value written out.\n"
"""First line of a run's recipe.yaml. Nothing is ever removed from a folder without it."""
PATH_KEYS = {"source", "target", "reverse", "teacher", "prepared", "init_from"}  # only in `data` and `training`
SECTIONS = ("data", "tokenizer", "model", "training", "decoding")
_NOT_YAML = (yaml.YAMLError, ValueError, TypeError, RecursionError)
"""Errors of PyYAML, also for a date that no calendar has, a list as a key, and a thousand nested lists."""


class _Problem(Exception):
    """A problem of a recipe, in a line without the place of the recipe."""


class UnclearLanguagesError(UserError):
    """Neither keys nor file names tell the languages of these `sides`, source or target or both."""

    def __init__(self, message: str, sides: list[str]) -> None:
        super().__init__(message)
        self.sides = sides


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that stands twice; the second would replace the first silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _for_text(path: Path) -> str:
    """The end of a complaint about a file that may be text instead of a recipe."""
    return "" if path.suffix in (".yaml", ".yml") else "; for text: headway train --source FILE --target FILE"


def load_recipe(path: Path, overrides: Iterable[str] = (), *, as_in: Path | None = None) -> Recipe:
    """Reads a recipe. overrides: `key.path=value`. Paths are relative to its folder or `as_in`. Raises UserError."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
        document = _anchored(document, as_in or path.parent, exists=as_in is None)
    except IsADirectoryError:
        again = f"--resume {shlex.quote(str(path))}"
        raise UserError(f"{path}: is a folder; give a recipe.yaml, or {again} to go on with a run") from None
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    except _NOT_YAML as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else path
        raise UserError(f"{place}: is not YAML: {getattr(error, 'problem', None) or error}{_for_text(path)}") from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: must hold the sections data, tokenizer, model, training, decoding{_for_text(path)}")
    return make_recipe(document, overrides, origin=str(path))


def make_recipe(document: dict[str, Any], overrides: Iterable[str] = (), origin: str = "recipe") -> Recipe:
    """A recipe from nested dictionaries and `key.path=value`; paths are to the current folder. Raises UserError."""
    overrides = list(overrides)
    try:
        return _recipe_of(document, overrides)
    except _Problem as error:
        words = set(re.findall(r"\w+", str(error))) - Recipe.model_fields.keys()  # names of sections prove nothing
        named = [one for one in overrides if not words.isdisjoint(one.partition("=")[0].split("."))]
        raise UserError(f"{' '.join(named) or origin}: {error}") from None


def _recipe_of(document: dict[str, Any], overrides: Sequence[str]) -> Recipe:
    """Raises _Problem, and UserError for errors that name their place themselves."""
    changes: dict[str, Any] = {}
    for override in overrides:
        _set(changes, override)
    changes = _anchored(changes, Path.cwd())
    of_stages = changes.pop("stages") if isinstance(changes.get("stages"), dict) else {}
    given = {str(one.get("name")): one for one in listed(document.get("stages")) if isinstance(one, dict)}
    if unknown := of_stages.keys() - given:
        raise _Problem(f"stages.{min(unknown)}: no stage has this name; there are {', '.join(given) or 'none'}")
    if None in of_stages.values():
        document = {**document, "stages": [one for name, one in given.items() if of_stages.get(name, {}) is not None]}
    asked = changes["tokenizer"].get("vocab_size") if isinstance(changes.get("tokenizer"), dict) else None
    document = _with_initial_sections(_anchored(_merged(document, changes), Path.cwd()), asked)
    recipe = _resolved(_validated(document))
    found: dict[str, tuple[Recipe, Stage]] = {}
    for stage in recipe.stages:
        try:
            found[stage.name] = _stage_of(recipe, document, stage, changes, of_stages.get(stage.name, {}), found)
        except _Problem as error:
            raise _Problem(f"stage {stage.name}: {error}") from None
    return recipe.model_copy(update={"stages": [stage for _, stage in found.values()]})


def _stage_of(
    recipe: Recipe,
    document: dict[str, Any],
    stage: Stage,
    changes: dict[str, Any],
    own: Any,
    earlier: dict[str, tuple[Recipe, Stage]],
) -> tuple[Recipe, Stage]:
    """The stage's own recipe, and the stage with all its differences from `recipe` written out. document: with the
    sections as they were given. changes: for all stages; own: for this one. Raises _Problem."""
    is_nested = isinstance(own, dict) and all(isinstance(one, dict) for one in own.values())
    if not is_nested or not own.keys() <= set(SECTIONS):
        raise _Problem("a change of it is stages.NAME.section.key=value")
    sections = {name: {**(document.get(name) or {}), **getattr(stage, name)} for name in SECTIONS}
    sections = _merged(_merged(sections, changes), own)
    if stage.start is not None:
        if "init_from" in {**stage.training, **own.get("training", {})}:
            raise _Problem("start and training.init_from exclude each other")
        sections["training"] = {**sections["training"], "init_from": str(stage_folder(Path("run"), stage.start))}
    else:
        sections = _with_initial_sections(sections)
    whole = _resolved(_validated(sections))
    try:
        with_teacher(whole, stage, Path("run"))
    except ValidationError as error:
        raise _Problem(f"teacher: {_problem_line(error.errors()[0], document)}") from None
    if whole.data.prepared:
        raise _Problem("data.prepared: a stage prepares its own text")
    if stage.start is not None:
        before = earlier[stage.start][0]
        has = before.model.model_dump(), before.tokenizer.model_dump()
        if unlike := mismatches(whole.model.model_dump(), whole.tokenizer, *has):
            raise _Problem(f"can't start from stage {stage.start}: {', '.join(unlike)}")
    written = changed_keys(recipe.model_dump(mode="json"), whole.model_dump(mode="json"))
    if stage.start is not None:
        written.get("training", {}).pop("init_from", None)
    return whole, Stage(name=stage.name, start=stage.start, teacher=stage.teacher, **written)


def _validated(document: dict[str, Any]) -> Recipe:
    """Raises _Problem."""
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:  # unknown keys first: a missing key may be there, misspelt
        problem = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        raise _Problem(_problem_line(problem, document)) from None


def _with_initial_sections(document: dict[str, Any], vocab_size: Any = None) -> dict[str, Any]:
    """The document with the values of the model in `training.init_from` for keys that it leaves open; a preset leaves
    no sizes open. Its vocabulary is taken whole, so another `vocab_size` on the command line is a problem. A recipe
    with a preset can be read, such as for a plan, before the model exists."""
    sections = {name: document.get(name) or {} for name in SECTIONS}
    if not all(isinstance(section, dict) for section in sections.values()):
        return document
    path, has_preset = sections["training"].get("init_from"), "preset" in sections["model"]
    resolved = sections["model"].keys() >= MODEL_KEYS  # as the recipe of a run is written out
    if not isinstance(path, str) or resolved or (has_preset and not Path(path).exists()):
        return document
    initial = initial_sections(Path(path))
    if has_preset:
        del initial["model"]
    size = initial["tokenizer"]["vocab_size"]
    if vocab_size not in (None, size):
        raise _Problem(f"tokenizer.vocab_size: {path} keeps its {size:,} tokens; `headway extend` adds tokens")
    sections["tokenizer"] = {**sections["tokenizer"], "vocab_size": size}
    return {**document, **{name: {**initial[name], **sections[name]} for name in initial}}


def _languages(data: DataSection) -> dict[str, str]:
    """The languages of both sides: as they are given, else by the suffixes of the first files. Raises
    UnclearLanguagesError."""
    given = {"source": data.source_language, "target": data.target_language or ("mul" if data.tags else "")}
    first = (data.train or data.corpora)[0]
    files: list[Path] = [*first.source[:1], *first.target[:1]]
    suffixes = dict(zip(given, map(suffix_of_language, files), strict=False))
    if not all(given.values()) and is_memory(files[0]) and files[0].is_file():
        suffixes = dict(zip(given, languages_of(files[0], (given["source"], given["target"])), strict=True))
    found = {side: language or suffixes.get(side, "") for side, language in given.items()}
    same = read_code(found["source"]) == read_code(found["target"])
    if unclear := [side for side, language in given.items() if not language and (same or not found[side])]:
        names = " and ".join(dict.fromkeys(file.name for file in files))
        keys = " ".join(f"data.{side}_language=..." for side in unclear)
        message = f"{names}: the file names don't name two languages; set {keys} (codes such as de)"
        raise UnclearLanguagesError(message, unclear)
    return {f"{side}_language": language for side, language in found.items()}


def _resolved(recipe: Recipe) -> Recipe:
    """The recipe with languages, the preset's sizes and the learning rate written out. Raises _Problem."""
    size = max(recipe.tokenizer.vocab_size, 4)
    try:
        config = recipe.transformer_config((size, size))
    except ValueError as error:
        raise _Problem(f"model: {error}") from None
    if config.share_embeddings == "all" and not recipe.tokenizer.joint:
        raise _Problem("model.share_embeddings: all needs one vocabulary; set tokenizer.joint: true")
    if recipe.data.tags and recipe.tokenizer.kind == "word":
        raise _Problem("data.train: tags need tokenizer.kind: bpe or unigram")
    longest, rate = recipe.decoding.max_length, recipe.training.learning_rate
    if longest is not None and longest >= config.max_length:
        raise _Problem(f"decoding.max_length={longest} must be less than model.max_length={config.max_length}")
    if rate is None and recipe.training.schedule != "paper":
        rate = DEFAULT_LEARNING_RATE
    return recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update=_languages(recipe.data)),
            "model": recipe.model.model_copy(update={name: getattr(config, name) for name in MODEL_KEYS}),
            "training": recipe.training.model_copy(update={"learning_rate": rate}),
        }
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


def _anchored(value: Any, folder: Path, key: str = "", *, exists: bool = True) -> Any:
    """The document with absolute paths; `folder` is the origin of relative ones. If it needn't exist, `..` is resolved
    here. key: of the value in its section."""
    if isinstance(value, dict):
        in_stage = key == "stages"  # a stage's `teacher` is the name of another stage
        return {one: _anchored(below, folder, "" if in_stage else one, exists=exists) for one, below in value.items()}
    if isinstance(value, list):
        return [_anchored(below, folder, key, exists=exists) for below in value]
    if not isinstance(value, str) or key not in PATH_KEYS:
        return value
    path = Path(value)
    with suppress(RuntimeError):  # a name that begins with `~`
        path = path.expanduser()
    place = (folder / path).absolute()
    return str(place) if exists else os.path.normpath(place)


_NEEDED = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text", "path": "a path"}
"""Shorter words than pydantic's for values of another type."""


def _problem_line(problem: Any, document: dict[str, Any]) -> str:
    """One of pydantic's problems with the document, in a line; that of a stage by its name."""
    place, kind, given = problem["loc"], problem["type"], problem["input"]
    match place:
        case "stages", int(number), _, *_ if isinstance(name := listed(document["stages"])[number].get("name"), str):
            return f"stage {name}: {_problem_line({**problem, 'loc': place[2:]}, document)}"
    if kind == "invalid_key":
        place = place[:-1]
    keys = [str(part) for part in place if part != 0]  # the first corpus is mostly the only one
    name, (word, meaning) = ".".join(keys), ("yes", "true") if given is True else ("no", "false")
    if kind == "extra_forbidden":
        return _unknown(keys)
    if kind == "missing":
        return f"{name} is missing"
    if kind == "invalid_key":
        fault = f"{word} is {meaning} in YAML" if isinstance(given, bool) else f"{given} is no text in YAML"
        return f"{name or 'recipe'}: keys must be text: {fault}"
    if kind in ("string_type", "path_type") and isinstance(given, bool):
        return f'{name}: {word} is {meaning} in YAML: write "{word}" in quotes (here in a shell: \'{name}="{word}"\')'
    message = said_briefly(problem["msg"])
    wanted, _, fault = kind.partition("_")
    if wanted in _NEEDED and fault in ("type", "parsing", "from_float"):
        message = f"must be {_NEEDED[wanted]}"
    if kind == "model_type":
        message = f"must be a section of keys, not {given!r}"
    elif not isinstance(given, (dict, list, BaseModel)):
        message += f" (given: {given!r})"
    return f"{name}: {message}" if name else message


def _unknown(place: Sequence[str]) -> str:
    """The message for an unknown key, with those of this name in other sections, else the one spelt most alike."""
    *above, key = place
    name = ".".join(place)
    if name in RETIRED:
        return f"{name} was retired; leave it out (only {RETIRED[name]}, its default, is still taken)"
    known = [(one, *one.rpartition(".")[::2]) for one in _known_keys(Recipe)]
    if elsewhere := [one for one, _, last in known if last == key]:
        near = difflib.get_close_matches(name, elsewhere, n=2, cutoff=0)
    else:
        section = ".".join(part for part in above if not part.isdigit())
        siblings = sorted(last for _, of, last in known if of == section)
        near = [".".join([*above, one]) for one in difflib.get_close_matches(key, siblings, n=1, cutoff=0.5)]
    return f"unknown key {name}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _known_keys(section: Any, above: str = "") -> Iterator[str]:
    """The paths of all keys and sections of a recipe."""
    for name, field in section.model_fields.items():
        yield above + name
        inner = next(iter(get_args(field.annotation)), field.annotation)  # of a list: the type of its items
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _known_keys(inner, f"{above}{name}.")


def is_run(folder: Path) -> bool:
    """Whether a run was begun in the folder."""
    recipe = folder / "recipe.yaml"
    return recipe.is_file() and recipe.read_bytes().startswith(MARK.encode())


def changed_keys(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The keys that differ in another recipe, by section, with their values there."""
    return {
        name: changed
        for name in SECTIONS
        if (changed := {key: value for key, value in after[name].items() if value != before[name][key]})
    }


def flattened(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with `section.key` as keys, in stages `stages.NAME.section.key`."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if key == "stages":
            value = {one["name"]: one for one in value}  # noqa: PLW2901
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
