"""The recipes that come with headway, by name, and the commands that make the files they read."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import headway
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.recipe.recipe import Recipe


def shipped_recipes() -> dict[str, Path]:
    """The file of each recipe by its name: from inside the package, as in a wheel, or from the repository."""
    package = Path(headway.__file__).parent
    folder = package / "recipes" if (package / "recipes").is_dir() else package.parents[1] / "recipes"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"), key=lambda file: file.stem)}


def read_recipe(argument: str, overrides: Sequence[str]) -> tuple[Recipe, str]:
    """The recipe in a file, or a shipped one, and its name. A shipped recipe reads `data/` of the current folder, where
    `headway data` puts its text. Raises UserError."""
    from headway.recipe.reading import load_recipe

    path, shipped = Path(argument), shipped_recipes()
    if path.exists():
        if path.is_dir() and argument in shipped:
            raise UserError(
                f"{argument}: is a folder here, which hides the recipe of that name; rename it, or go on with the run "
                f"in it: --resume {argument}"
            )
        return load_recipe(path, overrides), path.stem
    if argument in shipped:
        return load_recipe(shipped[argument], overrides, as_in=Path("recipes")), argument
    near = difflib.get_close_matches(path.stem, shipped, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "`headway train --list` shows them all"
    raise UserError(f"{argument}: can't be read: no such file, and no recipe of that name; {hint}")


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits arguments into names and changes `key.path=value`."""
    return [one for one in arguments if "=" not in one], [one for one in arguments if "=" in one]


def check_given(recipe: Recipe) -> None:
    """Raises UserError for a missing file that `headway data` makes, and says how."""
    files = [file for corpus in (*recipe.data.train, *recipe.data.valid) for file in (*corpus.source, *corpus.target)]
    files += [file for synthesis in recipe.data.syntheses for file in synthesis.given]
    for file in files:
        command = command_that_makes(file)
        if command and not file.exists():
            raise UserError(f"{file}: no such file; run `{command}` to create it")


def command_that_makes(file: Path) -> str | None:
    """The `headway data` that puts a recipe's file where the recipe looks for it, or None."""
    from headway.corpora import dates, multi30k, romanization, tatoeba

    corpora = {
        "multi30k": multi30k.SHA256,
        "tatoeba-ko-en": tatoeba.FILES,
        "dates": dates.FILES,
        "romanization": romanization.FILES,
    }
    place = Path(os.path.abspath(file))  # noqa: PTH100 - unlike `resolve` it takes any name, one with a NUL as well
    for folder in place.parents:
        if place.relative_to(folder).as_posix() in corpora.get(folder.name, ()):
            usual = Path.cwd() / "data" / folder.name
            return f"headway data {folder.name}{'' if folder == usual else f' --output {shlex.quote(str(folder))}'}"
    return None


def recipe_list() -> str:
    """Name and purpose of each shipped recipe: wrapped in a terminal, a line each elsewhere. The purpose is the comment
    at the top of the file, as far as the commands in it."""
    shipped = shipped_recipes()
    wide = max(map(len, shipped)) + 2
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    rows = []
    for name, file in shipped.items():
        comments = takewhile(re.compile("# (?! )").match, file.read_text(encoding="utf-8").splitlines())
        purpose = " ".join(" ".join(line[1:] for line in comments).split())
        rows.append(textwrap.fill(f"{name:<{wide}}{purpose}", max(width, 2 * wide), subsequent_indent=" " * wide))
    return "\n".join(rows)
