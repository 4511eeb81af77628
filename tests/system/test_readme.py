"""What README.md shows is run, in both languages. Its two `make` commands are run by CI itself."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.load import ServerProcess

from tests.system.conftest import ROOT, reversed_pairs

READMES = ["README.md", "README.ko.md"]


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


def shell(commands: str, readme: str, folder: Path) -> str:
    """What commands of a README print, in the folder with somebody's own files: but for 20 steps of training in place
    of 20 minutes, and the model that comes of it in place of the demo's and the recipe's."""
    for model in ("headway-demo/run", "runs/multi30k-de-en"):
        commands = commands.replace(model, "runs/mine")
    commands = (
        commands.replace("source .venv/bin/activate\n", "")
        .replace(".venv/bin/headway", "headway")
        .replace("--minutes 20", "training.max_steps=20 training.validate_every=10")
        .replace("runs/mine", f"runs/{readme}")
        .replace("averaged", f"averaged-{readme}")
        .replace("exported", f"exported-{readme}")
        .replace("imported", f"imported-{readme}")
    )
    script = f"set -e\nexport PATH='{Path(sys.executable).parent}':$PATH HEADWAY_CACHE='{folder}/cache'\n{commands}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{commands}\n{done.stderr}"
    return done.stdout


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


@pytest.mark.parametrize("readme", READMES)
def test_commands_and_python_run_as_they_stand(readme, folder):
    runnable = [block for block in blocks(readme, "") if is_runnable(block)]
    runnable.sort(key=lambda block: "headway train" not in block)
    (folder / "page.html").unlink(missing_ok=True)
    assert shell("".join(runnable), readme, folder).count("\n") == 1  # a translation
    assert (folder / "page.html").stat().st_size > 100_000
    for block in blocks(readme, "python"):
        python = block.replace("runs/mine", f"runs/{readme}")
        done = subprocess.run([sys.executable, "-c", python], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.parametrize("readme", READMES)
def test_commands_inside_sentences_run(readme, folder):
    """But for those that fetch a corpus, or train on it."""
    text = re.sub(r"```.*?```", "", (ROOT / readme).read_text(encoding="utf-8"), flags=re.DOTALL)
    commands = re.findall(r"`(headway [^`]+)`", text.replace("\n", " "))
    assert any("--resume" in one for one in commands)
    if not (folder / f"runs/{readme}").exists():
        shell(next(block for block in blocks(readme, "") if "headway train" in block), readme, folder)
    for command in commands:
        if not re.match(r"headway (data|train) (multi30k|tatoeba|wmt|recipes/)", command):
            shell(command, readme, folder)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl isn't installed")
@pytest.mark.parametrize("readme", READMES)
def test_the_server_answers_as_it_is_asked(readme, folder):
    [block] = [block for block in blocks(readme, "") if is_of_a_server(block)]
    [serve] = re.findall(r"^headway serve (.+)$", block, flags=re.MULTILINE)
    [ask] = re.findall(r"^curl .+$", block, flags=re.MULTILINE)
    if not (folder / f"runs/{readme}").exists():
        shell(next(block for block in blocks(readme, "") if "headway train" in block), readme, folder)
    with ServerProcess(*(folder / one.replace("runs/mine", f"runs/{readme}") for one in serve.split())) as server:
        answer = shell(ask.replace(":5000/", f":{server.port}/"), readme, folder)
    assert isinstance(json.loads(answer)["translatedText"], str)


@pytest.mark.parametrize("readme", READMES)
def test_recipes_that_are_named_exist(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for recipe in re.findall(r"recipes/(\S+?\.yaml)", text):
        assert (ROOT / "recipes" / recipe).exists() or recipe in ("NAME.yaml", "이름.yaml")


def test_both_languages_show_the_same_code():
    english, korean = ([re.sub(r"#.*", "", block) for block in blocks(readme, r"\w*")] for readme in READMES)
    assert english == korean
