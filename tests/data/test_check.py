"""Each doubt about a corpus is found where it was put, and nowhere else."""

from dataclasses import replace
from pathlib import Path

import pytest

from headway.data.check import check_corpus
from headway.data.corpus import CorpusFiles, Pair
from headway.text.detection import script_of

GOOD = [(f"Der Hund Nummer {i} läuft über die Wiese.", f"Dog number {i} runs across the meadow.") for i in range(50)]
LINE = len(GOOD) + 1


def findings(*more, held_out=()):
    def pairs(texts):
        return [Pair(source, target, Path("a.de"), line) for line, (source, target) in enumerate(texts, 1)]

    found = check_corpus(pairs([*GOOD, *more]), pairs(held_out))
    return {finding.name: finding.places for finding in found.findings}


def test_a_good_corpus_raises_no_doubt():
    assert findings() == {}


@pytest.mark.parametrize(
    ("pair", "name"),
    [
        (("", "Something."), "blank"),
        (("Etwas.", " \t"), "blank"),
        (("", ""), "both blank"),
        (("ja " * 201, "yes " * 201), "long"),
        (("Ja, das ist so.", "Yes, " + "that is so and so it is. " * 8), "ratio"),
        (("Bilbao", "Bilbao "), "copied"),
        (("Собака бежит по лугу.", "A dog runs on a meadow."), "source script"),
        (("Ein Hund auf der Wiese.", "개가 풀밭을 달린다."), "target script"),
        (("Ein MÃ¤dchen lÃ¤uft.", "A girl runs."), "encoding"),
        (("Ein M\udce4dchen läuft.", "A girl runs."), "not UTF-8"),
        (("Ein M\ufffddchen läuft.", "A girl runs."), "replaced characters"),
        (("Ein\x00 Hund.", "A dog."), "invisible characters"),
        (GOOD[7], "repeated pair"),
        ((GOOD[7][0], "Another translation."), "repeated source"),
    ],
)
def test_each_doubt_names_its_line(pair, name):
    assert findings(pair) == {name: [f"a.de:{LINE}"]}


def test_lengths_are_odd_against_what_is_usual_for_the_corpus():
    """Here every target has six times the characters of its source, but for the last."""
    long = [(f"wort {i} oder so", f"{i} word or so, and more " * 4) for i in range(10, 60)]
    texts = [*long, ("ein Satz mit vielen Wörtern", "a line of as many words")]
    pairs = [Pair(source, target, Path("a.de"), line) for line, (source, target) in enumerate(texts, 1)]
    found = {finding.name: finding.places for finding in check_corpus(pairs, []).findings}
    assert found == {"ratio": ["a.de:51"]}


@pytest.mark.parametrize(
    ("texts", "ratio"), [([("a", "bcd")], 3.0), ([("ab", "c"), ("cd", "")], 0.5), ([("", "")], 0.0)]
)
def test_the_ratio_is_of_all_characters_of_whole_pairs(texts, ratio):
    assert check_corpus([Pair(*both, Path("a.de"), 1) for both in texts]).character_ratio == ratio


@pytest.mark.parametrize(
    ("source", "target", "is_odd"),
    [
        (100, 390, False),
        (100, 410, True),
        (390, 100, False),
        (410, 100, True),
        (20, 3, False),
        (21, 3, True),
        (3, 20, False),
    ],
)
def test_a_pair_is_odd_where_its_sides_differ_four_times_more_than_usual(source, target, is_odd):
    """Here both sides have the same number of characters. Short pairs are never odd."""
    usual = [Pair(f"{number:0999}", f"{number:0999}", Path("a.de"), number) for number in range(1, 100)]
    pair = Pair("a" * source, "b" * target, Path("a.de"), 100)
    found = {finding.name: finding.places for finding in check_corpus([*usual, pair]).findings}
    assert found.get("ratio", []) == ["a.de:100"] * is_odd


@pytest.mark.parametrize(("source", "target", "is_long"), [(200, 200, False), (201, 1, True), (1, 201, True)])
def test_a_pair_is_long_with_more_than_200_words_on_a_side(source, target, is_long):
    pair = Pair("ja " * source, "yes " * target, Path("a.de"), 1)
    assert any(finding.name == "long" for finding in check_corpus([pair]).findings) == is_long


def test_overlap_with_what_is_held_out():
    held_out = [(GOOD[3][0] + " ", "Else."), ("Anders.", GOOD[9][1])]
    assert findings(held_out=held_out) == {"held-out source": ["a.de:4"], "held-out target": ["a.de:10"]}


@pytest.mark.parametrize(
    ("text", "script"),
    [("Hello 안녕", "LATIN"), ("안녕하세요 hi", "HANGUL"), ("123 !", ""), ("漢字とかな", "CJK"), ("ＡＢＣ", "LATIN")],
)
def test_scripts(text, script):
    assert script_of(text) == script


def test_summary_by_hand():
    pairs = [Pair("a b", "xyz", Path("f"), 1), Pair("", "q", Path("f"), 2), Pair("ccc", "x yz", Path("f"), 3)]
    found = check_corpus(pairs)
    assert (found.pairs, found.source.words, found.source.characters, found.target.longest_words) == (3, 3, 6, 2)
    assert found.target.longest_place == "f:3"
    pairs[2] = replace(pairs[2], target_file=Path("g"))
    found = check_corpus(pairs)
    assert (found.source.longest_place, found.target.longest_place) == ("f:1", "g:3")
    assert found.character_ratio == pytest.approx(7 / 6)


def test_lines_in_another_encoding_are_not_judged_by_their_letters(tmp_path):
    """Second bytes of Korean letters in CP949 may be Latin ones."""
    (tmp_path / "a.ko").write_bytes("읶읷믱 뷁\n".encode("cp949") * 9 + "고양이\n".encode())
    (tmp_path / "a.en").write_text("a cat\n" * 10)
    found = check_corpus(list(CorpusFiles([tmp_path / "a.ko"], [tmp_path / "a.en"]).pairs(lenient=True)))
    assert found.source.script == "HANGUL"
    assert {one.name: one.count for one in found.findings if one.name in ("not UTF-8", "source script")} == {
        "not UTF-8": 9
    }
