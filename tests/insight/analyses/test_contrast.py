"""Contrast against models that don't know a token."""

import numpy as np
import torch
from hypothesis import given, settings
from tests.insight.analyses.erasing import MODELS, TARGETS, WORDS, logarithms, read, without
from tests.properties.models import SEEDS

from headway.insight.analyses.contrast import contrast


def differences(model, reading, foils):
    found = logarithms(model, reading)
    steps = range(len(foils))
    return found[steps, reading.given] - found[steps, foils]


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_foils_are_the_likeliest_other_tokens_but_for_those_that_are_chosen(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    found = contrast(model, reading, {})
    for row, given_, foil in zip(logarithms(model, reading), reading.given.tolist(), found.foils, strict=True):
        order = [id_ for id_ in row.argsort(descending=True).tolist() if id_ != given_]
        assert foil == order[0]
    last = len(target)
    assert contrast(model, reading, {last: 7}).foils == [*found.foils[:-1], 7]


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_erasure_is_what_the_difference_loses(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    found = contrast(model, reading, {0: 5})
    before = differences(model, reading, found.foils)
    np.testing.assert_allclose(found.difference, before, atol=1e-6)
    wanted = []
    for id_ in reading.source.tolist():
        with without(model, [id_]):
            wanted.append(before - differences(model, reading, found.foils))
    np.testing.assert_allclose(found.erasure, torch.stack(wanted, dim=1), atol=1e-6)
