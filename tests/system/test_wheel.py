"""What `pip install` of the wheel gives, away from the repository: everything, types and recipes included."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.system.conftest import ROOT, TINY

RECIPES = {path.stem: path for path in (ROOT / "recipes").glob("*.yaml")}


def run(*command: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    [file] = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def headway(wheel, tmp_path_factory):
    """The installed program; its own packages come before those of the environment, which has headway as well."""
    site = tmp_path_factory.mktemp("site")
    done = run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel)
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": str(site)}
    where = run(sys.executable, "-c", "import headway; print(headway.__file__)", cwd=site, env=environment)
    assert Path(where.stdout).is_relative_to(site)
    return lambda *arguments, cwd: run(sys.executable, "-m", "headway", *arguments, cwd=cwd, env=environment)


def test_the_wheel_has_all_of_the_package_and_the_recipes(wheel):
    package = ROOT / "src" / "headway"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {f"headway/{path.relative_to(package).as_posix()}": path for path in files}
    wanted |= {f"headway/recipes/{name}.yaml": path for name, path in RECIPES.items()}
    assert "headway/py.typed" in wanted
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
        assert found == wanted.keys()
        for name, path in wanted.items():
            assert archive.read(name) == path.read_bytes(), name


def test_recipes_go_by_their_names(headway, tmp_path):
    listed = headway("train", "--list", cwd=tmp_path)
    assert {line.split()[0] for line in listed.stdout.splitlines()} == RECIPES.keys()
    missing = headway("train", "multi30k-de-en", cwd=tmp_path)
    assert missing.returncode == 2
    assert "data/multi30k/raw/train.de: no such file; run `headway data multi30k` to create it" in missing.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_and_its_recipes_make_a_model(headway, tmp_path):
    rows = [f"Sentence {number}.\t문장 {number}.\tCC-BY" for number in range(300)]
    (tmp_path / "kor.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    short = [*TINY, "tokenizer.vocab_size=300", "training.max_steps=3", "training.max_epochs=null"]
    for command in (
        ("data", "tatoeba-ko-en", "--from", "."),
        ("train", "tatoeba-en-ko", *short),
        ("show", "runs/tatoeba-en-ko"),
    ):
        done = headway(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "en -> ko" in done.stdout
