"""Noise of both sides: what it changes in one it changes in the other, and protected text stays."""

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.data.options import NoiseSection
from headway.data.pair_noise import (
    aligned_words,
    code_of,
    dictionary_of,
    joined_pairs,
    sentences_of,
    titled,
    with_code,
    with_tags,
)
from headway.text.protected import split_protected

WORDS = {"file": "파일", "table": "표식", "open": "열기", "save": "저장", "chart": "차트", "print": "인쇄"}
TEXTS = st.text(st.sampled_from("ab 가나 .%s{}<>/_é1"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open the file", "Open The File"),
        ('the "old" file, isn\'t it (yes)', 'The "Old" File, Isn\'t It (Yes)'),
        ("_save a %s as {name} file", "_Save A %s As {name} File"),
        ("see https://a.org/b or <b>this one</b> and -dx", "See https://a.org/b Or <b>this One</b> And -Dx"),
        ("파일 calc 열기", "파일 Calc 열기"),
        ("ölig ßa 3d", "Ölig Ssa 3d"),
    ],
)
def test_a_title(text, found):
    assert titled(text) == found


@given(TEXTS)
def test_a_title_differs_in_case_alone(text):
    assert titled(text).casefold() == text.casefold()
    assert titled(titled(text)) == titled(text)


def test_lines_to_copy_are_the_same_on_both_sides():
    """Alone, or after a text and a colon."""
    found = Counter()
    for seed in range(300):
        source, target = with_code(("Open it.", "열기."), Random(seed))
        alone = source == target
        assert alone or (source.removeprefix("Open it: ") == target.removeprefix("열기: "))
        assert alone or (source.startswith("Open it: ") and target.startswith("열기: "))
        found[alone] += 1
    assert min(found.values()) > 100
    codes = {code_of(Random(seed)) for seed in range(1000)}
    assert all(
        any(re.fullmatch(kind, code) for code in codes) for kind in (r"\d+", r"-D.*", r"[cdCD]:\\.*", r"/.*", r"http.*")
    )


def pairs_of(count: int) -> list[tuple[str, str]]:
    """Pairs of three words, in the other order and with endings in Korean."""
    random, made = Random(5), []
    for _ in range(count):
        drawn = random.sample(sorted(WORDS), 3)
        made.append(
            (" ".join(drawn), " ".join(WORDS[one] + random.choice(("", "을", "에서")) for one in reversed(drawn)))
        )
    return made


def test_the_dictionary_finds_translations_without_their_endings():
    found = dictionary_of(pairs_of(200))
    assert {one: found[one] for one in WORDS} == WORDS
    backwards = dictionary_of([(other, one) for one, other in pairs_of(200)])
    assert {backwards[other]: other for other in WORDS.values()} == WORDS
    assert dictionary_of([]) == {}


def words_at(pair, places) -> list[tuple[str, str]]:
    return [(pair[0][slice(*one)], pair[1][slice(*other)]) for one, other in places]


def test_aligned_words_occur_once_and_not_in_code():
    pair = "Open file 12 of Calc, %s in a/file.c and a_file", "Calc의 12 파일 열기, 파일명"
    assert words_at(pair, aligned_words(pair, WORDS)) == [("Open", "열기"), ("12", "12"), ("Calc", "Calc")]
    assert aligned_words(("file file", "파일"), WORDS) == []
    assert aligned_words(("Name", "NAME"), {}) == []  # a change would have to be one of both


@given(st.integers(0, 10**6))
def test_changes_are_the_same_on_both_sides(seed):
    """Without the changes both sides are as before, and each part that was put in is in both."""
    pair = "Save the file 12 and %s", "파일을 12 저장하고 %s"
    source, target = with_tags(pair, WORDS, Random(seed))
    assert source != pair[0]
    tags = [re.findall(r"<[^>]*>", text) for text in (source, target)]
    assert sorted(tags[0]) == sorted(tags[1])
    atoms = [sorted(one.raw for one in split_protected(text) if not isinstance(one, str)) for text in (source, target)]
    assert atoms[0] == atoms[1]
    assert "%s" in atoms[0]
    words = [set(text.split()) - set(old.split()) for text, old in zip((source, target), pair, strict=True)]
    if not tags[0] and len(words[0]) == 1 and not re.search(r"[{$%(]", source.replace("%s", "")):
        [new] = words[0]
        assert new in target


def test_tags_enclose_words_that_translate_each_other():
    found = Counter()
    for seed in range(400):
        source, target = with_tags(("Save the file", "파일을 저장"), WORDS, Random(seed))
        for one, other in zip(
            *(sorted(re.findall(r"(<([\w]+)[^>]*>)([^<]*)</", text)) for text in (source, target)), strict=True
        ):
            assert one[0] == other[0]
            assert WORDS[one[2].lower()] == other[2]
            found[one[2]] += 1
    assert set(found) == {"Save", "file"}


def test_without_aligned_words_the_whole_text_is_in_a_tag():
    source, target = with_tags(("Yes", "예"), {}, Random(1))
    assert re.fullmatch(r"<.*>Yes</.*>", source)
    assert source.replace("Yes", "예") == target


def test_sentences_are_joined_in_the_same_order():
    sentences = sentences_of([("One.", "하나."), ("Two!", "둘!"), ("Three", "셋."), ("四。", "Four.")])
    assert sentences == [("One.", "하나."), ("Two!", "둘!"), ("四。", "Four.")]
    found = {joined_pairs(("Zero.", "영."), sentences[:2], Random(seed)) for seed in range(50)}
    assert ("Zero. One.", "영. 하나.") in found
    assert ("Zero. Two! One.", "영. 둘! 하나.") in found
    assert {len(source.split()) for source, _ in found} == {2, 3}
    assert all(source.count(" ") == target.count(" ") for source, target in found)
    assert joined_pairs(("四。", "Four."), [("五。", "Five.")], Random(1))[0].startswith("四。五。")
    first = sentences[0]
    found = {joined_pairs(first, sentences[:2], Random(seed))[0] for seed in range(50)}
    assert found == {"One.", "One. Two!", "One. Two! Two!"}  # none is joined with itself
    for pair, others in ((("Open", "열기."), sentences), (first, []), (first, [first])):
        assert joined_pairs(pair, others, Random(1)) == pair


def test_each_kind_has_its_share():
    noise = NoiseSection(pairs={"title": 0.1, "copy": 0.2, "joined": 0.1})
    found = Counter()
    for number in range(4000):
        pair = f"open it {number}.", f"열기 {number}."
        changed = noise.applied_to_pair(pair, 3, {}, [("b.", "나.")])
        assert changed == noise.applied_to_pair(pair, 3, {}, [("b.", "나.")])
        title, joined = changed[0].startswith("Open It"), changed[0].startswith(f"{pair[0]} b.")
        found["none" if changed == pair else "title" if title else "joined" if joined else "copy"] += 1
    shares = {kind: count / 4000 for kind, count in found.items()}
    assert shares == pytest.approx({"title": 0.1, "copy": 0.2, "joined": 0.1, "none": 0.6}, abs=0.02)


def test_pairs_without_noise_of_both_sides_have_that_of_the_source():
    noise = NoiseSection(share=1.0, kinds=["upper"], pairs={"title": 0.5})
    found = {noise.applied_to_pair(("open it", "mach auf"), number, {}, ()) for number in range(30)}
    assert found == {("OPEN IT", "mach auf"), ("Open It", "Mach Auf")}
