"""Patching against hooks that put one state in the place of another, and against what must be so."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from tests.insight.analyses.erasing import MODELS, TARGETS, WORDS, logarithms, read
from tests.properties.models import SEEDS

from headway.errors import UserError
from headway.insight.analyses import Reading, patching


def other_source(reading, place, id_):
    changed = reading.source.clone()
    changed[place] = id_
    return changed


def patched(model, reading, other):
    """The result, of a pair that the model tells apart."""
    try:
        return patching(model, reading, other, "other")
    except UserError:
        assume(False)


def share(logits, found, here, there):
    difference = float(logits[found.step, found.word] - logits[found.step, found.other_word])
    return (here - difference) / (here - there)


def with_state(model, reading, layer, place, state):
    """Logits of the model, of which one layer's output is another at one place."""

    def put(_, inputs, output):
        output = output.clone()
        output[:, place] = state[:, place]
        return output

    handle = layer.register_forward_hook(put)
    try:
        return logarithms(model, reading)
    finally:
        handle.remove()


def state_of(model, layer, reading):
    kept = []
    handle = layer.register_forward_hook(lambda _, inputs, output: kept.append(output))
    logarithms(model, reading)
    handle.remove()
    return kept[0]


@given(MODELS, SEEDS, WORDS, TARGETS)
def test_each_place_is_what_a_hook_makes_of_it(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    other = torch.tensor([*reversed(words), config.eos_id])
    found = patched(model, reading, other)
    theirs = Reading(other, reading.read, reading.given)
    here, there = (
        float(one[found.step, found.word] - one[found.step, found.other_word])
        for one in (logarithms(model, reading), logarithms(model, theirs))
    )
    assert (found.difference, found.other_difference) == pytest.approx((here, there), abs=1e-9)
    assert here > 0 > there
    assume(here - there > 1e-3)
    for stack, values in (("encoder", found.encoder), ("decoder", found.decoder)):
        layers = list(getattr(model, stack).layers)
        assert values.shape == (len(layers) + 1, len(other) if stack == "encoder" else found.step + 1)
        for number, layer in enumerate(layers):
            state = state_of(model, layer, theirs)
            wanted = [
                share(with_state(model, reading, layer, place, state), found, here, there)
                for place in range(values.shape[1])
            ]
            np.testing.assert_allclose(values[number + 1], wanted, atol=1e-5)


@given(MODELS, SEEDS, WORDS, TARGETS)
def test_where_one_word_differs_its_embedding_is_all_and_so_is_the_last_state(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    found = patched(model, reading, other_source(reading, 0, 4 + (words[0] - 3) % 8))
    assume(found.difference - found.other_difference > 1e-3)
    np.testing.assert_allclose(found.encoder[0], [1.0, *[0.0] * len(words)], atol=1e-6)
    np.testing.assert_allclose(found.decoder[0], 0.0, atol=1e-6)
    np.testing.assert_allclose(found.decoder[-1], [*[0.0] * found.step, 1.0], atol=1e-6)
    assert 0.0 < found.flips_above < 1.0


def test_what_can_not_be_patched_is_refused():
    torch.manual_seed(0)
    from headway.model import ModelConfig
    from tests.properties.models import random_model

    model = random_model(ModelConfig(12, 12, d_model=8, num_heads=2, d_ff=9, encoder_layers=1, decoder_layers=1), 0)
    reading = Reading.of(model, [5, 6, 3], [7, 3])
    with pytest.raises(UserError, match="the same translation"):
        patching(model, reading, reading.source, "itself")
    with pytest.raises(UserError, match=r"as many tokens as the sentence, 2; it has 3"):
        patching(model, reading, torch.tensor([5, 6, 7, 3]), "longer")
