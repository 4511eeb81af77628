"""Two sentences of the same words in another order: which are tried, and which one is kept."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from tests.translator.test_translator import translator

from headway.insight.order import MOST_TRIED, find_word_order, reorderings
from headway.insight.what_if import Tried, Word
from headway.translator import Translator


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("03 / 04 / 1999, 10:48", ["04 / 03 / 1999, 10:48", "03 / 10 / 1999, 04:48", "48 / 04 / 1999, 10:03"]),
        ("Ein Hund beißt Karl.", ["Ein Karl beißt Hund.", "Hund Ein beißt Karl.", "Karl Hund beißt Ein."]),
        ("a cat, a dog", ["a dog, a cat", "cat a, a dog"]),
        ("아이가 밥은 먹고", ["밥은 아이가 먹고", "먹고 밥은 아이가"]),
    ],
)
def test_two_words_of_one_form_change_places(text, wanted):
    found = reorderings(text)
    assert set(wanted) <= set(found)
    assert found[0] in wanted  # the longest, and no articles
    assert all(sorted(one) == sorted(text) != one for one in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("text", ["", "one", "la la", "May 5, 1999"])
def test_words_of_other_forms_stay(text):
    assert reorderings(text) == []


def outcome(text: str, probability: float) -> Tried:
    return Tried(text, 0.0, tuple(Word(word, probability) for word in text.split()))


def search(texts, translations, blind=lambda text: " ".join(sorted(text.split())), tokens=str.split):
    """translations: of a text its translation and the probability of each word. -> what is kept, and what was tried"""
    tried = []

    def fast(sentences):
        tried.extend(sentences[1::2])
        return [outcome(*translations(one)) for one in sentences]

    found = find_word_order(
        texts,
        tokens,
        lambda sentences: [outcome(*translations(one)) for one in sentences],
        lambda sentences: [outcome(blind(one), 0.1) for one in sentences],
        fast,
    )
    return found, tried


def test_one_is_kept_that_proves_it():
    def translations(text):
        first, *others = text.split()
        return (
            (" ".join([first.upper(), *sorted(others)]), 0.9)
            if "dog" in text
            else (" ".join(sorted(text.split())), 0.9)
        )

    found, tried = search(["one two", "cat two", "dog man"], translations)
    assert found.sentences == ("dog man", "man dog")
    assert found.proves
    assert found.is_convincing
    assert [one.text for one in found.without_positions] == ["dog man", "dog man"]
    assert found.tried == len(tried) == 3


def test_what_the_model_is_sure_of_comes_before_what_it_is_not():
    def translations(text):
        return text, 0.9 if {"bbbb", "aaaa"} <= set(text.split()) else 0.2

    texts = ["x y", "aaaa bbbb long", "aaaa bbbb", "y z"]
    found, _ = search(texts, translations)
    assert found.sentences == ("aaaa bbbb", "bbbb aaaa")  # of two that it is sure of the shorter
    doubtful, tried = search(
        [f"w{'x' * n} v" for n in range(2 * MOST_TRIED)], lambda text: (text, 0.2 + len(text) / 1e4)
    )
    assert doubtful.proves
    assert not doubtful.is_convincing
    assert doubtful.tried == len(tried) == MOST_TRIED  # it went on to look for a better one
    assert len(doubtful.sentences[0]) == max(map(len, tried))


def test_what_differs_without_positions_proves_nothing():
    found, _ = search(["one two"], lambda text: (text, 0.9), blind=lambda text: text)
    assert (found.sentences, found.proves) == (("one two", "two one"), False)


def test_where_nothing_changes_that_is_told():
    found, tried = search(["one two", "three four"], lambda text: (" ".join(sorted(text.split())), 0.9))
    assert (found.proves, found.tried) == (False, 2)
    assert found.with_positions[0] == found.with_positions[1]
    assert tried == ["two one", "four three"]


def test_other_tokens_are_not_tried():
    assert search(["one two"], lambda text: (text, 0.9), tokens=lambda text: list(pairwise(text))) == (None, [])
    assert search(["one two"], lambda text: (text, 0.9), tokens=lambda text: None) == (None, [])
    assert search([], lambda text: (text, 0.9)) == (None, [])


@pytest.fixture(scope="module")
def door() -> Translator:
    torch.manual_seed(3)
    return Translator(replace(translator().stored, decoding={"beam_size": 2}), device="cpu")


def test_without_positions_a_model_cannot_tell_them_apart(door):
    door.domain = ["a dog ran after the cat", "the cat sat on the mat"]
    for text in ("the", "a cat sat"):
        order = door.inspect(text, order=True).order
        one, other = order.sentences
        assert sorted(one.split()) == sorted(other.split())
        assert one != other
        assert [found.text for found in order.with_positions] == [
            door.translate([one])[0].text for one in order.sentences
        ]
        alike, also = order.without_positions
        assert alike.text == also.text
        assert alike.score == pytest.approx(also.score, abs=1e-4)
    assert door.inspect("the cat").order is None


def test_sentences_that_the_model_can_not_read_are_not_tried():
    short = Translator(translator(max_length=6).stored, device="cpu")
    short.domain = ["a dog ran after the cat and the mat"]
    assert short.inspect("the", order=True).order is None


def test_sentences_of_a_domain_that_is_set_later_are_tried():
    torch.manual_seed(3)
    door = Translator(translator().stored, device="cpu")
    assert door.inspect("the", order=True).order is None
    door.domain = ["a dog ran after the cat"]
    assert door.inspect("the", order=True).order.sentences[0] == "a dog ran after the cat"
