"""What the READMEs and docs/ show is headway's: every command can be parsed, every recipe and every key is a recipe's,
and both languages show the same.
"""

from __future__ import annotations

import re
import runpy
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from headway.model.config import ModelConfig
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import RETIRED, Recipe

DOCS = Path(__file__).parent.parent / "docs"
MAKER = runpy.run_path(str(DOCS / "make_reference.py"), run_name="maker")
MANUALS = [*sorted(DOCS.parent.glob("README*.md")), *sorted(DOCS.glob("*.md"))]
KOREAN = [page for page in MANUALS if page.name.endswith(".ko.md")]
OF_OTHERS = {
    "--preload",
    "--hypothesis-profile",
    "--collect-only",
    "--tokens",
    "--preset",
    "--order",
    "--max-restarts",
    "--torch-backend",
    "--beam",
    "--keys",
    "--caddy",
}
"""Options of pytest, of benchmarks, of torchrun, of gunicorn and of uv."""
NO_KEYS = {"stages.py", "decoding.json", "model.safetensors", "model.about"}
NO_KEYS |= {"tokenizer.spm", "tokenizer.js", "tokenizer.json"} | RETIRED.keys()
"""Files, keys that were retired, and what a page's model says of itself."""
COLOURS = re.compile("--(paper|ink|muted|accent|line|surface)")
COMMANDS = MAKER["commands"]()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^ {4}[^\n]*\n|^\n)*^ {4}[^\n]+\n)", flags=re.DOTALL | re.MULTILINE)
SECTIONS = "|".join(Recipe.model_fields)
KEY = re.compile(rf"(?:{SECTIONS})(?:\.[a-z_0-9]+)+")
TEXT = {"source": "a.de", "target": "a.en"}
KEYS = {*MAKER["recipe_keys"](), *(f"model.{name}" for name in ModelConfig.__dataclass_fields__)}
PARTS_OF_KEYS = {key[: match.end()] for key in KEYS for match in re.finditer(r"[^.]+", key)}
OF_A_MODEL = ("training.init_from=", "training.risk_samples=", "training.adapter.")
"""Keys that need a trained model."""


def blocks(manual: Path) -> Iterator[tuple[str, str]]:
    """Each block of code with its language: between fences, or indented."""
    for language, fenced, indented in BLOCK.findall(manual.read_text(encoding="utf-8")):
        yield language, fenced or textwrap.dedent(indented)


def commands(block: str) -> Iterator[list[str]]:
    """The words of each `headway ...` in a block of the shell, also behind a pipe or in a loop."""
    for line in block.replace("\\\n", " ").splitlines():
        if not re.search(r"(^|[|;] *|\bdo )\S*headway [a-z]", line):
            continue
        words: list[str] = []
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>()")
        lexer.whitespace_split = True
        for word in [*lexer, ";"]:
            if set(word) <= set("|;&()"):
                if words and words[0].split("/")[-1] == "headway":
                    yield words[1:]
                words = []
            elif words or word not in ("do", "then"):
                words.append(word)


def shown_commands(manual: Path) -> list[list[str]]:
    return [words for language, block in blocks(manual) if language == "" for words in commands(block)]


def first_columns(head: str, text: str) -> str:
    """The first column of each table where it has this head."""
    tables = re.findall(rf"^\| {head} \|(?:.*\n\|)+.*$", text, flags=re.MULTILINE)
    return "\n".join(row.split("|")[1] for table in tables for row in table.splitlines())


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_options_that_are_named_exist(manual):
    """In a command those of that command, in a sentence those of any."""
    known = {
        name: {flag for one in MAKER["options"](command) for flag in (*one.opts, *one.secondary_opts)} | {"--help"}
        for name, command in COMMANDS.items()
    }
    text = manual.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"\bheadway ([a-z]+)([^`|\n]*)", text):
        if name in known:
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]+", rest)) <= known[name], f"headway {name}{rest}"
    if manual.name.startswith("coming-from"):  # the rest names options of other toolkits
        text = first_columns("headway", text)
    named = {one for one in re.findall(r"`(--[a-z][a-z-]+)", text) if not COLOURS.fullmatch(one)}
    assert named <= set().union(*known.values()) | OF_OTHERS


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_commands_that_are_shown_can_be_parsed(manual):
    """As the program does it: options, numbers of arguments, kinds of values, keys of a recipe and their values."""
    for name, *words in shown_commands(manual):
        redirected = next((place for place, word in enumerate(words) if word in "<>"), None)
        arguments = [re.sub(r"\$\w+", "1", word) for word in words[:redirected]]
        COMMANDS[name].make_context(name, list(arguments))
        keys = [re.sub(r"^stages\.\w+\.", "", one) for one in arguments]  # of a stage, as of all
        overrides = [one for one in keys if KEY.match(one) and not one.startswith((*OF_A_MODEL, "stages."))]
        data = {"train": TEXT, "valid": TEXT, "source_language": "de", "target_language": "en"}  # as own-corpus.md has
        make_recipe({"data": data, "training": {"max_steps": 1}}, overrides)


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_recipes_that_are_shown_are_recipes(manual):
    for _, block in blocks(manual):
        if re.match(f"({SECTIONS}):", block):
            document = yaml.safe_load(block)
            document.get("training", {}).pop("init_from", None)
            training = {"max_steps": 1, **document.get("training", {})}
            make_recipe({"data": {"train": TEXT, "valid": TEXT}, **document, "training": training})


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_keys_that_are_named_exist(manual):
    text = manual.read_text(encoding="utf-8")
    if manual.name.startswith("coming-from"):
        text = first_columns("headway", text)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    named = {key for code in inline for key in re.findall(rf"^{KEY.pattern}(?=$|[=: ])", code)}
    assert named <= PARTS_OF_KEYS | NO_KEYS


@pytest.mark.parametrize("korean", KOREAN, ids=lambda path: path.name)
def test_both_languages_show_the_same_commands(korean):
    english = korean.with_name(korean.name.replace(".ko.md", ".md"))
    assert shown_commands(korean) == shown_commands(english)


def test_commands_are_found():
    block = 'echo "a | b" | headway translate x > y\nfor a in 1 2; do headway score x \\\n  --source "$a"; done\n'
    assert list(commands(block)) == [["translate", "x", ">", "y"], ["score", "x", "--source", "$a"]]
    assert list(commands("headway: a message\nls headway\n")) == []
    assert sum(len(shown_commands(manual)) for manual in MANUALS) > 100


@pytest.mark.parametrize("korean", KOREAN, ids=lambda path: path.name)
def test_korean_asks_in_one_way(korean):
    """쓰세요, as the server's page and the guide do."""
    assert "십시오" not in korean.read_text(encoding="utf-8")
