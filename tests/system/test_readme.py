"""What README.md shows is run, in both languages. Its two `make` commands are run by CI itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("readme", READMES)
def test_commands_and_python_run_as_they_stand(readme, folder):
    """But for 20 steps of training in place of 20 minutes, and the model that comes of it in place of the demo's."""
    runnable = [
        block for block in blocks(readme, "") if block.startswith(("source .venv", "headway", ".venv/bin/headway"))
    ]
    runnable.sort(key=lambda block: "headway train" not in block)
    commands = "".join(runnable).replace("headway-demo/run", "runs/mine").replace(".venv/bin/headway", "headway")
    commands = (
        commands.replace("training.max_minutes=20", "training.max_steps=20 training.validate_every=10")
        .replace("runs/mine", f"runs/{readme}")
        .replace("averaged", f"averaged-{readme}")
        .replace("exported", f"exported-{readme}")
        .replace("imported", f"imported-{readme}")
    )
    binaries = Path(sys.executable).parent
    script = f"set -e\nexport PATH='{binaries}':$PATH HEADWAY_CACHE='{folder}/cache'\n" + commands.replace(
        "source .venv/bin/activate\n", ""
    )
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "BLEU" in done.stdout
    for block in blocks(readme, "python"):
        python = block.replace("runs/mine", f"runs/{readme}")
        done = subprocess.run([sys.executable, "-c", python], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.parametrize("readme", READMES)
def test_files_that_are_named_exist(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target
    for recipe in re.findall(r"recipes/(\S+?\.yaml)", text):
        assert (ROOT / "recipes" / recipe).exists() or recipe in ("NAME.yaml", "이름.yaml")


def test_both_languages_show_the_same_code():
    english, korean = ([re.sub(r"#.*", "", block) for block in blocks(readme, r"\w*")] for readme in READMES)
    assert english == korean
