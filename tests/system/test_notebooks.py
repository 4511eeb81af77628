"""The notebooks run from top to bottom in Jupyter, in the guide's environment, and show what their text says."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.conftest import ROOT

JUPYTER = ROOT / ".venv-docs" / "bin"  # `make test-system` installs it
NAMES = ["1-blocks.ipynb", "2-training.ipynb", "3-inside.ipynb"]
"""In this order: the third looks into the model of the second. The Korean ones have the same code."""


@pytest.fixture(scope="module")
def executed(tmp_path_factory) -> Path:
    """A folder with the notebooks and their outputs."""
    folder = tmp_path_factory.mktemp("notebooks")
    for name in NAMES:
        shutil.copy(ROOT / "notebooks" / name, folder)
    done = subprocess.run(
        [JUPYTER / "jupyter-execute", "--inplace", *NAMES], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def printed(notebook: Path) -> str:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert {output.get("name") for output in outputs} <= {"stdout", None}, "no warnings"
    return "".join(line for output in outputs for line in output.get("text", []))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_whole(name, executed):
    notebook = executed / name
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert printed(notebook)


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_of_jupyters_format(notebook):
    check = "import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=nbformat.NO_CONVERT))"
    done = subprocess.run([JUPYTER / "python", "-W", "error", "-c", check, notebook], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_the_model_learns_the_dates(executed):
    [right] = re.findall(r"(\d+) of 500 are exactly right", printed(executed / "2-training.ipynb"))
    assert int(right) > 475


def test_an_edit_costs_probability(executed):
    scores = dict(re.findall(r"^(.+?) +(-\d+\.\d\d)  ", printed(executed / "3-inside.ipynb"), flags=re.MULTILINE))
    assert float(scores["no positions"]) < float(scores["as it is"]) - 1


def test_a_record_shows_itself(executed):
    [page] = [
        output["data"]["text/html"]
        for cell in json.loads((executed / "3-inside.ipynb").read_text("utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert "<iframe" in "".join(page)
