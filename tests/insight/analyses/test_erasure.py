"""Erasing a token is translating with a model whose embedding of that token is zero."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from tests.insight.analyses.erasing import MODELS, TARGETS, WORDS, of_given, read, without
from tests.properties.models import SEEDS

from headway.insight.analyses.erasure import erasure, needed


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_the_effect_is_that_of_a_model_that_does_not_know_the_token(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    found = erasure(model, reading)
    before = of_given(model, reading)
    wanted = []
    for id_ in reading.source.tolist():
        with without(model, [id_]):
            wanted.append(before - of_given(model, reading))
    np.testing.assert_allclose(found.effect, torch.stack(wanted, dim=1), atol=1e-6)
    assert found.needs == needed(found.effect)
    with without(model, words):
        np.testing.assert_allclose(found.gain, before - of_given(model, reading), atol=1e-6)
    assert found.mean_gain == pytest.approx(np.mean(found.gain[:-1] or found.gain))
    assert found.detached == (found.mean_gain < 2.0)


def test_what_is_needed_is_what_costs_most_and_never_the_end():
    effect = np.array([[0.5, 2.0, 9.0], [0.09, -3.0, 1.0], [0.1, 0.05, 0.0]], dtype=np.float32)
    assert needed(effect) == [1, None, 0]
    assert needed(effect[:, -1:]) == [None, None, None]


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_a_model_that_hears_nothing_of_the_source_needs_none_of_it(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.cross_attention.output.weight.zero_()
    found = erasure(model, reading)
    assert np.abs(found.effect).max() < 1e-6
    assert found.needs == [None] * len(reading.given)
