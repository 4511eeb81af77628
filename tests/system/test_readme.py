"""What README.md shows is run; README.ko.md shows the same. Its two `make` commands are run by CI itself."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.load import ServerProcess

from tests.system.conftest import ROOT, reversed_pairs

README = "README.md"
READMES = [README, "README.ko.md"]
SMALL = "model.preset=tiny decoding.max_length=8"
"""A model of few steps would write each translation up to the longest length."""


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / readme).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Somebody's own files, with the names of the README."""
    folder = tmp_path_factory.mktemp("readme")
    for split, count, seed in (("train", 300, 1), ("valid", 20, 2), ("test", 20, 3)):
        pairs = reversed_pairs(count, seed)
        (folder / f"{split}.de").write_text("".join(f"{source}\n" for source, _ in pairs))
        (folder / f"{split}.en").write_text("".join(f"{target}\n" for _, target in pairs))
    return folder


def shell(commands: str, folder: Path) -> str:
    """What commands of the README print, in the folder with somebody's own files: but for 6 steps of a tiny model in
    place of 20 minutes, and the model that comes of it in place of the demo's and the recipe's."""
    for model in ("headway-demo/run", "runs/multi30k-de-en"):
        commands = commands.replace(model, "runs/mine")
    commands = (
        commands.replace("source .venv/bin/activate\n", "")
        .replace(".venv/bin/headway", "headway")
        .replace("--minutes 20", f"training.max_steps=6 training.validate_every=3 {SMALL}")
    )
    script = f"set -e\nexport PATH='{Path(sys.executable).parent}':$PATH HEADWAY_CACHE='{folder}/cache'\n{commands}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{commands}\n{done.stderr}"
    return done.stdout


def train(folder: Path) -> None:
    """The README's training, unless its run is there."""
    if not (folder / "runs/mine").exists():
        shell(next(block for block in blocks(README, "") if "headway train" in block), folder)


def is_runnable(block: str) -> bool:
    return block.startswith(("source .venv", "headway")) and not is_of_a_server(block)


def is_of_a_server(block: str) -> bool:
    return "headway serve" in block


@pytest.mark.parametrize("readme", READMES)
def test_each_command_is_run_by_a_test(readme):
    """Or by CI, or it needs a network."""
    elsewhere = ("make demo", "make test", "pip install")
    for block in blocks(readme, ""):
        for line in block.splitlines():
            if re.match(r"\S*\b(headway|make|pip|python|curl|docker|source|echo|cp) ", line):
                assert is_runnable(block) or is_of_a_server(block) or line.startswith(elsewhere), line


def test_commands_and_python_run_as_they_stand(folder):
    runnable = [block for block in blocks(README, "") if is_runnable(block)]
    runnable.sort(key=lambda block: "headway train" not in block)
    assert shell("".join(runnable), folder).count("\n") == 1  # a translation
    assert (folder / "page.html").stat().st_size > 100_000
    for block in blocks(README, "python"):
        done = subprocess.run([sys.executable, "-c", block], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def commands_in_sentences(readme: str) -> list[str]:
    text = re.sub(r"```.*?```", "", (ROOT / readme).read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"`(headway [^`]+)`", text.replace("\n", " "))


def test_commands_inside_sentences_run(folder):
    """But for those that fetch a corpus, or train on it."""
    commands = commands_in_sentences(README)
    assert any("--resume" in one for one in commands)
    train(folder)
    for command in commands:
        if not re.match(r"headway (data|train) (multi30k|tatoeba|wmt|recipes/)", command):
            shell(command, folder)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl isn't installed")
def test_the_server_answers_as_it_is_asked(folder):
    [block] = [block for block in blocks(README, "") if is_of_a_server(block)]
    [serve] = re.findall(r"^headway serve (.+)$", block, flags=re.MULTILINE)
    [ask] = re.findall(r"^curl .+$", block, flags=re.MULTILINE)
    train(folder)
    with ServerProcess(*(folder / one for one in serve.split())) as server:
        answer = shell(ask.replace(":5000/", f":{server.port}/"), folder)
    assert isinstance(json.loads(answer)["translatedText"], str)


@pytest.mark.parametrize("readme", READMES)
def test_recipes_that_are_named_exist(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for recipe in re.findall(r"recipes/(\S+?\.yaml)", text):
        assert (ROOT / "recipes" / recipe).exists() or recipe in ("NAME.yaml", "이름.yaml")


def test_both_languages_show_the_same_code():
    english, korean = ([re.sub(r"#.*", "", block) for block in blocks(readme, r"\w*")] for readme in READMES)
    assert english == korean
    english, korean = ({*commands_in_sentences(readme)} for readme in READMES)
    assert english == korean
