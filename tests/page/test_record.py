"""A record's JSON form, and how it shows itself in a notebook."""

import base64
import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from headway.errors import UserError
from headway.insight.what_if import PositionsOff, SwapWords
from headway.page import ShownRecord
from headway.page import document as document_module
from headway.translator import Translator
from tests.page.decoding import decoded
from tests.page.test_inspecting import random_translator


@pytest.fixture(scope="module")
def door() -> Translator:
    return random_translator()


@pytest.fixture(scope="module")
def record(door) -> ShownRecord:
    return door.inspect("a dog ran after the cat", cases=[[PositionsOff()], [SwapWords(first=1, second=5)]])


@pytest.mark.parametrize("small", [True, False])
def test_json_has_every_array_to_its_precision(record, small, monkeypatch):
    if not small:
        monkeypatch.setattr(document_module, "HALF_PRECISION_UP_TO", 0)
    entries = json.loads(record.to_json())["arrays"]
    assert set(entries) == set(record.arrays)
    assert set(record.to_dict("layers")["arrays"]) == set(record.arrays) - {"logits"}
    kinds = {"float16", "int8"} if not small else {"float16"}
    assert {entry["dtype"] for entry in entries.values() if "dtype" in entry} == {"bool", *kinds}
    for name, given in entries.items():
        wanted, found = record.arrays[name], decoded(entries, name)
        assert found.shape == wanted.shape, name
        exact = small or name.endswith(("scores", "weights"))
        bound = 1e-3 * np.abs(wanted) + 1e-7 if exact else np.abs(wanted).max(-1, keepdims=True) / 253
        entry = entries[given["same_as"]] if "same_as" in given else given
        if "sum_of" in entry:
            parts = [np.abs(decoded(entries, part)) for part in entry["sum_of"]]
            bound = sum(1e-3 * part if small else part.max(-1, keepdims=True) / 120 for part in parts) + 1e-3
        assert (np.abs(found.astype(np.float64) - wanted) <= bound).all(), name


def test_json_is_the_record(record, door):
    document = json.loads(record.to_json())
    assert document["model"]["config"] == {
        **door.model.config.to_dict(),
        "decoder_num_heads": 2,
        "decoder_d_ff": door.model.config.d_ff,
    }
    assert (document["model"]["d_head"], document["model"]["decoder_d_head"]) == (8, 16)
    for side, text in (("source", record.source), ("target", record.target)):
        assert document[side]["text"] == text.text
        assert [one["id"] for one in document[side]["tokens"]] == text.ids
        assert "".join(text.text[one["start"] : one["end"]] for one in document[side]["tokens"]) == text.text.replace(
            " ", ""
        )
    words = [one["word"] for one in document["source"]["tokens"]]
    assert words[-1] == len(["a", "dog", "ran", "after", "the", "cat"])
    assert document["alignment"] == [int(row[:-1].argmax()) for row in record.attention["cross"].mean(axis=(0, 1))]
    assert document["attention"]["cross"]["measures"][2][1]["entropy"] == pytest.approx(
        record.heads["cross"][2][1].entropy, abs=1e-5
    )
    name = document["attention"]["cross"]["names"].replace("{layer}", "1") + ".weights"
    np.testing.assert_allclose(decoded(document["arrays"], name), record.attention["cross"][1], atol=1e-3)
    assert [len(step["top"]) for step in document["steps"]] == [10] * len(record.steps)
    assert document["steps"][0]["top"][0]["piece"] == record.vocabulary[record.steps[0].ids[0]]
    step, number = document["beam"]["result"]
    candidate = document["beam"]["steps"][step][number]
    assert candidate["score"] == pytest.approx(record.beam.steps[step][number].score, rel=1e-5)
    assert [set(case) for case in document["cases"]] == [{"edits", "source", "after", "before"}] * 2
    assert all(
        set(case[one]) == {"text", "score", "words"} for case in document["cases"] for one in ("after", "before")
    )
    assert set(document["cases"][0]["after"]["words"][0]) == {"text", "probability"}
    assert document["beam"]["finished"]
    for given, one in zip(document["beam"]["finished"], record.beam.finished, strict=True):
        assert (given["step"], given["number"], given["text"]) == (one.step, one.number, one.text)
        found = record.beam.steps[one.step][one.number]
        penalty = ((5 + one.step + 1) / 6) ** record.beam.length_penalty
        assert (given["score"], given["ranking"]) == pytest.approx((found.score, found.score / penalty), rel=1e-5)
    assert (document["source"]["original"], document["target"]["given"]) == (record.source.text, False)
    assert [case["edits"] for case in document["cases"]] == [
        [{"kind": "positions_off"}],
        [{"kind": "swap_words", "first": 1, "second": 5}],
    ]
    assert document["cases"][1]["source"] == "a cat ran after the dog"
    assert set(record.to_dict("attention")["arrays"]) == {
        name for name in record.arrays if name.endswith("attention.weights")
    }
    assert record.to_dict("none")["arrays"] == {}


def test_numbers_beyond_half_precision_stay_finite_and_those_that_are_none_are_null(record):
    arrays = {**record.arrays, "decoder.layers.0.feed_forward.output": np.array([[1e6, -3.0], [0.0, 0.0]], np.float32)}
    arrays["logits"] = np.full_like(record.arrays["logits"], np.nan)
    document = json.loads(replace(record, arrays=arrays).to_json())
    np.testing.assert_allclose(
        decoded(document["arrays"], "decoder.layers.0.feed_forward.output"), [[1e6, 0.0], [0.0, 0.0]], atol=1e6 / 254
    )
    assert document["target"]["score"] is None


def test_arrays_by_name_are_the_models_own(record):
    names = ["encoder.layers.0.self_attention.scores", "decoder.layers.0.self_attention.masked_scores", "encoder.input"]
    entries = json.loads(record.to_json(names))["arrays"]
    assert list(entries) == names
    for name in names:
        assert np.array_equal(decoded(entries, name), record.arrays[name].astype(np.float32))
    with pytest.raises(UserError, match="the record has no 'nothing'"):
        record.to_dict(["nothing"])


def test_arrays_are_little_endian_and_in_order(record):
    entry = record.to_dict()["arrays"]["source_positions"]
    numbers = base64.b64decode(entry["data"])
    assert np.frombuffer(numbers[:2], "<f2")[0] == np.float16(record.arrays["source_positions"][0, 0])
    d_model = entry["shape"][1]
    second_row = np.frombuffer(numbers[2 * d_model : 2 * d_model + 2], "<f2")[0]
    assert second_row == np.float16(record.arrays["source_positions"][1, 0])


def test_a_notebook_shows_the_page_in_a_frame(door, monkeypatch):
    monkeypatch.setattr(ShownRecord, "to_page", lambda record: f'<b class="x">{record.source.text}</b>')
    text = 'the "> </iframe> cat'
    shown = door.inspect(text)._repr_html_()
    [srcdoc] = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(srcdoc) == f'<b class="x">{text}</b>'
    assert (shown.count("<"), 'sandbox="allow-scripts"' in shown) == (2, True)
