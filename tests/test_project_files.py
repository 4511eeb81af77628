"""The files around the code: what they name exists, and what they show runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import headway

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
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
    newest = re.findall(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[
        0
    ]
    assert newest == (headway.__version__, str(citation["date-released"]))
    for manifest in (ROOT / "deploy").rglob("*.yaml"):
        for image in re.findall(r"headway:(\d\S*)", manifest.read_text(encoding="utf-8")):
            assert image == headway.__version__, manifest
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def requirements(extras: dict[str, list[str]]) -> list[Requirement]:
    return [Requirement(line) for lines in extras.values() for line in lines]


def test_the_lock_pins_all_that_is_asked_for() -> None:
    """One version of each, within the range of pyproject.toml: pip and uv read the same file."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(re.fullmatch(r"([\w.-]+)==(\S+)(?: ;.*)?", line).groups() for line in lines if line[0] != "#")
    locked = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pinned.items()}
    assert len(locked) == len(pinned) == sum(line[0] != "#" for line in lines)
    project = PROJECT["project"]
    wanted = requirements(
        {"": project["dependencies"], **project["optional-dependencies"], **PROJECT["dependency-groups"]}
    )
    for one in wanted:
        if one.name != "headway":
            assert locked[re.sub(r"[-_.]+", "-", one.name).lower()] in one.specifier, one
    assert locked["pip"] in Requirement("pip>=25.1").specifier, "older ones know no dependency groups"


def test_extras_and_groups_name_extras_that_exist() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for one in requirements({**extras, **PROJECT["dependency-groups"]}):
        assert one.name != "headway" or one.extras <= extras.keys(), one
    for file in ("Makefile", *(path.relative_to(ROOT) for path in WORKFLOWS)):
        for group in re.findall(r"--group (\w+)", (ROOT / file).read_text(encoding="utf-8")):
            assert group in PROJECT["dependency-groups"], file


def test_the_example_of_another_attention_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "torch.Size([2, 5, 100])\n"
