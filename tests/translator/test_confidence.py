"""The confidence of translations: whatever finds them, beside whatever they stand; and what is refused."""

import json
from dataclasses import replace

import pytest

from headway.data.lines import Line
from headway.decoding import Sampling
from headway.errors import UserError
from headway.storage import Calibration
from headway.text.characters import visible
from headway.text.domain import learn_domain
from headway.translator import Translator
from headway.translator.confidence import FEWEST, confidence_features, learn_calibration, probabilities
from headway.translator.lines import LineOptions, LineTranslator
from headway.translator.reading import TorchReader
from tests.translator.test_translator import translator

KNOWN = ["the cat sat on the mat", "a dog ran after", "the mat sat", "a dog sat on the cat"] * 30
FOREIGN = "xylophon quarks jüngst 개"


def calibrated(**changes) -> Translator:
    one = translator(**changes)
    ids = [one.stored.source_tokenizer.encode(text) for text in KNOWN]
    domain = learn_domain(KNOWN, ids, one.stored.source_tokenizer.vocab_size)
    one.stored.calibration = Calibration((0.5, 0.1, -0.2, 1.0, 0.3), 1.0, domain)
    return one


def test_it_is_that_of_the_features_of_what_was_found():
    """Of each translation and each alternative, in order; of the same text as without."""
    door = calibrated()
    texts = ["the mat sat", "", FOREIGN, "a dog ran after", "x " * 3000]
    plain = door.translate(texts, beam_size=3, n_best=2)
    found = door.translate(texts, beam_size=3, n_best=2, confidence=True, alignments=True)
    assert [(one.text, one.score) for one in found] == [(one.text, one.score) for one in plain]
    assert [one.confidence for one in plain] == [None] * 5
    assert [one.out_of_domain for one in found] == [False, None, True, False, None]
    assert [one.confidence is None for one in found] == [False, True, False, False, True]
    for place in (0, 2, 3):
        for one in (found[place], *found[place].alternatives):
            ids = door.stored.source_tokenizer.encode(texts[place]), one._pieces.ids[1]
            [expected] = probabilities(
                door.calibration(), confidence_features(TorchReader(door.model), *([side] for side in ids))
            )
            assert one.confidence == pytest.approx(expected, abs=1e-5)
    assert found[0].confidence != found[0].alternatives[0].confidence


def test_what_is_made_of_runs_is_judged_as_it_stands():
    """The model's vocabulary can't write `{½}`, and sampling demands nothing."""
    door = calibrated(max_length=64)
    texts = ["the cat {½} sat", "{name}", " ".join(["the {name} cat"] * 6)]
    for options in ({"n_best": 2}, {"sample": Sampling(), "n_best": 2}):
        found, nothing, _ = door.translate(texts, confidence=True, max_length=9, **options)
        for one in (found, *found.alternatives):
            ids = [[door.stored.source_tokenizer.encode(text)] for text in (texts[0], one.text)]
            [expected] = probabilities(door.calibration(), confidence_features(TorchReader(door.model), *ids))
            assert one.confidence == pytest.approx(expected, abs=1e-5)
            places = {place for piece in one.tokens for place in range(piece.start, piece.end)}
            assert places >= {place for place, char in enumerate(one.text) if visible(char).strip()}
            assert len(one.alignment) == len(one.tokens)
        assert found.alternatives
        assert (nothing.text, nothing.confidence, nothing.out_of_domain) == ("{name}", None, None)
    [longer] = door.translate(texts[2:], confidence=True, sample=Sampling())
    assert len(door.stored.target_tokenizer.encode(longer.text)) > door.longest_source
    assert (longer.confidence, longer.tokens) == (None, [])


def test_no_confidence_without_a_calibration_or_of_an_ensemble():
    with pytest.raises(UserError, match="headway calibrate"):
        translator().translate(["the cat"], confidence=True)
    one = calibrated()
    with pytest.raises(UserError, match="one model"):
        Translator(one.stored, device="cpu", ensemble=[one.stored]).translate(["a"], confidence=True)
    with pytest.raises(UserError, match="calibrate"):
        LineTranslator(translator(), LineOptions(confidence=True))
    with pytest.raises(UserError, match="--confidence are of whole lines"):
        LineTranslator(one, LineOptions(confidence=True, split=True))


def test_how_lines_show_it():
    door = calibrated(max_length=64)
    lines = [Line(1, "the mat sat"), Line(2, ""), Line(3, FOREIGN)]
    one, _, foreign = door.translate([line.text for line in lines], confidence=True)
    shown = LineTranslator(door, LineOptions(confidence=True)).translate(lines).text.splitlines()
    assert shown == [
        f"{one.text} ||| {one.confidence:.4f}",
        " ||| ",
        f"{foreign.text} ||| {foreign.confidence:.4f} out-of-domain",
    ]
    both = (
        LineTranslator(door, LineOptions(search={"n_best": 2}, confidence=True, alignments=True))
        .translate(lines[:1])
        .text
    )
    assert [len(line.split(" ||| ")) for line in both.splitlines()] == [5, 5]
    documents = LineTranslator(door, LineOptions(confidence=True, as_json=True)).translate(lines).text.splitlines()
    first, blank, third = map(json.loads, documents)
    assert (first["confidence"], first["out_of_domain"]) == (one.confidence, False)
    assert "confidence" not in blank
    assert third["out_of_domain"] is True


def test_a_calibration_learns_which_translations_are_acceptable():
    """References are the translations themselves where the source begins with `the`, which makes shorter ones; else
    something else. Confidences then tell which is which."""
    door = translator()
    texts = KNOWN * 2
    translations = door.translate(texts, beam_size=1)
    references = [one.text if text.startswith("the") else "§" for text, one in zip(texts, translations, strict=True)]
    calibration = learn_calibration(TorchReader(door.model), door.stored, translations, references)
    door = Translator(replace(door.stored, calibration=calibration), device="cpu")
    found = door.translate(KNOWN[:4], beam_size=1, confidence=True)
    good, bad = (
        [one.confidence for one, text in zip(found, KNOWN, strict=False) if text.startswith("the") is kind]
        for kind in (True, False)
    )
    assert min(good) > 0.5 > max(bad)
    assert not any(one.out_of_domain for one in found)
    with pytest.raises(UserError, match=f"give {FEWEST} or more"):
        learn_calibration(TorchReader(door.model), door.stored, translations[:50], references[:50])
    with pytest.raises(UserError, match="none of the 240 translations"):
        learn_calibration(TorchReader(door.model), door.stored, translations, ["§"] * len(texts))
