"""Docstrings of the code say in their first words what a thing is or does; `make lint` runs this."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headway"
RIDDLES = re.compile(r"(What|Of|As|Those|With|Where|That|How|Whose|Which)\b")
"""First words that leave open what is described."""
PERSONS = re.compile(r"\b(ours|theirs|whoever|whose reader|nobody|somebody|anybody)\b", re.IGNORECASE)
FILES = sorted(file.relative_to(SOURCE).as_posix() for kind in ("*.py", "*.js") for file in SOURCE.rglob(kind))


def docstrings(text: str) -> list[tuple[int, str]]:
    """Line and text of each string that stands alone: of modules, classes, functions and attributes."""
    strings = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr))
    return [
        (one.lineno, one.value.value)
        for one in strings
        if isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    ]


def found(name: str) -> list[str]:
    """The places of a file that break the rule."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    riddles = [] if name.endswith(".js") else docstrings(text)
    places = [f"{name}:{line}: {words[:60]}" for line, words in riddles if RIDDLES.match(words)]
    persons = ((number, line) for number, line in enumerate(text.splitlines(), start=1) if PERSONS.search(line))
    return places + [f"{name}:{number}: {line.strip()[:90]}" for number, line in persons]


@pytest.mark.parametrize("name", FILES)
def test_prose_of_the_code(name):
    assert found(name) == []


def test_the_rule_finds_what_it_forbids(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    (tmp_path / "a.py").write_text('"""What a run is."""\n\nX = 1\n"""Of a run."""\nY = "whoever runs"\n')
    assert [place.split(":")[1] for place in found("a.py")] == ["1", "4", "5"]
    (tmp_path / "b.py").write_text('"""The run. What it is follows."""\n')
    assert found("b.py") == []
