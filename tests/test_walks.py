"""The walks through the house that docs/architecture.md counts: a sentence, a pair of a corpus, a recipe."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import headway
from headway.data.prepare import prepare
from headway.recipe.reading import load_recipe
from headway.recipe.recipe import Recipe
from headway.training.step import Batches
from headway.training.synthetic import write_synthetic
from headway.translator import Translator
from tests.translator.test_translator import translator

SOURCE = Path(headway.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"
RECIPE = """
data: {train: {source: a.de, target: a.en}, valid: {source: a.de, target: a.en}}
training: {max_steps: 1, label_smoothing: 0.2}
"""


def files_passed(walk: Callable[[], object]) -> list[str]:
    """The files of which a function runs, each once."""
    passed: dict[str, None] = {}

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "<module>":
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(SOURCE):
                passed[file.relative_to(SOURCE).as_posix()] = None

    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return list(passed)


@pytest.fixture
def recipe(tmp_path) -> Path:
    (tmp_path / "a.de").write_text("ein Hund\neine Katze\n" * 30)
    (tmp_path / "a.en").write_text("a dog\na cat\n" * 30)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    return tmp_path / "recipe.yaml"


def counted() -> list[int]:
    """The numbers of files in the page: with CTranslate2, with torch, of a pair, of a recipe."""
    found = re.search(
        r"A sentence passes (\d+) files with CTranslate2 and (\d+) with torch.* a pair of a corpus (\d+).* "
        r"a recipe (\d+)",
        " ".join(PAGE.read_text(encoding="utf-8").split()),
    )
    assert found
    return [int(number) for number in found.groups()]


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_a_sentence(engine):
    door = Translator(translator().stored, engine=engine, device="cpu", precision="fp32")
    door.translate(["the cat"])
    passed = files_passed(lambda: door.translate(["the dog sat"]))
    assert len(passed) <= counted()[engine == "torch"], passed


def test_a_pair_of_a_corpus(recipe, tmp_path):
    read: Recipe = load_recipe(recipe)

    def walk() -> None:
        data = prepare(read.preparation(64), tmp_path / "data", print, write_synthetic)
        batches = Batches(data.train, torch.device("cpu"), 256, 256)
        batches.tensors(next(batches.plan.steps(0))[0])

    passed = files_passed(walk)
    assert len(passed) <= counted()[2], passed


def test_a_recipe(recipe):
    passed = files_passed(lambda: load_recipe(recipe))
    assert len(passed) <= counted()[3], passed
