"""Shipped recipes are found by name, look for their text in the current folder, and say what makes it."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headway.cli import app
from headway.cli.recipes import command_that_makes, read_recipe, recipe_list, shipped_recipes
from headway.corpora import tatoeba
from headway.errors import UserError

RECIPES = Path(__file__).parents[2] / "recipes"
NAMES = sorted(path.stem for path in RECIPES.glob("*.yaml"))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder.resolve()


def run(command: str):
    return CliRunner().invoke(app, shlex.split(command)[1:])


def refusal(command: str) -> str:
    error = run(command).exception
    assert isinstance(error, UserError)
    assert "\n" not in str(error)
    return str(error)


def test_the_recipes_are_those_of_the_folder(here):
    assert list(shipped_recipes()) == NAMES


def test_the_list_names_each_recipe_and_what_it_is_for(here):
    lines = run("headway train --list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    for name, line in zip(NAMES, lines, strict=True):
        purpose = line.removeprefix(name).strip()
        comments = (RECIPES / f"{name}.yaml").read_text(encoding="utf-8").replace("\n# ", " ")
        assert purpose.endswith(".")
        assert comments.startswith(f"# {purpose}")


def test_the_list_is_wrapped_in_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert max(map(len, recipe_list().splitlines())) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_a_named_recipe_looks_into_data_of_the_current_folder(name, here):
    """Whatever a folder `recipes` in it may be."""
    recipe, found = read_recipe(name, ["training.seed=5"])
    assert found == name
    assert recipe.training.seed == 5
    (here / "recipes").symlink_to(here.parent)
    for one in (recipe, read_recipe(name, [])[0]):
        for corpus in (*one.data.train, *one.data.valid):
            for file in (*corpus.source, *corpus.target):
                assert file.is_relative_to(here / "data")
                assert ".." not in file.parts


def test_a_path_that_exists_is_a_path(here):
    text = (RECIPES / "multi30k-de-en.yaml").read_text(encoding="utf-8").replace("preset: small", "preset: tiny")
    (here / "multi30k-de-en").write_text(text, encoding="utf-8")
    assert read_recipe("multi30k-de-en", [])[0].model.preset == "tiny"
    (here / "multi30k-de-en").unlink()
    assert read_recipe("multi30k-de-en", [])[0].model.preset == "small"
    (here / "multi30k-de-en").mkdir()
    assert refusal("headway train multi30k-de-en").startswith(
        "multi30k-de-en: is a folder here, which hides the recipe"
    )


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("multi30k-deen", "did you mean multi30k-de-en?"),
        ("recipes/tatoeba-ko-en.yaml", "did you mean tatoeba-ko-en?"),
        ("wmt14-base", "did you mean wmt14-en-de-base?"),
        ("qqq", "`headway train --list` shows them all"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(given, hint, here):
    assert (
        refusal(f"headway train {given}") == f"{given}: can't be read: no such file, and no recipe of that name; {hint}"
    )


def test_a_missing_file_tells_what_makes_it(here, tmp_path):
    wanted = f"{here}/data/multi30k/raw/train.de: no such file; run `headway data multi30k` to create it"
    assert refusal("headway train multi30k-de-en") == wanted
    assert not (here / "runs").exists()
    mine = tmp_path / "recipes" / "mine.yaml"
    mine.parent.mkdir()
    mine.write_text((RECIPES / "multi30k-textbook.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    elsewhere = tmp_path.resolve() / "data" / "multi30k"
    assert f"run `headway data multi30k --output {elsewhere}` to create it" in refusal(f"headway train {mine}")


@pytest.mark.parametrize("name", NAMES)
def test_no_recipe_needs_another(name, here):
    """What its stages are made with is theirs."""
    recipe = read_recipe(name, [])[0]
    text = (RECIPES / f"{name}.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"headway train (\S+)", text)) == {name}
    for part in [recipe.of_stage(stage, here / "run") for stage in recipe.stages] or [recipe]:
        made_with = [part.training.init_from, *(synthesis.writer for synthesis in part.data.syntheses)]
        assert all(one is None or one.is_relative_to(here / "run") for one in made_with)


@pytest.mark.parametrize("folder", ["data/tatoeba-ko-en", "other/tatoeba-ko-en"])
def test_the_command_makes_the_file(folder, here, tmp_path):
    rows = [f"Sentence {number}.\t문장 {number}.\tCC-BY" for number in range(200)]
    (tmp_path / tatoeba.FILE).write_text("\n".join(rows) + "\n", encoding="utf-8")
    for name in tatoeba.FILES:
        file = here / folder / name
        command = command_that_makes(file)
        assert command is not None
        assert not file.exists()
        assert run(f"{command} --from {tmp_path}").exit_code == 0
        assert file.read_text(encoding="utf-8")
        shutil.rmtree(here / folder)


@pytest.mark.parametrize("name", ["dates", "romanization"])
def test_a_generated_corpus_has_the_files_that_are_promised(name, here):
    """Those of its recipe among them."""
    [recipe] = [recipe for recipe in NAMES if recipe.startswith(name)]
    wanted = refusal(f"headway train {recipe}")
    assert wanted.endswith(f"no such file; run `headway data {name}` to create it")
    assert run(f"headway data {name}").exit_code == 0
    corpora = [corpus for part in ("train", "valid") for corpus in getattr(read_recipe(recipe, [])[0].data, part)]
    for file in [file for corpus in corpora for file in (*corpus.source, *corpus.target)]:
        assert file.read_text(encoding="utf-8")
        assert command_that_makes(file) == f"headway data {name}"
    assert refusal(f"headway data {name} --from {here}") == f"{name} is generated; leave --from out"


def test_what_no_command_makes_is_not_promised(here):
    for name in ("data/wmt14/train.en", "data/multi30k/raw/train.xx", "data/tatoeba-ko-en/train.de", "train.ko"):
        assert command_that_makes(here / name) is None
