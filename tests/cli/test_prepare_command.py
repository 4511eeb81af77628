"""What `headway prepare` refuses, in a line each."""

import signal

import pytest
import yaml
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    for name in ("a.src", "a.tgt"):
        (tmp_path / name).write_text("ant bee\ncat\n")
    files = {"source": "a.src", "target": "a.tgt"}
    data = {"train": files, "valid": files, "source_language": "xx", "target_language": "yy"}
    document = {"data": data, "tokenizer": {"kind": "word"}, "training": {"max_steps": 1}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.chdir(tmp_path)
    return "recipe.yaml"


def run(*arguments):
    return CliRunner().invoke(app, ["prepare", *map(str, arguments)])


def refusal(*arguments):
    done = run(*arguments)
    assert isinstance(done.exception, UserError), done
    return str(done.exception)


def test_mistakes_are_one_line(recipe, tmp_path):
    to_out = ("--output", "out")
    assert refusal(recipe) == "--output is missing: the folder to make"
    assert refusal("training.seed=1", *to_out) == "give one RECIPE; changes are key.path=value"
    assert f"{tmp_path}/no*.src: no file has a name of this pattern" in refusal(
        recipe, "data.train.source=no*.src", *to_out
    )
    (tmp_path / "file").write_text("")
    assert "file: is a file" in refusal(recipe, "--output", "file")
    assert "'xx' isn't a known language code" in refusal(recipe, "data.filters.script=true", *to_out)
    assert "did you mean data.filters.max_ratio?" in refusal(recipe, "data.filters.max_ration=3", *to_out)
    assert "words: must be the fewest and the most" in refusal(recipe, "data.filters.words=[5, 1]", *to_out)
    assert "a.src: no such file" in refusal(
        recipe, "data.held_out.source=b/a.src", "data.held_out.target=a.tgt", *to_out
    )


def test_more_processes_than_cores_are_told_of(recipe, monkeypatch):
    monkeypatch.setattr("headway.cli.prepare.usable_cores", lambda: 1)
    done = run(recipe, "--output", "one", "--processes", "1")
    assert "--processes" not in done.stderr
    done = run(recipe, "--output", "two", "--processes", "2")
    assert done.exit_code == 0, done
    assert "notice: --processes 2 on 1 cores: the others only take memory" in done.stderr


@pytest.mark.parametrize(
    ("installed", "started_as", "typed"),
    [
        ("/bin/headway", "/site/headway/__main__.py", "headway"),
        (None, "/site/headway/__main__.py", "python -m headway"),
        (None, "venv/bin/headway", "venv/bin/headway"),
    ],
)
def test_the_next_command_begins_as_this_one_was_started(installed, started_as, typed, recipe, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: installed)
    monkeypatch.setattr("sys.argv", [started_as])
    done = run(recipe, "tokenizer.vocab_size=6", "--output", "mine")
    assert f"try: {typed} train {recipe} tokenizer.vocab_size=6 --data mine" in done.stderr


def test_the_folder_may_be_the_recipes_own(recipe, tmp_path):
    for again in (False, True):
        done = run(recipe, "data.prepared=mine")
        assert done.exit_code == 0, done
        assert ("is prepared already" in done.stderr) == again
        assert f"train recipe.yaml --data {tmp_path / 'mine'}" in done.stderr
    assert (tmp_path / "mine" / "prepared.json").exists()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
