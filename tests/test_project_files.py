"""The files around the code: what they name exists, and what they show runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import headway

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_exists(workflow: Path) -> None:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for job in jobs.values():
        assert set([job["needs"]] if "needs" in job else []) <= jobs.keys()
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for target in re.findall(r"^make ([\w-]+)", step.get("run", "")):
                assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
            for script in re.findall(r"bash (\S+)", step.get("run", "")):
                assert (ROOT / script).exists(), script


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_has_a_name_and_fields_of_their_own(form: Path) -> None:
    read = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert read["name"]
    assert read["description"]
    names = [field["id"] for field in read["body"]]
    assert len(names) == len(set(names)) > 0


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == headway.__version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_example_of_another_attention_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "torch.Size([2, 5, 100])\n"
