"""Two sentences of the same words in another order."""

import re
from dataclasses import replace

import pytest
import torch
from tests.translator.test_translator import translator

from headway.insight import ORDER_PAIRS, WordOrder, word_order
from headway.translator import Translator


@pytest.mark.parametrize("pair", ORDER_PAIRS.values(), ids=ORDER_PAIRS)
def test_each_pair_is_the_same_words_in_another_order(pair):
    first, second = (re.findall(r"[\w']+|[.,]", text) for text in pair)
    assert first != second
    assert sorted(first) == sorted(second)


@pytest.fixture(scope="module")
def door() -> Translator:
    torch.manual_seed(3)
    return Translator(replace(translator().stored, source_language="en", decoding={"beam_size": 2}), device="cpu")


@pytest.mark.parametrize("language", ["en", "xx"])
def test_without_positions_a_model_cannot_tell_them_apart(door, language):
    stored = replace(door.stored, source_language=language)
    order = Translator(stored, device="cpu").inspect("the cat sat", cases="usual").order
    sentences = ("the cat sat", "sat cat the") if language == "xx" else ORDER_PAIRS["en"]
    assert (order.kind, order.sentences) == ("reversed" if language == "xx" else "not", sentences)
    assert [one.text for one in order.with_positions] == [door.translate([text])[0].text for text in sentences]
    alike, also = order.without_positions
    assert alike.text == also.text
    assert alike.score == pytest.approx(also.score, abs=1e-4)


def test_sentences_that_were_not_tried(door):
    assert door.inspect("the cat").order == WordOrder("not", ORDER_PAIRS["en"])
    assert word_order("xx", " a  b ") == WordOrder("reversed", (" a  b ", "b a"))
    for text in ("cat", "la la", "a b a"):
        assert word_order("xx", text) is None


def test_sentences_that_the_model_can_not_read_are_not_tried():
    short = Translator(replace(translator(max_length=6).stored, source_language="en"), device="cpu")
    order = short.inspect("the", cases="usual").order
    assert order == WordOrder("not", ORDER_PAIRS["en"])
