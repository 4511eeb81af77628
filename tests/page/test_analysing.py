"""Analyses beside a record: those that were asked for, of the model as it is or edited, as arrays and in JSON."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from headway.errors import UserError
from headway.insight.analyses import NAMES, names_by_sentence
from headway.insight.analyses.contrast import AskContrast
from headway.insight.analyses.contributions import contributions
from headway.insight.analyses.erasure import erasure
from headway.insight.analyses.head_importance import AskHeadImportance
from headway.insight.analyses.patching import AskPatching
from headway.insight.analyses.reading import Reading
from headway.insight.editing import edited_model
from headway.insight.recording import record_pass
from headway.insight.what_if import HeadOff, LookAheadOff
from headway.translator import Translator
from tests.page.decoding import decoded
from tests.page.test_inspecting import TEXTS, random_translator

TEXT = "a cat ran after the dog"
OTHER = "a dog ran after the cat"
PAIRS = [("the cat", "a dog"), (TEXT, "the mat sat")]
PLAIN = names_by_sentence()
RECORD = Path(__file__).parent.parent.parent / "docs" / "record.md"


@pytest.fixture(scope="module")
def door() -> Translator:
    """Of a model that begins the translations of the two texts with different tokens: the two whose logits tell them
    apart best are made the likeliest, by their bias."""
    found = random_translator()
    model, encode = found.model, found.stored.source_tokenizer.encode
    with torch.no_grad():
        sources = torch.tensor([[*encode(text), model.config.eos_id] for text in (TEXT, OTHER)])
        one, other = model(sources, torch.tensor([[model.config.bos_id]] * 2))[:, 0, 260:]  # no bytes
        order = (one - other).argsort()
        for id_ in (order[0], order[-1]):
            model.output.bias[260 + id_] += 30.0 - (one[id_] + other[id_]) / 2
    return Translator(found.stored, device="cpu")


@pytest.fixture(scope="module")
def record(door):
    pairs = AskHeadImportance(pairs=PAIRS)
    return door.inspect(TEXT, beam_size=1, analyses=[*PLAIN, AskPatching(other=OTHER), pairs])


def test_only_what_is_asked_for_is_there(door, record):
    assert list(record.analyses.found()) == list(NAMES)
    plain = door.inspect(TEXT)
    assert plain.analyses.found() == {}
    assert plain.to_dict()["analyses"] == {}
    assert not [name for name in plain.arrays if name.startswith("analyses")]
    one = door.inspect(TEXT, beam_size=1, analyses=["erasure"])
    assert list(one.analyses.found()) == list(one.to_dict("none")["analyses"]) == ["erasure"]
    np.testing.assert_array_equal(one.analyses.erasure.effect, record.analyses.erasure.effect)


def test_they_are_of_the_records_translation(door, record):
    found = record.analyses
    reading = Reading.of(door.model, record.source.ids, record.target.ids)
    np.testing.assert_array_equal(found.erasure.effect, erasure(door.model, reading).effect)
    np.testing.assert_array_equal(found.contributions.source, contributions(door.model, record.arrays).source)
    given = [step.log_probability for step in record.steps]
    np.testing.assert_allclose(found.logit_lens.log_probability[-1], given, atol=1e-4)
    np.testing.assert_allclose(found.decoder_lens.log_probability[-1], given, atol=1e-4)
    [greedy] = door.translate([TEXT], beam_size=1)
    assert found.decoder_lens.translations[-1].text == greedy.text
    assert found.decoder_lens.translations[-1].score == pytest.approx(greedy.score, abs=1e-4)
    of_pairs = sum(door.score(*zip(*PAIRS, strict=True)))
    assert found.head_importance.log_probability * found.head_importance.tokens == pytest.approx(of_pairs, abs=1e-3)
    assert set(found.faithfulness.probability.curves) == {
        *("attention", "contributions", "erasure", "contrast_erasure", "random")
    }


def test_arrays_have_the_names_of_the_documentation(record):
    table = RECORD.read_text(encoding="utf-8").partition("| Array | Shape |")[2].partition("\n\n")[0]
    documented = set()
    for row in table.splitlines()[2:]:
        for name in re.findall(r"`(analyses\.[^`]+)`", row.split("|")[1]):
            documented |= {name.replace("{kind}", kind) for kind in ("encoder", "decoder", "cross")}
    found = dict(record.analyses.arrays())
    assert set(found) == documented
    for name, array in found.items():
        assert record.arrays[name] is array
        assert array.dtype == np.float32


@pytest.mark.parametrize("arrays", ["all", "layers", "attention", "none"])
def test_json_has_them_whatever_other_arrays_it_has(record, arrays):
    document = json.loads(record.to_json(arrays))
    for name, array in record.analyses.arrays():
        np.testing.assert_allclose(decoded(document["arrays"], name), array, rtol=1e-3, atol=1e-6)
    found = document["analyses"]
    assert list(found) == list(NAMES)
    pieces = record.vocabulary
    assert [foil["piece"] for foil in found["contrast"]["foils"]] == [
        pieces[id_] for id_ in record.analyses.contrast.foils
    ]
    assert found["erasure"]["needs"] == record.analyses.erasure.needs
    assert found["contributions"]["source_share"] == pytest.approx(record.analyses.contributions.source_share, rel=1e-5)
    [last] = found["logit_lens"]["top"][-1:]
    for step, top in zip(record.steps, last, strict=True):
        assert [one["id"] for one in top] == step.ids[:5]
        assert [one["probability"] for one in top] == pytest.approx(step.probabilities[:5], rel=1e-3)
    assert found["patching"]["word"]["id"] == record.target.ids[found["patching"]["step"]]
    assert "analyses.erasure" in record.to_page()


def test_why_this_word_and_not_that_of_another_translation(door, record):
    pieces = door.stored.target_tokenizer.encode("the mat")
    step = next(i for i, (one, other) in enumerate(zip(record.target.ids, [*pieces, 3], strict=False)) if one != other)
    found = door.inspect(TEXT, beam_size=1, analyses=[AskContrast(instead="the mat")]).analyses.contrast
    assert found.foils[step] == [*pieces, 3][step]
    usual = record.analyses.contrast.foils
    assert [foil for i, foil in enumerate(found.foils) if i != step] == [
        foil for i, foil in enumerate(usual) if i != step
    ]
    with pytest.raises(UserError, match="is the translation itself"):
        door.inspect(TEXT, "the mat", analyses=[AskContrast(instead="the mat")])


def test_of_an_edited_model_they_are_of_that(door):
    edit = HeadOff(attention="cross", layer=1, head=0)
    found = door.inspect(TEXT, edits=[edit], analyses=["erasure", "contributions"])
    model = edited_model(door.model, [edit])
    wanted = erasure(model, Reading.of(model, found.source.ids, found.target.ids))
    np.testing.assert_array_equal(found.analyses.erasure.effect, wanted.effect)
    arrays = record_pass(model, found.source.ids, found.target.ids)
    np.testing.assert_array_equal(found.analyses.contributions.source, contributions(model, arrays).source)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (["guess"], "analyses.0"),
        (["patching"], "analyses.0.patching.other"),
        ([{"kind": "erasure", "other": "x"}], "analyses.0.erasure.other"),
        (["erasure", "erasure"], "each can be asked for once"),
        ([AskPatching(other="the cat")], "as many tokens"),
        ([AskPatching(other="x" * 100_000)], "can't be inspected"),
        ([{"kind": "head_importance", "pairs": []}], "analyses.0.head_importance.pairs"),
    ],
)
def test_what_can_not_be_analysed_is_refused(door, asked, complaint):
    with pytest.raises(UserError, match=re.escape(complaint)):
        door.inspect(TEXT, analyses=asked)


def test_without_the_look_ahead_mask_nothing_is_analysed(door):
    with pytest.raises(UserError, match="look-ahead mask"):
        door.inspect(TEXT, edits=[LookAheadOff()], analyses=["erasure"])


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_any_length_is_analysed(door, text):
    found = door.inspect(text, analyses=PLAIN)
    assert list(found.analyses.found()) == PLAIN
