"""The notebooks as files: without outputs, and the same code in both languages. tests/system/test_notebooks.py runs
them."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KOREAN = [path for path in NOTEBOOKS if path.name.endswith(".ko.ipynb")]


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def sources(path: Path, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == kind]


def test_each_notebook_is_there_in_both_languages():
    assert len(KOREAN) == 3
    assert sorted([*KOREAN, *(path.with_suffix("").with_suffix(".ipynb") for path in KOREAN)]) == NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_committed_as_it_was_written(notebook):
    document = read(notebook)
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["metadata"].keys() == {"kernelspec", "language_info"}, "nothing of the machine it ran on"
    ids = [cell["id"] for cell in document["cells"]]
    assert len(ids) == len(set(ids)) > 10
    for cell in document["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            assert len("".join(cell["source"]).splitlines()) <= 25, "a cell is read in a minute"


@pytest.mark.parametrize("korean", KOREAN, ids=lambda path: path.name)
def test_both_languages_have_the_same_cells(korean):
    english = korean.with_suffix("").with_suffix(".ipynb")
    assert sources(korean, "code") == sources(english, "code")
    kinds = [[(cell["id"], cell["cell_type"]) for cell in read(path)["cells"]] for path in (korean, english)]
    assert kinds[0] == kinds[1]
    for text in sources(korean, "markdown"):
        assert re.search("[가-힣]", text), text
    for text in sources(english, "markdown"):
        assert not re.search("습니다|세요", text), text


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_installs_headway_first(notebook):
    first, *rest = sources(notebook, "code")
    assert "%pip install" in first
    assert 'find_spec("headway") is None' in first
    assert not any("%pip" in cell for cell in rest)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_links_lead_to_notebooks_of_the_same_language(notebook):
    links = [link for text in sources(notebook, "markdown") for link in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    for link in links:
        assert (notebook.parent / link).exists(), link
        assert link.endswith(".ko.ipynb") == notebook.name.endswith(".ko.ipynb")
