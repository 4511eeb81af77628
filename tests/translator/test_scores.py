"""What `Translator.score` promises: the score of a `Translation` with the same tokens, or where it isn't."""

import pytest
import torch

from headway.decoding import Sampling
from headway.storage import StoredModel
from headway.translator import Translation, Translator
from tests.translator.test_translator import translator

TEXTS = ["the cat", "a dog ran after the cat", "the mat", "sat"]
OPTIONS = [
    {"beam_size": 1},
    {"beam_size": 1, "prefix": "a dog"},
    {"beam_size": 4, "n_best": 4},
    {"beam_size": 3, "no_repeat_ngram": 2},
    {"sample": Sampling(seed=3), "n_best": 3},
]


@pytest.fixture(scope="module")
def stored() -> StoredModel:
    """Large weights, so that probabilities differ."""
    made = translator().stored
    with torch.no_grad():
        for weight in made.model.parameters():
            weight.mul_(2.0 if weight.dim() > 1 else 1.0)
    return made


def pairs(door: Translator, found: list[Translation]) -> list[tuple[float, float]]:
    """The score of each translation, and that of its tokens as a given target."""
    every = [one for first in found for one in (first, *first.alternatives)]
    sources, targets = zip(*(one._pieces.ids for one in every), strict=True)
    return list(zip((one.score for one in every), door.engines.own.score(sources, targets), strict=True))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("models", [1, 2])
def test_in_fp32_they_are_equal(stored, models, options):
    other = translator().stored
    door = Translator(stored, device="cpu", precision="fp32", ensemble=[other] * (models - 1))
    for found, given in pairs(door, door.translate(TEXTS, max_length=9, **options)):
        assert found == pytest.approx(given, abs=1e-3)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_in_bf16_translations_are_rounded_and_scores_of_given_ones_are_not(stored, options):
    rough, exact = (Translator(stored, device="cpu", precision=precision) for precision in ("bf16", "fp32"))
    found = rough.translate(TEXTS, max_length=9, **options)
    assert [given for _, given in pairs(rough, found)] == [given for _, given in pairs(exact, found)]
    differences = [abs(one / given - 1) for one, given in pairs(rough, found)]
    assert 1e-5 < max(differences) < 0.05  # bf16 has 8 bits
