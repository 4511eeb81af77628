"""The exercises: every solution is right, every wrong answer gets the hint that belongs to it, in both languages."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.exercises.wrong_answers import WRONG_ANSWERS

EXERCISES = Path(__file__).parents[2] / "exercises"
NOT_WRITTEN = {"en": "Not written yet.", "ko": "아직 쓰지 않았습니다."}
FILES = {
    "attend": "attend",
    "attend with a mask": "attend",
    "padding_mask": "masks",
    "causal_mask": "masks",
    "target_mask": "masks",
    "sinusoidal_table": "positions",
    "decoder_layer": "decoder_layer",
    "greedy": "greedy",
}


@pytest.fixture(scope="module")
def checking() -> ModuleType:
    sys.path.insert(0, str(EXERCISES))
    try:
        return importlib.import_module("checking")
    finally:
        sys.path.remove(str(EXERCISES))


def solution(name: str) -> str:
    return solution_of(FILES[name])


def solution_of(file: str) -> str:
    return (EXERCISES / "solutions" / f"{file}.py").read_text(encoding="utf-8")


def names_of(file: str) -> list[str]:
    """Functions of the exercises in a file."""
    return [name for name, its in FILES.items() if its == file]


def function(name: str, code: str):
    """That of an exercise, from the code of its file."""
    names: dict = {}
    exec(code, names)
    return names[name.split(maxsplit=1)[0]]


def test_every_check_has_a_solution(checking) -> None:
    assert FILES.keys() == checking.EXERCISES.keys()


@pytest.mark.parametrize("name", FILES)
def test_a_solution_is_right(checking, name, capsys) -> None:
    for language, verdict in checking.RIGHT.items():
        checking.check(name, function(name, solution(name)), language)
        assert capsys.readouterr().out == f"{name}: {verdict}\n"


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_written_is_called_so(checking, name) -> None:
    stub = function(name, (EXERCISES / f"{FILES[name]}.py").read_text(encoding="utf-8"))
    assert checking.hint(name, stub) == f"{name}: Not written yet."


@pytest.mark.parametrize(
    ("name", "words", "changes"), WRONG_ANSWERS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_wrong_answer_gets_its_hint(checking, name, words, changes) -> None:
    code = solution(name)
    for before, after in changes:
        assert before in code, before
        code = code.replace(before, after)
    answer = function(name, code)
    assert words in checking.hint(name, answer)
    assert re.search("[가-힣]", checking.hint(name, answer, "ko"))


@pytest.mark.parametrize("file", ["README.md", "README.ko.md"])
def test_the_hint_in_the_manual_is_given(checking, file) -> None:
    answer = function("attend", solution("attend").replace(" / math.sqrt(query.size(-1))", ""))
    hints = [checking.hint("attend", answer, language) for language in ("en", "ko")]
    assert "\n".join(hints) in (EXERCISES / file).read_text(encoding="utf-8")


def test_every_hint_has_a_wrong_answer(checking) -> None:
    """No hint is there for a mistake that nobody makes."""
    for name, exercise in checking.EXERCISES.items():
        given = [words for of, words, _ in WRONG_ANSWERS if of == name]
        for mistake in exercise.mistakes:
            assert any(words in mistake.hint["en"] for words in given), mistake.hint["en"]


def test_two_mistakes_at_once_are_told_by_the_numbers(checking) -> None:
    code = solution("attend").replace(" / math.sqrt(query.size(-1))", "").replace("dim=-1", "dim=-2")
    assert re.search(
        r"attend: \d+ of \d+ numbers are wrong; at \(0, 0, 0\)", checking.hint("attend", function("attend", code))
    )


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_notebooks_check_what_is_written(checking, language, capsys) -> None:
    """As they are, and with the solution after each exercise."""
    name = "exercises.ipynb" if language == "en" else "exercises.ko.ipynb"
    document = json.loads((EXERCISES / name).read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    exec("\n".join(cells), {})
    verdicts = capsys.readouterr().out.splitlines()
    assert verdicts == [f"{of}: {NOT_WRITTEN[language]}" for of in checking.EXERCISES]
    for file in FILES.values():
        cells = [solution_of(file) if f"def {names_of(file)[0]}(" in cell else cell for cell in cells]
    exec("\n".join(cells), {})
    verdicts = capsys.readouterr().out.splitlines()
    assert verdicts == [f"{of}: {checking.RIGHT[language]}" for of in checking.EXERCISES]


def test_both_notebooks_have_the_same_cells() -> None:
    english, korean = (
        json.loads((EXERCISES / name).read_text(encoding="utf-8")) for name in ("exercises.ipynb", "exercises.ko.ipynb")
    )
    for one, other in zip(english["cells"], korean["cells"], strict=True):
        assert (one["id"], one["cell_type"]) == (other["id"], other["cell_type"])
        if one["cell_type"] == "code":
            assert one["outputs"] == other["outputs"] == []
            assert [line.replace('"en"', '"ko"') for line in one["source"]] == other["source"]
        else:
            assert re.search("[가-힣]", "".join(other["source"]))
            assert not re.search("[가-힣]", "".join(one["source"]))


def test_a_teacher_can_hand_out_the_tests(tmp_path) -> None:
    """In a folder of their own they fail with both hints, and pass with the solutions."""
    shutil.copytree(EXERCISES, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "8 failed" in done.stdout, done.stdout
    assert "greedy: Not written yet.\ngreedy: 아직 쓰지 않았습니다." in done.stdout
    for path in (EXERCISES / "solutions").glob("*.py"):
        shutil.copy(path, tmp_path)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "8 passed" in done.stdout, done.stdout


def test_the_texts_of_exercises_give_the_same_signatures_as_solutions(checking) -> None:
    for name, file in FILES.items():
        stub = function(name, (EXERCISES / f"{file}.py").read_text(encoding="utf-8"))
        assert inspect.signature(stub) == inspect.signature(function(name, solution(name)))
