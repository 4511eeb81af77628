"""Glossaries: which terms a text has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.translator.glossary import Glossary


def found(terms: dict[str, str], text: str) -> list[str]:
    return [term.source for term in Glossary.of(terms.items()).find(text)]


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        (["Hund"], "Ein Hund, noch ein Hund.", ["Hund", "Hund"]),
        (["Hund"], "Hunde, Hundehalter, Jagdhund und Hund_1", []),
        (["Hund"], "(Hund) „Hund“ Hund-Halter", ["Hund", "Hund", "Hund"]),
        (["New", "New York", "York"], "New York, New Jersey, York", ["New York", "New", "York"]),
        (["apple"], "Apple APPLE apple", ["apple", "apple", "apple"]),
        (["Apple"], "Apple APPLE apple", ["Apple", "Apple"]),
        (["apple", "Apple"], "Apple apple", ["Apple", "apple"]),
        (["서울"], "서울은 서울에서 서울까지도 서울입니다 서울", ["서울"] * 5),
        (["서울"], "서울대학교 남서울 서울역", []),
        (["대학교", "서울대학교"], "서울대학교의 대학교들을", ["서울대학교", "대학교"]),
        (["GitHub"], "GitHub에서 GitHub를 GitHubs", ["GitHub", "GitHub"]),
        (["東京"], "私は東京に住む", ["東京"]),
        (["C++"], "C++ und C+++", ["C++", "C++"]),
        (["\u1112\u1161\u11ab"], "한을", ["한"]),
    ],
)
def test_terms_of_a_text(terms, text, expected):
    assert found(dict.fromkeys(terms, "x"), text) == expected


@pytest.mark.parametrize("space", ["\t", "\n", "\xa0", "  ", "\u3000", "\u2028", "\u200b ", " \xad", "\r\n"])
def test_white_space_and_invisible_characters_are_seen_as_the_model_sees_them(space):
    text = f"Ein roter{space}Ba\xadll und ein\u200b \ufeffHund"
    assert found({"roter Ball": "red ball", "Hund": "dog"}, text) == ["roter Ball", "Hund"]
    assert found({f"roter{space}Ball": "red ball"}, "Ein roter Ball") == ["roter Ball"]
    [term] = Glossary.of([("Ball", f"red{space}ball")]).terms
    assert term.target == "red ball"
    with pytest.raises(UserError, match="needs text on both sides"):
        Glossary.of([("Ball", f"{space}\u200b")])


@given(st.text("ab ", max_size=30), st.sets(st.sampled_from(["a", "b", "ab", "a b", "b a b", "aa"]), min_size=1))
def test_at_each_place_the_longest_run_of_words(text, terms):
    """Against the definition, word by word."""
    words = text.split()
    expected, place = [], 0
    while place < len(words):
        fits = [n for n in range(len(words) - place, 0, -1) if " ".join(words[place : place + n]) in terms]
        if fits:
            expected.append(" ".join(words[place : place + fits[0]]))
        place += fits[0] if fits else 1
    assert found(dict.fromkeys(terms, "x"), " ".join(words)) == expected


@pytest.mark.parametrize("line", ["Hund", "Hund\t", "\tdog", "a\tb\tc"])
def test_a_line_that_is_no_term_is_named(tmp_path, line):
    path = tmp_path / "terms.tsv"
    path.write_text(f"Katze\tcat\n\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"terms.tsv, line 3: must be a source term, a TAB and a target term"):
        Glossary.read(path)


def test_a_term_with_two_targets_is_refused():
    with pytest.raises(UserError, match="'Hund' has two targets, 'dog' and 'hound'"):
        Glossary.of([("Hund", "dog"), ("Hund", "hound")])
    assert len(Glossary.of([("Hund", "dog"), (" Hund ", "dog")]).terms) == 1


@pytest.mark.parametrize("pair", [("\ud83d", "dog"), ("Hund", "dog \ude00")])
def test_half_a_surrogate_pair_is_refused(pair):
    with pytest.raises(UserError, match=r"^glossary: '.*' with '.*' holds half of a surrogate pair") as refusal:
        Glossary.of([("Katze", "cat"), pair])
    str(refusal.value).encode()
