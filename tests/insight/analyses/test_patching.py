"""Patching against hooks that put one state in the place of another, and against what must be so."""

from itertools import product

import numpy as np
import pytest
import torch
from tests.insight.analyses.erasing import logarithms
from tests.properties.models import random_model, random_words

from headway.errors import UserError
from headway.insight.analyses.patching import patching
from headway.insight.analyses.reading import Reading
from headway.model import ModelConfig

KINDS = pytest.mark.parametrize(("norm", "layers", "seed"), [*product(("post", "pre"), (0, 2), (1, 2))])


def told_apart(norm, layers, seed, change):
    """A model, a source with a translation, and another source, of which the model gives another word."""
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 9, "encoder_layers": layers, "decoder_layers": 2}
    model = random_model(ModelConfig(12, 12, norm=norm, share_embeddings="none", **sizes), seed)
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.cross_attention.output.weight *= 4
    for _ in range(1000):
        words = random_words(5)
        other = [*change(words), 3]
        first = logarithms(model, Reading.of(model, [*words, 3], [3]))[0, 4:].argmax()  # no control symbol
        reading = Reading.of(model, [*words, 3], [4 + int(first), *random_words(2), 3])
        try:
            found = patching(model, reading, torch.tensor(other), "other")
        except UserError:
            continue
        return model, reading, Reading(torch.tensor(other), reading.read, reading.given), found
    raise AssertionError("no two sources that the model tells apart")


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


@KINDS
def test_each_place_is_what_a_hook_makes_of_it(norm, layers, seed):
    model, reading, theirs, found = told_apart(norm, layers, seed, lambda words: words[::-1])
    here, there = (
        float(one[found.step, found.word] - one[found.step, found.other_word])
        for one in (logarithms(model, reading), logarithms(model, theirs))
    )
    assert (found.difference, found.other_difference) == pytest.approx((here, there), abs=1e-9)
    assert here > 0 > there
    for stack, values in (("encoder", found.encoder), ("decoder", found.decoder)):
        layers = list(getattr(model, stack).layers)
        assert values.shape == (len(layers) + 1, 6 if stack == "encoder" else found.step + 1)
        for number, layer in enumerate(layers):
            state = state_of(model, layer, theirs)
            wanted = [
                share(with_state(model, reading, layer, place, state), found, here, there)
                for place in range(values.shape[1])
            ]
            np.testing.assert_allclose(values[number + 1], wanted, atol=1e-5)


@KINDS
def test_where_one_word_differs_its_embedding_is_all_and_so_is_the_last_state(norm, layers, seed):
    _, reading, _, found = told_apart(norm, layers, seed, lambda words: [4 + (words[0] - 3) % 8, *words[1:]])
    np.testing.assert_allclose(found.encoder[0], [1.0, *[0.0] * reading.words], atol=1e-6)
    np.testing.assert_allclose(found.decoder[0], 0.0, atol=1e-6)
    np.testing.assert_allclose(found.decoder[-1], [*[0.0] * found.step, 1.0], atol=1e-6)
    assert 0.0 < found.flips_above < 1.0


def test_what_can_not_be_patched_is_refused():
    model = random_model(ModelConfig(12, 12, d_model=8, num_heads=2, d_ff=9, encoder_layers=1, decoder_layers=1), 0)
    reading = Reading.of(model, [5, 6, 3], [7, 3])
    with pytest.raises(UserError, match="the same translation"):
        patching(model, reading, reading.source, "itself")
    with pytest.raises(UserError, match=r"as many tokens as the sentence, 2; it has 3"):
        patching(model, reading, torch.tensor([5, 6, 7, 3]), "longer")
