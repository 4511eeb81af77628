"""The two sentences that differ by where "not" stands."""

import re
from dataclasses import replace

import pytest
import torch
from tests.test_translator import translator

from headway.cli.inspect import _word_order
from headway.insight import ORDER_PAIRS
from headway.translator import Translator


@pytest.mark.parametrize("pair", ORDER_PAIRS.values(), ids=ORDER_PAIRS)
def test_each_pair_is_the_same_words_in_another_order(pair):
    first, second = (re.findall(r"[\w']+|\.", text) for text in pair)
    assert first != second
    assert sorted(first) == sorted(second)


def test_without_positions_a_model_cannot_tell_them_apart():
    torch.manual_seed(3)
    door = Translator(replace(translator().stored, source_language="en", decoding={"max_length": 8}), device="cpu")
    order = _word_order(door, None)
    assert order is not None
    assert order.sentences == ORDER_PAIRS["en"]
    assert [one.text for one in order.with_positions] == [door.translate([text])[0].text for text in order.sentences]
    alike, also = order.without_positions
    assert alike.text == also.text
    assert alike.score == pytest.approx(also.score, abs=1e-4)
    assert _word_order(Translator(replace(door.stored, source_language="xx")), None) is None
