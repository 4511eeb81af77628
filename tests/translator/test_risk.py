"""Minimum-Bayes-risk choice: by sacreBLEU's chrF, each candidate against all."""

import math

import pytest
from sacrebleu.metrics.chrf import CHRF

from headway.decoding import Sampling
from headway.errors import UserError
from headway.translator.risk import least_risk
from headway.translator.translation import Translation
from tests.translator.test_translator import translator

TEXTS = ["a dog runs", "the dog runs", "the dog runs home", "a cat", "the dog runs"]
SCORES = [-1.0, -1.5, -2.0, -0.1, -1.5]


@pytest.fixture(scope="module")
def door():
    return translator(max_length=20)


def candidates() -> Translation:
    best, *others = [Translation(text, score, "eos") for text, score in zip(TEXTS, SCORES, strict=True)]
    return Translation(best.text, best.score, best.stopped, others)


@pytest.mark.parametrize("drawn", [True, False])
def test_the_order_is_that_of_the_expected_chrf(drawn):
    chrf = CHRF()
    weights = [1.0 if drawn else math.exp(score) for score in SCORES]
    expected = {
        one: sum(weight * chrf.sentence_score(one, [other]).score for weight, other in zip(weights, TEXTS, strict=True))
        for one in TEXTS
    }
    wanted = sorted(expected, key=lambda text: -expected[text])
    found = least_risk(candidates(), 3, drawn=drawn)
    assert [found.text, *(one.text for one in found.alternatives)] == wanted[:3]
    assert (found.text == "a cat") == (not drawn)  # the most probable one
    assert found.score == SCORES[TEXTS.index(found.text)]


def test_one_candidate_is_the_choice():
    blank = Translation("", None, "blank")
    assert [least_risk(blank, 2, drawn=drawn) for drawn in (False, True)] == [blank, blank]


@pytest.mark.parametrize("sample", [None, Sampling(temperature=0.8, seed=3)])
def test_a_translator_chooses_among_its_own(door, sample):
    """Among those that it gives for n_best; a blank text stays blank."""
    texts = ["the cat sat", "", "a dog ran after the cat"]
    width = {} if sample else {"beam_size": 6}
    chosen = door.translate(texts, mbr=6, n_best=2, sample=sample)
    for one, found in zip(door.translate(texts, n_best=6, sample=sample, **width), chosen, strict=True):
        assert found == least_risk(one, 2, drawn=sample is not None)
    assert [one.text for one in door.translate(texts, mbr=6, sample=sample)] == [one.text for one in chosen]
    assert door.translate(texts, mbr=6, sample=sample)[0].alternatives == []


@pytest.mark.parametrize("options", [{"mbr": 1}, {"mbr": 3, "n_best": 4}])
def test_too_few_candidates_are_refused(door, options):
    with pytest.raises(UserError, match="must be at least 2, and at least n_best"):
        door.translate(["the cat"], **options)
