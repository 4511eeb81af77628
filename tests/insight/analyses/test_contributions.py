"""ALTI+: terms that sum to what the layer gives, and contributions as loops over the papers' equations have them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.models import SEEDS, configs, random_model, random_words

from headway.errors import UserError
from headway.insight.analyses.contributions import contributions, decomposed
from headway.insight.recording import record_pass
from headway.model import ModelConfig, ScaledDotProductAttention

MODELS = configs(decoder_layers=2)
LENGTHS = st.tuples(st.integers(1, 5), st.integers(0, 5))


def passed(config, seed, words):
    model = random_model(config, seed)
    source, target = ([*random_words(count), config.eos_id] for count in words)
    return model, source, target, record_pass(model, source, target)


@settings(max_examples=15)
@given(MODELS, SEEDS, LENGTHS)
def test_the_terms_of_a_layer_sum_to_its_result(config, seed, words):
    model, _, _, arrays = passed(config, seed, words)
    stacks = {"encoder": model.encoder.layers, "decoder": model.decoder.layers}
    for stack, layers in stacks.items():
        for number, layer in enumerate(layers):
            name = f"{stack}.layers.{number}"
            for kind in ("self", "cross") if stack == "decoder" else ("self",):
                found = decomposed(layer, name, kind, arrays)
                wanted = arrays[f"{name}.{kind}_residual.{'sum' if config.norm == 'pre' else 'normalised'}"]
                np.testing.assert_allclose(found.result, wanted)
                np.testing.assert_allclose(found.terms.sum(axis=1) + found.bias, wanted, atol=1e-4)


class Loops:
    """The papers' equations for one model and pair, a number at a time, from its parameters alone."""

    def __init__(self, model, source, target):
        self.weights = {name: one.detach().numpy() for name, one in model.named_parameters()}
        self.config = model.config
        self.activation = model.encoder.layers[0].feed_forward.activation if model.encoder.layers else None
        with torch.no_grad():
            self.x = model.embed_source(torch.tensor([source]))[0].numpy()
            self.y = model.embed_target(torch.tensor([[model.config.bos_id, *target[:-1]]]))[0].numpy()
        self.decoder_activation = model.decoder.layers[0].feed_forward.activation

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def normalise(self, name, x):
        if f"{name}.weight" not in self.weights:
            return x
        deviation = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        centred = (x - x.mean(axis=-1, keepdims=True)) / deviation
        return centred * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def shares(self, layer, kind, heads, queries, memory, causal):
        """Of one attention, and its result: loops over queries, keys and heads. The residual connection's is given by
        itself."""
        name, norm = f"{layer}.{kind}_attention", f"{layer}.{kind}_residual.norm"
        pre = self.config.norm == "pre"
        read = self.normalise(norm, queries) if pre else queries
        keys_of = read if memory is None else memory
        size = self.config.d_model // heads
        q, k = self.linear(f"{name}.query", read), self.linear(f"{name}.key", keys_of)
        values = keys_of @ self.weights[f"{name}.value.weight"].T
        output = self.weights[f"{name}.output.weight"]
        constant = self.weights[f"{name}.output.bias"] + output @ self.weights[f"{name}.value.bias"]
        found, own, results = [], [], []
        for i in range(len(queries)):
            visible = i + 1 if causal else len(keys_of)
            terms = np.zeros((len(keys_of), self.config.d_model))
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                scores = np.array([q[i, part] @ k[j, part] / np.sqrt(size) for j in range(visible)])
                weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
                for j in range(visible):
                    terms[j] += weights[j] * (output[:, part] @ values[j, part])
            residual = queries[i]
            total = terms.sum(axis=0) + constant + residual
            if pre:
                result = total
            else:
                result = self.normalise(norm, total)
                deviation = np.sqrt(total.var() + 1e-5)
                gamma = self.weights[f"{norm}.weight"]
                terms = np.array([gamma * (one - one.mean()) / deviation for one in terms])
                residual = gamma * (residual - residual.mean()) / deviation
            if memory is None:
                terms[i] += residual
                residual = np.zeros_like(residual)
            nearness = [max(0.0, np.abs(result).sum() - np.abs(result - one).sum()) for one in terms]
            of_residual = max(0.0, np.abs(result).sum() - np.abs(result - residual).sum())
            if memory is None:
                of_residual = 0.0
            whole = sum(nearness) + of_residual
            if whole == 0.0 and memory is None:
                nearness[i], whole = 1.0, 1.0
            elif whole == 0.0:
                of_residual, whole = 1.0, 1.0
            found.append([one / whole for one in nearness])
            own.append(of_residual / whole)
            results.append(result)
        return np.array(found), np.array(own), np.array(results)

    def feed_forward(self, layer, x, activation):
        name, norm = f"{layer}.feed_forward", f"{layer}.feed_forward_residual.norm"
        read = self.normalise(norm, x) if self.config.norm == "pre" else x
        hidden = activation(torch.from_numpy(self.linear(f"{name}.inner", read))).numpy()
        total = x + self.linear(f"{name}.outer", hidden)
        return total if self.config.norm == "pre" else self.normalise(norm, total)

    def contributions(self):
        x, of_encoder = self.x, np.eye(len(self.x))
        for number in range(self.config.encoder_layers):
            layer = f"encoder.layers.{number}"
            shares, _, x = self.shares(layer, "self", self.config.num_heads, x, None, False)
            of_encoder = shares @ of_encoder
            x = self.feed_forward(layer, x, self.activation)
        memory = self.normalise("encoder.norm", x)
        heads = self.config.decoder_num_heads or self.config.num_heads
        y, source, target = self.y, np.zeros((len(self.y), len(self.x))), np.eye(len(self.y))
        for number in range(self.config.decoder_layers):
            layer = f"decoder.layers.{number}"
            shares, _, y = self.shares(layer, "self", heads, y, None, True)
            source, target = shares @ source, shares @ target
            shares, own, y = self.shares(layer, "cross", heads, y, memory, False)
            source = own[:, None] * source + shares @ of_encoder
            target = own[:, None] * target
            y = self.feed_forward(layer, y, self.decoder_activation)
        return source, target


