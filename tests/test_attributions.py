"""The attributions that only the benchmark has, by their axioms and against numpy."""

import numpy as np
from benchmarks.attributions import integrated_gradients, value_zeroing
from hypothesis import given, settings

from headway.plain import PlainTransformer
from tests.insight.analyses.erasing import MODELS, TARGETS, WORDS, logarithms, read, without
from tests.properties.models import SEEDS, configs
from tests.test_plain import plain

SMOOTH = configs(share_embeddings="none", decoder_layers=2, activation="swish")
"""ReLU has kinks, over which a sum of few points is no integral."""


class WithoutValues(PlainTransformer):
    """Without one source token's part in the encoder-decoder attention of one layer: its share of its values, taken
    off the sum. Keeps the output of each layer."""

    layer, token = "", 0

    def _attention(self, name, x, memory, mask, heads):
        result, weights = super()._attention(name, x, memory, mask, heads)
        if name == f"{self.layer}.cross_attention":
            values = self._linear(f"{name}.value", memory)[0, self.token].reshape(heads, -1)  # (heads, d_head)
            taken = weights[0, :, :, self.token].T[:, :, None] * values  # (query, heads, d_head)
            result = result - taken.reshape(result.shape) @ self.weights[f"{name}.output.weight"].T
        return result, weights

    def _feed_forward(self, name, x):
        self.outputs[name] = super()._feed_forward(name, x)
        return self.outputs[name]


@settings(max_examples=10)
@given(SMOOTH, SEEDS, WORDS, TARGETS)
def test_gradients_sum_to_the_difference_between_all_and_nothing(config, seed, words, target):
    model, reading = read(config, seed, words, target)

    def score(logits, step):
        return logits.log_softmax(-1)[:, reading.given[step]]

    found = integrated_gradients(model, reading, score)
    steps = range(len(reading.given))
    before = logarithms(model, reading)[steps, reading.given]
    with without(model, reading.source.tolist()):
        difference = before - logarithms(model, reading)[steps, reading.given]
    np.testing.assert_allclose(found.sum(axis=1), difference, rtol=0.01, atol=1e-6)
    assert all(parameter.grad is None for parameter in model.parameters())


@settings(max_examples=10)
@given(MODELS, SEEDS, WORDS, TARGETS)
def test_a_zeroed_value_turns_the_output_as_far_as_numpy_finds(config, seed, words, target):
    model, reading = read(config, seed, words, target)
    one = WithoutValues(config, plain(model).weights)

    def outputs(layer="", token=0):
        one.layer, one.token, one.outputs = layer, token, {}
        one.hidden_states(reading.source.numpy()[None], reading.read.numpy()[None])
        return one.outputs

    whole, wanted = outputs(), []
    for layer in (f"decoder.layers.{number}" for number in range(config.decoder_layers)):
        a = whole[layer][0]
        without = [outputs(layer, token)[layer][0] for token in range(len(reading.source))]
        cosines = [(a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1) for b in without]
        distances = 1 - np.stack(cosines, axis=1)  # (target, source)
        wanted.append(distances / distances.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(value_zeroing(model, reading), np.mean(wanted, axis=0), rtol=1e-4, atol=1e-5)
