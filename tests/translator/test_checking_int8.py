"""What int8 costs: scores of CTranslate2's translations by the model's own options, as sacreBLEU has them."""

from pathlib import Path

import pytest
import torch
from sacrebleu import corpus_bleu, corpus_chrf

from headway.errors import UserError
from headway.storage import Int8Check
from headway.storage.untrusted import parse_record
from headway.translator import Translator, int8
from headway.translator.int8 import check_int8
from tests.decoding.test_ctranslate2_model import stored

TEXTS = [f"{one} {other} the cat sat on {number}" for number, one in enumerate("abcdefghij") for other in "uvwxyzABCD"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model():
    torch.manual_seed(0)
    one = stored()
    one.decoding.update(max_length=12, beam_size=2)
    return one


def test_both_are_scored_on_the_same_text(model):
    translated = {
        precision: [
            one.text
            for one in Translator(model, device="cpu", engine="ctranslate2", precision=precision).translate(TEXTS)
        ]
        for precision in ("fp32", "int8")
    }
    assert translated["fp32"] != translated["int8"]
    references = translated["fp32"]
    found = check_int8(model, TEXTS, references, "char")
    for precision, texts in translated.items():
        bleu, chrf = corpus_bleu(texts, [references], tokenize="char").score, corpus_chrf(texts, [references]).score
        assert getattr(found, f"{precision}_bleu") == pytest.approx(bleu)
        assert getattr(found, f"{precision}_chrf") == pytest.approx(chrf)
    assert found.pairs == 100
    assert found.fp32_bleu == pytest.approx(100)
    assert not found.accepted
    assert parse_record(Int8Check, vars(found), Path()) == found  # sacreBLEU's best is above 100


def test_of_many_pairs_some_from_all_places_are_taken(model, monkeypatch):
    monkeypatch.setattr(int8, "MOST", 25)
    of_many = check_int8(model, TEXTS, TEXTS, "13a")
    monkeypatch.setattr(int8, "FEWEST", 25)
    assert of_many == check_int8(model, TEXTS[::4], TEXTS[::4], "13a")
    assert of_many.pairs == 25


def test_too_few_pairs_are_refused(model):
    with pytest.raises(UserError, match="int8 needs 100 validation pairs or more to be compared with fp32, not 99"):
        check_int8(model, TEXTS[1:], TEXTS[1:], "13a")
