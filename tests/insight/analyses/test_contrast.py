"""Contrast against models that don't know a token, and against differences of small steps."""

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


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_the_gradient_is_that_of_a_token_that_grows(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    found = contrast(model, reading, {})
    step = 1e-6
    for place, id_ in enumerate(reading.source.tolist()):
        sides = []
        for sign in (1, -1):
            with without(model, [id_], 1 + sign * step):
                sides.append(differences(model, reading, found.foils))
        np.testing.assert_allclose(found.gradient_x_input[:, place], (sides[0] - sides[1]) / (2 * step), atol=1e-4)
    assert all(parameter.grad is None for parameter in model.parameters())
