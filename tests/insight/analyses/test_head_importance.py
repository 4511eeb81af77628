"""The importance of heads against a model that loses them one by one, sentence by sentence."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.models import SEEDS, configs, random_model

from headway.insight.analyses.head_importance import head_importance
from headway.insight.editing import edited_model
from headway.insight.what_if import HeadOff
from headway.model import ModelConfig

WORDS = st.lists(st.integers(4, 11), min_size=1, max_size=5)
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3)


def attentions(model):
    yield from (("encoder", layer, one.self_attention) for layer, one in enumerate(model.encoder.layers))
    yield from (("decoder", layer, one.self_attention) for layer, one in enumerate(model.decoder.layers))
    yield from (("cross", layer, one.cross_attention) for layer, one in enumerate(model.decoder.layers))


@torch.no_grad()
def scores(model, sources, targets):
    """Log-probabilities of each target, each sentence by itself."""
    found = []
    for source, target in zip(sources, targets, strict=True):
        logits = model(torch.tensor([source]), torch.tensor([[model.config.bos_id, *target[:-1]]]))[0]
        found.append(float(logits.log_softmax(-1)[range(len(target)), target].sum()))
    return np.array(found)


@settings(max_examples=10)
@given(configs(decoder_layers=2), SEEDS, PAIRS)
def test_ablation_is_what_a_model_without_the_head_loses(config, seed, pairs):
    model = random_model(config, seed)
    sources, targets = ([[*pair[side], config.eos_id] for pair in pairs] for side in (0, 1))
    found = head_importance(model, sources, targets)
    tokens = sum(map(len, targets))
    whole = scores(model, sources, targets).sum()
    assert (found.sentences, found.tokens) == (len(pairs), tokens)
    np.testing.assert_allclose(found.log_probability, whole / tokens, atol=1e-5)
    assert set(found.ablation) == {kind for kind, _, _ in attentions(model)}
    for kind, layer, attention in attentions(model):
        for head in range(attention.num_heads):
            edited = edited_model(model, [HeadOff(attention=kind, layer=layer, head=head)])
            lost = (whole - scores(edited, sources, targets).sum()) / tokens
            np.testing.assert_allclose(found.ablation[kind][layer, head], lost, atol=1e-5)


@settings(max_examples=10)
@given(configs(decoder_layers=1), SEEDS, PAIRS)
def test_the_proxy_is_the_slope_of_each_sentence_where_the_head_is_turned_down(config, seed, pairs):
    model = random_model(config, seed)
    sources, targets = ([[*pair[side], config.eos_id] for pair in pairs] for side in (0, 1))
    found = head_importance(model, sources, targets).gradient
    step = 1e-5
    for kind, layer, attention in attentions(model):
        size = config.d_model // attention.num_heads
        for head in range(attention.num_heads):
            rows = attention.output.weight[:, head * size : (head + 1) * size]
            kept, sides = rows.detach().clone(), []
            for factor in (1 + step, 1 - step):
                with torch.no_grad():
                    rows.copy_(kept * factor)
                sides.append(scores(model, sources, targets))
            with torch.no_grad():
                rows.copy_(kept)
            slopes = np.abs(sides[0] - sides[1]) / (2 * step)
            np.testing.assert_allclose(found[kind][layer, head], slopes.sum() / sum(map(len, targets)), atol=1e-4)


@pytest.mark.parametrize("trains", [True, False])
def test_a_model_without_a_decoder_layer_needs_no_head(trains):
    """Its decoder reads nothing of the source."""
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 9, "encoder_layers": 2, "decoder_layers": 0}
    model = random_model(ModelConfig(12, 12, **sizes), seed=3).requires_grad_(trains)
    found = head_importance(model, [[5, 6, 3]], [[7, 3]])
    np.testing.assert_allclose(found.log_probability, scores(model, [[5, 6, 3]], [[7, 3]]).sum() / 2, atol=1e-5)
    for values in (found.ablation, found.gradient):
        assert {kind: one.tolist() for kind, one in values.items()} == {"encoder": [[0.0, 0.0]] * 2}