@settings(max_examples=15)
@given(MODELS, SEEDS, LENGTHS)
def test_contributions_are_those_of_the_equations(config, seed, words):
    model, source, target, arrays = passed(config, seed, words)
    found = contributions(model, arrays)
    of_source, of_target = Loops(model, source, target).contributions()
    np.testing.assert_allclose(found.source, of_source, atol=2e-3)  # from float32, where a share may hang on a tie
    np.testing.assert_allclose(found.target, of_target, atol=2e-3)


@settings(max_examples=15)
@given(MODELS, SEEDS, LENGTHS)
def test_shares_sum_to_one_and_nothing_comes_from_later_words(config, seed, words):
    model, source, target, arrays = passed(config, seed, words)
    found = contributions(model, arrays)
    assert found.source.shape == (len(target), len(source))
    assert min(found.source.min(), found.target.min()) >= 0.0
    np.testing.assert_allclose(found.source.sum(1) + found.target.sum(1), 1.0, atol=1e-5)
    np.testing.assert_allclose(found.source_share, found.source.sum(1), atol=1e-6)
    assert np.triu(found.target, 1).max() == 0.0
    assert found.encoder.shape == (config.encoder_layers, len(source), len(source))
    assert found.cross.shape == (2, len(target), len(source))
    np.testing.assert_allclose(found.decoder.sum(-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("factor", "share"), [(0.0, 0.0), (1e6, 1.0)])
def test_a_decoder_that_hears_nothing_of_the_source_or_nothing_else(norm, factor, share):
    """The output of encoder-decoder attention is the whole, or nothing at all."""
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 9, "encoder_layers": 1, "decoder_layers": 2}
    model = random_model(ModelConfig(12, 12, norm=norm, **sizes), seed=3)
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.cross_attention.output.weight *= factor
            layer.cross_attention.output.bias.zero_()
            layer.cross_attention.value.bias.zero_()
    found = contributions(model, record_pass(model, [5, 6, 7, 3], [8, 9, 3]))
    np.testing.assert_allclose(found.source_share, share, atol=1e-3)


class Same(ScaledDotProductAttention):
    """A core of one's own that computes what the usual one does."""


class Gated(ScaledDotProductAttention):
    """Gives something else than its weights times its values."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        heads, weights = super().forward(queries, keys, values, mask, return_weights=return_weights)
        return heads * queries.sigmoid(), weights


def test_a_core_of_ones_own_has_contributions_if_it_adds_up_values():
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 9, "encoder_layers": 1, "decoder_layers": 2}
    source, target = [5, 6, 7, 3], [8, 9, 3]
    usual, same, gated = (random_model(ModelConfig(12, 12, **sizes), seed=3) for _ in range(3))
    for model, core in ((same, Same), (gated, Gated)):
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.self_attention.core = core(2)
    wanted, found = (contributions(model, record_pass(model, source, target)) for model in (usual, same))
    np.testing.assert_array_equal(found.source, wanted.source)
    np.testing.assert_array_equal(found.target, wanted.target)
    with pytest.raises(UserError, match="contributions: core Gated"):
        contributions(gated, record_pass(gated, source, target))
