"""The page's translator gives what the translator in Python gives, and says what it can't take."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.insight.what_if import SwapWords, edited_text
from headway.page.export import MODEL_FILE, export_web
from headway.storage import Aligner
from headway.translator import Translator
from tests.page.scripts import page
from tests.page.test_inspecting import with_tags
from tests.translator.test_translator import translator

TRAINING = {"moments": [{"step": 0}, {"step": 7}]}


@pytest.fixture(scope="module")
def door():
    return translator(max_length=20)


@pytest.fixture(scope="module")
def browser(door, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "web"
    export_web(door.stored, folder, "float32", training=TRAINING)
    with page(Path(__file__).with_name("translating.js"), tmp_path_factory.mktemp("page")) as process:
        process.ask({"file": str(folder / MODEL_FILE)})
        yield process


@pytest.mark.parametrize("text", ["the cat", "", " \u3000", "x " * 300, "x" * 2000])
def test_a_translation_is_that_of_python(browser, door, text):
    """Its score too; there is none where the model wrote nothing."""
    [wanted] = door.translate([text], beam_size=2)
    found = browser.ask({"task": "translate", "text": text, "options": {"beamSize": 2}})
    assert (found["text"], found["stopped"]) == (wanted.text, wanted.stopped)
    assert found["score"] == (wanted.score and pytest.approx(wanted.score, abs=1e-3))


@pytest.mark.parametrize("arrays", ["all", "layers", "attention", "none"])
def test_a_record_has_the_training_beside_its_layers(browser, arrays):
    found = browser.ask({"task": "inspect", "text": "the cat", "options": {"arrays": arrays}})
    assert found["training"] == (TRAINING if arrays in ("all", "layers") else None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is not text (null)"),
        (3, "is not text (number)"),
        (["the cat"], "is not text (object)"),
        ("\ud800", "holds half of a surrogate pair"),
    ],
)
def test_what_is_no_text_is_refused(browser, text, says):
    for task in ("translate", "inspect"):
        assert browser.ask({"task": task, "text": text, "options": {}}) == {"problem": f"the text {says}"}
    if text is not None:
        asked = {"task": "inspect", "text": "the cat", "options": {"translation": text}}
        assert browser.ask(asked) == {"problem": f"the translation {says}"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("maxLength", 0), ("maxLength", 2.5), ("nBest", 0), ("noRepeatNgram", -1), ("lengthPenalty", -1)],
)
def test_impossible_options_are_refused_as_in_python(browser, name, value):
    """Else a search could have no result, or no end."""
    found = browser.ask({"task": "translate", "text": "the cat", "options": {name: value}})
    assert found["problem"].startswith(f"{name}={value}: must be a ")


@pytest.mark.parametrize("text", ["the cat a", "the\x85cat a", "the\x1fcat a", "the\ufeffcat a"])
def test_words_are_those_of_python(browser, text):
    """A browser has another white space."""
    swap = SwapWords(first=0, second=1)
    options = {"edits": [swap.model_dump()], "arrays": "none"}
    found = browser.ask({"task": "inspect", "text": text, "options": options})
    assert found["source"]["text"] == edited_text(text, [swap])
    assert browser.ask({"words": text}) == re.findall(r"\S+", text)


def test_nothing_is_aligned_with_a_tag(door, tmp_path):
    tagged, text = with_tags(door), ">>ko<< a dog ran after"
    looked_at = tagged.inspect(text).attention["cross"][..., :-1].argmax(-1)  # (layers, heads, target)
    layer, head = np.argwhere((looked_at == 0).any(-1))[0].tolist()
    stored = replace(tagged.stored, aligner=Aligner(layer, head))
    export_web(stored, tmp_path / "web", "float32")
    with page(Path(__file__).with_name("translating.js"), tmp_path / "page") as process:
        process.ask({"file": str(tmp_path / "web" / MODEL_FILE)})
        found = process.ask({"task": "inspect", "text": text, "options": {"arrays": "none"}})
    assert 0 not in found["alignment"] == Translator(stored, device="cpu").inspect(text).alignment


def test_a_worker_that_opens_no_model_is_ended(browser):
    assert browser.ask({"refused": "damaged"}) == {"message": "damaged", "ended": 1}
