"""What int8 costs a model: kept with it and told by its card, as long as it translates as when that was measured."""

from dataclasses import replace

import pytest
from tests.storage.test_model_directory import stored

from headway.storage import Int8Check, load_model, save_model, with_int8

CHECK = Int8Check(1000, fp32_bleu=36, int8_bleu=35.9, bleu_p_value=0.4, fp32_chrf=58, int8_chrf=57.9, chrf_p_value=0.3)


def test_it_is_kept_with_the_model(tmp_path):
    save_model(tmp_path / "m", with_int8(stored(), CHECK))
    found = load_model(tmp_path / "m")
    assert found.int8 == CHECK
    assert found.int8.accepted
    save_model(tmp_path / "without", with_int8(found, None))
    assert load_model(tmp_path / "without").int8 is None


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({}, True),
        ({"int8_bleu": 35.0, "bleu_p_value": 0.06}, True),
        ({"int8_bleu": 35.0, "bleu_p_value": 0.04}, False),
        ({"int8_bleu": 37.0, "bleu_p_value": 0.001}, True),
        ({"int8_bleu": 35.71, "bleu_p_value": 0.001}, True),
        ({"int8_bleu": 35.69, "bleu_p_value": 0.001}, False),
        ({"int8_bleu": 35.8, "chrf_p_value": 0.001}, True),
        ({"int8_bleu": 35.5, "chrf_p_value": 0.001}, False),
        ({"int8_bleu": 35.5, "int8_chrf": 58.1, "chrf_p_value": 0.001}, True),
    ],
    ids=str,
)
def test_int8_may_not_be_certainly_worse_unless_it_loses_little_bleu(changes, accepted):
    check = replace(CHECK, **changes)
    assert check.accepted == accepted
    assert ("as well as" in str(check)) == accepted
    assert ("worse than" in str(check)) != accepted


def test_the_card_says_it_once():
    """What the measured figures are, in one line; other lines stay."""
    known = stored()
    told = with_int8(known, CHECK)
    assert told.card == f"# card\n\n{CHECK}\n"
    assert "BLEU 35.90 and 36.00 (p = 0.40), chrF 57.90 and 58.00 (p = 0.30), over 1,000" in told.card
    again = with_int8(told, replace(CHECK, pairs=2))
    assert again.card.count("On CPU") == 1
    assert "over 2 validation" in again.card
    assert with_int8(again, None).card.split() == known.card.split()
    assert known.int8 is None
