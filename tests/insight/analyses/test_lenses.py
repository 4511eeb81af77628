"""Lenses: models that are cut off after a layer say the same."""

import copy

import numpy as np
import torch
from hypothesis import given, settings
from tests.insight.analyses.erasing import MODELS, TARGETS, WORDS, logarithms, of_given, read
from tests.properties.models import SEEDS

from headway.insight.analyses.decoder_lens import cut_encoders, given_by_encoder_layer
from headway.insight.analyses.logit_lens import logit_lens


def cut(model, stack, count):
    copied = copy.deepcopy(model)
    getattr(copied, stack).layers = torch.nn.ModuleList(list(getattr(copied, stack).layers)[:count])
    return copied


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_the_logit_lens_is_a_decoder_of_fewer_layers(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    found = logit_lens(model, reading)
    assert found.log_probability.shape == (3, len(reading.given))
    for count in range(3):
        short = cut(model, "decoder", count)
        np.testing.assert_allclose(found.log_probability[count], of_given(short, reading), atol=1e-6)
        best = logarithms(short, reading).topk(5)
        assert found.ids[count] == best.indices.tolist()
        np.testing.assert_allclose(found.probabilities[count], best.values.exp(), atol=1e-9)


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_decoder_lens_is_an_encoder_of_fewer_layers(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    wanted = [of_given(cut(model, "encoder", count), reading) for count in range(config.encoder_layers + 1)]
    np.testing.assert_allclose(given_by_encoder_layer(model, reading), torch.stack(wanted), atol=1e-6)
    assert len(model.encoder.layers) == config.encoder_layers
    for count, one in enumerate(cut_encoders(model)):
        assert len(one.encoder.layers) == count
        assert one.decoder.layers[0].self_attention.query.weight is model.decoder.layers[0].self_attention.query.weight
