"""Languages by their scripts: how many of the letters must be in one."""

import pytest

from headway.text import detection
from headway.text.detection import Detected, among_all, detect, script_of_character


@pytest.mark.parametrize(
    ("words", "candidates", "found"),
    [
        ("д" * 10 + "d" * 20, ["ru", "en"], {"en": 66.7, "ru": 33.3}),
        ("д" * 9 + "d" * 21, ["ru", "en"], {"en": 70.0}),
        ("д" * 21 + " , 12345 !" + "d" * 9, ["ru", "en"], {"ru": 70.0}),
        ("漢" * 18 + "かな", ["zh-Hans", "ja"], {"ja": 100.0}),
        ("漢" * 19 + "か", ["zh-Hans", "ja"], {"ja": 100.0, "zh-Hans": 95.0}),
        ("漢" * 18 + "한글", ["zh-Hant", "ko"], {"ko": 100.0}),
        ("д" * 30, ["en", "ko"], {}),
    ],
)
def test_a_language_needs_a_third_of_the_letters_and_its_own_script_a_tenth(words, candidates, found):
    told = detect(words, candidates)
    assert told is not None
    assert {one.language: one.confidence for one in told} == found
    assert [one.language for one in told] == list(found)


def test_text_without_letters_is_in_no_language():
    assert detect("12, 3!", ["en", "ko"]) is None


@pytest.mark.parametrize(("letters", "script"), [("日本語ひらがなカタカナ", "CJK"), ("ＡＢcd", "LATIN")])
def test_scripts_that_a_text_mixes_are_one(letters, script):
    assert {script_of_character(letter) for letter in letters} == {script}


def test_a_language_is_weighed_against_the_other_one_of_its_script():
    pytest.importorskip("lingua")
    hindi = "यह एक बहुत अच्छी किताब है और मैं इसे पढ़ रहा हूँ"
    for code, confidence in (("hi", 100.0), ("mr", 0.0)):
        assert among_all(hindi, [Detected(code, 100.0)]) == [Detected(code, pytest.approx(confidence, abs=5))]


def test_a_word_that_may_be_of_many_languages_is_not_held_for_unknown():
    """As 0 would say; of a sentence that is surely in another language it does."""
    pytest.importorskip("lingua")
    for words, is_known in (("Hello", True), ("Questo libro è molto bello e mi piace tanto", False)):
        [found] = among_all(words, [Detected("en", 100.0)])
        assert (found.confidence > 0) == is_known


def test_confidence_has_one_decimal(monkeypatch):
    monkeypatch.setattr(detection, "_share", lambda *_: 1 / 3)
    assert among_all("words", [Detected("en", 100.0)]) == [Detected("en", 33.3)]
