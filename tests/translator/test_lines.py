"""What is written for each line, and which lines cost themselves alone."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from headway.data.lines import Line
from headway.decoding import Sampling
from headway.errors import UserError
from headway.translator.lines import MOST_FAILURES, LineOptions, LineTranslator, language_prefix
from tests.translator.test_translator import tagged_translator, translator


def lines(*texts: str) -> list[Line]:
    return [Line(number, text) for number, text in enumerate(texts, start=1)]


@pytest.fixture
def door():
    return translator(max_length=20)


@pytest.fixture
def poisoned(door, monkeypatch):
    """A translator that raises for texts with `poison` in them, however many others there are."""
    translate, asked = door.translate, []

    def raising(texts, **options):
        asked.append(len(texts))
        if any("poison" in text for text in texts):
            raise FloatingPointError("not\nfinite")
        return translate(texts, **options)

    monkeypatch.setattr(door, "translate", raising)
    return LineTranslator(door, LineOptions()), asked


def test_a_poisoned_line_costs_itself_alone(door, poisoned):
    texts = ["the cat", "poison 1", "a dog", "", "poison 2", *["the mat"] * 20]
    work, asked = poisoned
    written = work.translate(lines(*texts))
    calls = len(asked)
    found = written.text.split("\n")
    wanted = ["" if "poison" in text or not text else work.translate(lines(text)).text[:-1] for text in texts]
    assert found == [*wanted, ""]
    assert written.failed == 2
    told = [one.text for one in written.notices if one.fault != "were cut off"]
    assert told[0] == "line 2 can't be translated (FloatingPointError: not finite); it is left blank"
    assert told[1].startswith("line 5 can't be translated")
    assert len(told) == 2
    assert calls < 20  # halves, not one call a line


def test_an_error_of_every_line_is_raised(poisoned):
    work, _ = poisoned
    assert work.translate(lines(*["poison"] * MOST_FAILURES)).failed == MOST_FAILURES
    with pytest.raises(FloatingPointError):
        work.translate(lines(*["poison"] * (MOST_FAILURES + 1)))


def test_what_the_user_can_mend_is_raised(door):
    with pytest.raises(UserError, match="leaves no room"):
        LineTranslator(door, LineOptions(prefix="the cat sat on the mat a dog ran after the cat"))
    with pytest.raises(UserError, match="n_best=3 is more than beam_size=2"):
        LineTranslator(door, LineOptions(search={"n_best": 3, "beam_size": 2}))


def test_lines_without_a_text_and_too_long_ones_are_blank_and_told(door):
    work = LineTranslator(door, LineOptions(search={"beam_size": 1, "max_length": 2}))
    written = work.translate([Line(7, "", "is not JSON"), Line(8, "x " * 300), Line(9, ""), Line(10, "the cat")])
    assert written.text.split("\n")[:3] == ["", "", ""]
    assert written.failed == 2
    assert written.notices[0].text == "line 7 is not JSON; its translation is left blank"
    assert written.notices[1].text.startswith("line 8 has ")
    assert all(notice.text.startswith(("line 7", "line 8", "line 10 was cut off")) for notice in written.notices)


GOOD = [">>ko<< the cat", "  >>de<<a dog", ">>ko<<\tthe mat sat", ">>de<< >>xx<< the"]
ODD = ["the cat", ">>xx<< the cat", ">>ko <<the cat", ">>KO<< the cat", ">> ko<< a", "the >>ko<< cat", ">ko< a", ">>ko"]
BLANK = ["", " \u3000", ">>ko<<", " >>de<< "]


@pytest.mark.parametrize("options", [{}, {"as_json": True}, {"split": True}, {"alignments": True}])
def test_a_line_that_lacks_its_tag_costs_itself_alone(options):
    work = LineTranslator(tagged_translator(), LineOptions(search={"beam_size": 1}, **options))
    given = [text for some in zip(GOOD, ODD, ODD[::-1], BLANK, strict=False) for text in some]
    numbered = [Line(number, text) for number, text in enumerate(given, start=5000)]
    written = work.translate(numbered)
    odd = [line.number for line in numbered if line.text in ODD]
    assert written.failed == len(odd) == 8
    told = [one.text for one in written.notices if one.fault != "were cut off"]
    reason = "doesn't begin with the tag of a target language, such as >>de<<; its translation is left blank"
    assert told == [f"line {number} {reason}" for number in odd]
    found = written.text.splitlines()
    wanted = work.translate([line if line.text in GOOD else Line(line.number, "") for line in numbered])
    assert found == wanted.text.splitlines()
    assert wanted.failed == 0
    chosen = LineTranslator(tagged_translator(), LineOptions(search={"beam_size": 1}, target_language="ko", **options))
    assert chosen.translate(numbered).failed == 0


def test_n_best_and_json_keep_the_numbers_of_the_lines(door):
    work = LineTranslator(door, LineOptions(search={"n_best": 2, "beam_size": 3}))
    rows = [row.split(" ||| ") for row in work.translate([Line(41, "the cat"), Line(42, "")]).text.splitlines()]
    assert [row[0] for row in rows] == ["41", "41", "42"]
    [line] = LineTranslator(door, LineOptions(as_json=True)).translate([Line(3, "the cat")]).text.splitlines()
    assert set(json.loads(line)) >= {"text", "score", "tokens", "stopped"}


def test_a_line_without_a_translation_has_no_score(door, poisoned):
    """`nan` can be read as a number and is better than none; JSON has null for it."""
    given = lines("the cat", "", "x " * 300, "{x}", "poison")
    door = poisoned[0].translator
    rows = LineTranslator(door, LineOptions(search={"n_best": 2, "beam_size": 3})).translate(given).text.splitlines()
    scores = {row.split(" ||| ")[0]: row.split(" ||| ")[2] for row in rows}
    assert float(scores.pop("1")) < 0
    assert scores == {"2": "nan", "3": "nan", "4": "nan", "5": "nan"}
    rows = LineTranslator(door, LineOptions(as_json=True)).translate(given).text.splitlines()
    assert [json.loads(row)["score"] is None for row in rows] == [False, True, True, True, True]


def test_split_gives_the_sentences_of_each_line(door):
    texts = [
        "the cat sat. A dog ran after! the mat",
        "",
        " ",
        "the cat\vthe mat",
        "a dog https://example.org/x sat",
        "ran",
    ]
    work = LineTranslator(door, LineOptions(split=True))
    written = work.translate(lines(*texts))
    alone = [door.translate_document(text).text.strip() for text in texts]
    assert written.text == "".join(" ".join(text.splitlines()) + "\n" for text in alone)
    assert "https://example.org/x" in written.text
    assert written.text.count("\n") == len(texts)
    whole = LineTranslator(door, LineOptions()).translate(lines(*texts)).text
    assert written.text.split("\n")[0] != whole.split("\n")[0]
    assert written.text.split("\n")[-2] == whole.split("\n")[-2]


def test_split_keeps_list_markers_out_of_sentences(door):
    alone = door.translate(["the cat sat."])[0].text
    texts = ["1. the cat sat.", "- the cat sat.", "  (2) the cat sat.", "> * the cat sat.", "3)", "5. 3. 2026"]
    written = LineTranslator(door, LineOptions(split=True)).translate(lines(*texts)).text.splitlines()
    assert written[:5] == [f"1. {alone}", f"- {alone}", f"  (2) {alone}", f"> * {alone}", "3)"]
    assert written[5] == door.translate(["5. 3. 2026"])[0].text, "a date is translated"


def test_split_reads_lines_of_any_length(door):
    texts = ["the cat sat on the mat. " * 200, "the cat " * 600]
    assert LineTranslator(door, LineOptions()).translate(lines(*texts)).failed == 2
    written = LineTranslator(door, LineOptions(search={"max_length": 3}, split=True)).translate(lines(*texts))
    assert written.failed == 0
    assert all(len(line) > 100 for line in written.text.split("\n")[:2])
    assert [one.text for one in written.notices] == [
        f"a sentence of line {number} was cut off; --max-length allows more" for number in (1, 2)
    ]


@pytest.mark.parametrize("options", [{"search": {"n_best": 2}}, {"as_json": True}, {"prefix": "the"}])
def test_split_has_no_scores(door, options):
    with pytest.raises(UserError, match="--split"):
        LineTranslator(door, LineOptions(split=True, **options))


@pytest.mark.parametrize("split", [False, True])
def test_terms_and_protected_text_of_lines(door, split):
    options = LineOptions(glossary=(("cat", "Gatto"),), split=split)
    first, second, third = (
        LineTranslator(door, options).translate(lines("the cat", "a {x} dog", "a dog")).text.splitlines()
    )
    assert "Gatto" in first
    assert second.count("{x}") == 1
    assert third == LineTranslator(door, LineOptions(split=split)).translate(lines("a dog")).text.rstrip("\n")


def test_a_glossary_that_cannot_be_followed_is_refused_before_a_line_is_read(door):
    with pytest.raises(UserError, match="leave sample out"):
        LineTranslator(door, LineOptions(search={"sample": Sampling()}, glossary=(("cat", "Gatto"),)))


def test_options_are_the_same_in_json():
    """A job compares those it was begun with."""
    options = LineOptions(search={"sample": Sampling(seed=3), "n_best": 2}, glossary=(("Hund", "dog"),))
    assert json.loads(json.dumps(options.to_dict())) == options.to_dict()


def test_a_target_language_in_another_code_gets_the_tag_that_the_model_has():
    info = SimpleNamespace(source_tokenizer=SimpleNamespace(many_sources=False))
    several: Any = SimpleNamespace(target_languages=["ko", "zh_Hans", "upper"], info=info)
    for given in ("ko", "KO", "ko-KR", "kor"):
        assert language_prefix(several, given) == ">>ko<< "
    assert language_prefix(several, "zh-CN") == ">>zh_Hans<< "
    assert language_prefix(several, "upper") == ">>upper<< "
    with pytest.raises(UserError, match="translates into ko, zh_Hans, upper"):
        language_prefix(several, "zh-TW")
