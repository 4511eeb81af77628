"""Noise: each kind changes what its name says and nothing else, and a text and a seed always give the same."""

import unicodedata
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.data.noise import EDITS, KINDS, perturbed, with_typo
from headway.data.options import NoiseSection

LETTERS = st.sampled_from("abcdeäöüßéABCÄÉñłαβщй가각힣닭없ㄱ한")
WORDS = st.text(LETTERS, min_size=1, max_size=8)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join).map(lambda text: f"{text}.")
SEEDS = st.integers(0, 2**63)


@given(st.text(max_size=30), st.sampled_from(KINDS), SEEDS)
def test_any_text_stays_a_line_with_text(text, kind, seed):
    found = perturbed(text, kind, seed, 1.0)
    assert found == perturbed(text, kind, seed, 1.0)
    assert bool(found.strip()) == bool(text.strip())
    assert found.count("\n") <= text.count("\n")


@given(TEXTS, SEEDS)
def test_cases_and_punctuation(text, seed):
    assert perturbed(text, "lower", seed) == text.lower()
    assert perturbed(text, "upper", seed) == text.upper()
    assert perturbed(f"{text}..?! ", "punctuation", seed) == perturbed(text, "punctuation", seed) == text[:-1]


@pytest.mark.parametrize("kind", KINDS)
def test_protected_text_stays(kind):
    """The target has it as the source had it, so a source without it would teach the model not to copy it."""
    for seed in range(20):
        found = perturbed("Grüße an {Köter}, `Größe.` und https://Käse.de/A. Schönen Gruß, {Herr}", kind, seed, 1.0)
        assert [found.count(one) for one in ("{Köter}", "`Größe.`", "https://Käse.de/A", "{Herr}")] == [1] * 4
        assert ("Schönen Gruß," in found) == (kind == "punctuation")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ja, {Hund} läuft, ja.", "Ja, {Hund} läuft, ja"),
        ("Ja, {Hund} und {Katze}.", "Ja, {Hund} und {Katze}"),
        ("Ja. Nein. {Hund}", "Ja. Nein. {Hund}"),
    ],
)
def test_the_final_punctuation_alone_goes(text, found):
    assert perturbed(text, "punctuation", 1) == found


def test_punctuation_alone_stays():
    assert perturbed("...", "punctuation", 1) == "..."


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Größe, Mädchen, Übung", "Grosse, Madchen, Ubung"),
        ("déjà vu, Łódź, smørrebrød", "deja vu, Lodz, smorrebrod"),
        ("ёж, Ελλάδα", "еж, Ελλαδα"),
        ("각하, がぎ, हिन्दी, สวัสดี", "각하, がぎ, हिन्दी, สวัสดี"),
    ],
)
def test_diacritics(text, bare):
    """Of Latin, Greek and Cyrillic letters alone: in other scripts the marks are what tells words apart."""
    assert perturbed(text, "diacritics", 1) == bare


@given(TEXTS)
def test_no_latin_letter_keeps_a_mark(text):
    found = perturbed(text, "diacritics", 1)
    letters = unicodedata.normalize("NFD", found)
    assert not any("\u0300" <= char <= "\u036f" for char in letters)
    assert perturbed(found, "diacritics", 1) == found


@given(TEXTS, SEEDS)
def test_every_word_with_two_letters_gets_a_typo_at_a_rate_of_one(text, seed):
    words, found = text.split(), perturbed(text, "typos", seed, 1.0).split()
    assert len(words) == len(found)
    for before, after in zip(words, found, strict=True):
        letters = sum(map(str.isalpha, before))
        if letters < 2:
            assert after == before
        else:
            assert after != before
            assert abs(len(after) - len(before)) <= 1
            assert distance(unicodedata.normalize("NFD", before), unicodedata.normalize("NFD", after)) <= 6


def distance(one: str, other: str) -> int:
    """Levenshtein's, with whole syllables swapped or dropped counting up to three jamo on each side."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def test_each_edit_happens_and_is_what_it_is_called():
    found = Counter()
    for seed in range(400):
        word = with_typo("hund", Random(seed))
        swapped = {"uhnd", "hnud", "hudn"}
        dropped = {"und", "hnd", "hud", "hun"}
        repeated = {"hhund", "huund", "hunnd", "hundd"}
        beside = {f"{k}und" for k in "gj"} | {f"h{k}nd" for k in "yi"} | {f"hu{k}d" for k in "bm"}
        beside |= {f"hun{k}" for k in "sf"}
        kinds = [place for place, some in enumerate((swapped, dropped, repeated, beside)) if word in some]
        assert len(kinds) == 1, word
        found[kinds[0]] += 1
    assert min(found[place] for place in range(len(EDITS))) > 60  # of 100 on average


def test_hangul_typos_are_of_jamo():
    """닭 is ㄷ ㅏ ㄺ: the final consonant drops, or the key beside ㄷ or ㅏ is hit. 가 has no final to drop."""
    found = {with_typo("닭가", Random(seed)) for seed in range(400)}
    assert found == {
        "가닭",  # swapped
        "다가",  # the final dropped
        "닭",  # a whole syllable dropped
        "닭닭가",
        "닭가가",
        *("잙가", "갉가"),  # ㅈ and ㄱ are beside ㄷ
        *("덝가", "딝가"),  # ㅓ and ㅣ are beside ㅏ
        *("닭다", "닭사", "닭거", "닭기"),  # ㄷ and ㅅ are beside ㄱ
    }


def test_the_rate_of_typos():
    text = " ".join(f"wort{chr(97 + i % 26)}x" for i in range(10_000))
    changed = sum(a != b for a, b in zip(text.split(), perturbed(text, "typos", 3, 0.1).split(), strict=True))
    assert 900 < changed < 1100


def test_the_share_of_noise_and_its_kinds():
    """Of 4,000 versions of a text that each kind changes, the share has noise; alone or two together."""
    text, noise = "Ein schöner Hund läuft über die Straße.", NoiseSection(share=0.25)
    versions = [noise.applied(text, version) for version in range(4000)]
    assert versions == [noise.applied(text, version) for version in range(4000)]
    noisy = [one for one in versions if one != text]
    assert 900 < len(noisy) < 1100
    for kind in ("lower", "upper", "punctuation", "diacritics"):
        alone = sum(one == perturbed(text, kind, 0) for one in noisy)
        assert 0.06 < alone / len(noisy) < 0.2  # a tenth, and those of two of which one changes nothing that stays
    assert text.lower()[:-1] in noisy
    only = NoiseSection(share=1.0, kinds=["upper"])
    assert {only.applied(text, version) for version in range(20)} == {text.upper()}


def test_each_word_of_noisy_text_gets_typos_at_the_same_rate():
    """A version has noise or not whatever its typos are. Of 2,000 noisy versions each word has a typo in a tenth."""
    typos, noise = Counter(), NoiseSection(share=0.1, kinds=["typos"])
    for number in range(20_000):
        text = f"hunde rennen weit hinaus {number}"
        found = noise.applied(text, 1)
        pairs = zip(text.split(), found.split(), strict=True)
        typos.update(place for place, (before, after) in enumerate(pairs) if before != after)
    assert all(150 < typos[place] < 250 for place in range(4))
