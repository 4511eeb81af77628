"""The forward pass in numpy is torch's, whatever the config; it knows nothing of torch's code."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.insight.maps import attention_names
from headway.insight.recording import record_pass
from headway.model import Transformer
from headway.plain import PlainTransformer
from tests.properties.models import EOS, LENGTHS, SEEDS, configs, random_batch, random_model

CONFIGS = (
    configs()
    | configs(decoder_layers=0)
    | configs(decoder_d_ff=5)
    | configs(d_model=5, num_heads=1, decoder_num_heads=None)
)


def plain(model: Transformer) -> PlainTransformer:
    return PlainTransformer(model.config, {name: one.detach().numpy() for name, one in model.named_parameters()})


@given(CONFIGS, SEEDS, LENGTHS, st.integers(0, 2))
def test_logits_are_torchs_in_double_precision(config, seed, lengths, more):
    """To ten digits, but gelu's error function is known to seven, and fairseq's table is in single precision."""
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id, more)
    found = plain(model).logits(source.numpy(), target.numpy())
    tolerance = 1e-5 if config.activation == "gelu" or config.positions == "fairseq" else 1e-10
    np.testing.assert_allclose(found, model(source, target).detach().numpy(), rtol=0, atol=tolerance)


@given(CONFIGS, SEEDS, LENGTHS, st.integers(0, 2))
def test_logits_are_torchs_in_single_precision(config, seed, lengths, more):
    model = random_model(config, seed).float()
    source, target = random_batch(lengths, config.bos_id, more)
    found = plain(model).logits(source.numpy(), target.numpy())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, model(source, target).detach().numpy(), rtol=0, atol=1e-5)


@given(configs(), SEEDS, LENGTHS)
def test_attention_of_each_row_is_that_of_the_record(config, seed, lengths):
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id)
    _, seen = plain(model).hidden_states(source.numpy(), target.numpy())
    for row, (source_length, target_length) in enumerate(lengths):
        arrays = record_pass(
            model, source[row, : source_length + 1].tolist(), [*target[row, 1 : target_length + 1].tolist(), EOS]
        )
        for layer, name in zip(seen, np.ravel(attention_names(config)["cross"]), strict=True):
            found = layer[row, :, : target_length + 1, : source_length + 1]
            np.testing.assert_allclose(found, arrays[name], rtol=0, atol=1e-5)
            assert not layer[row, :, :, source_length + 1 :].any()
