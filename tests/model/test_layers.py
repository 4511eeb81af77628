"""Feed-forward, dropout, layers and stacks."""

import pytest
import torch
from torch.nn import functional as F

from headway.kernels.dropout import Dropout, dropout
from headway.model import Decoder, DecoderLayer, Encoder, EncoderLayer, PositionwiseFeedForward, causal_mask, cross_mask


def test_feed_forward_is_equation_2():
    network = PositionwiseFeedForward(8, 32)
    x = torch.randn(2, 5, 8)
    inner = torch.clamp(x @ network.inner.weight.T + network.inner.bias, min=0)
    torch.testing.assert_close(network(x), inner @ network.outer.weight.T + network.outer.bias)


@pytest.mark.parametrize(("name", "function"), [("gelu", F.gelu), ("swish", F.silu)])
def test_other_activations(name, function):
    network = PositionwiseFeedForward(8, 32, activation=name)
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(network(x), network.outer(function(network.inner(x))))


def test_feed_forward_is_the_same_at_every_position():
    network, x = PositionwiseFeedForward(8, 32), torch.randn(2, 5, 8)
    order = torch.randperm(5)
    torch.testing.assert_close(network(x)[:, order], network(x[:, order]))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encoder_on_plain_floats_keeps_the_shape(norm):
    x = torch.randn(32, 8, 512)
    assert Encoder(512, 8, 2048, 2, norm=norm)(x).shape == (32, 8, 512)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_on_plain_floats(norm):
    decoder = Decoder(32, 4, 64, 3, norm=norm).eval()
    x, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    output = decoder(x, memory, causal_mask(5))
    assert output.shape == (2, 5, 32)
    changed = torch.cat([x[:, :3], torch.randn(2, 2, 32)], dim=1)
    torch.testing.assert_close(decoder(changed, memory, causal_mask(5))[:, :3], output[:, :3])


def test_post_norm_output_is_normalised_and_pre_norm_is_a_sum():
    x = torch.randn(2, 5, 32)
    post = EncoderLayer(32, 4, 64).eval()(x)
    torch.testing.assert_close(post.mean(-1), torch.zeros(2, 5), atol=1e-5, rtol=0)
    pre = EncoderLayer(32, 4, 64, norm="pre").eval()
    y = pre.self_residual.norm(x)
    z = x + pre.self_attention(y, y, y)[0]
    torch.testing.assert_close(pre(x), z + pre.feed_forward(pre.feed_forward_residual.norm(z)))


def test_rows_of_target_padding_get_nothing_from_memory():
    layer = DecoderLayer(32, 4, 64).eval()
    seen = []
    core = layer.cross_attention.core
    core.register_forward_pre_hook(lambda _, args, kwargs: (args, {"return_weights": True}), with_kwargs=True)
    core.register_forward_hook(lambda _, inputs, output: seen.append(output[1]))
    mask = cross_mask(torch.ones(1, 1, 1, 7, dtype=torch.bool), torch.tensor([[2, 5, 0]]))
    layer(torch.randn(1, 3, 32), torch.randn(1, 7, 32), None, mask)
    [weights] = seen
    assert weights.shape == (1, 4, 3, 7)
    assert weights[:, :, 2].count_nonzero() == 0
    torch.testing.assert_close(weights[:, :, :2].sum(-1), torch.ones(1, 4, 2))


def test_queries_come_from_the_decoder_keys_and_values_from_memory():
    layer = DecoderLayer(32, 4, 64).eval()
    x, memory = torch.randn(1, 3, 32), torch.randn(1, 7, 32)
    seen = []
    attention = layer.cross_attention
    attention.core.register_forward_pre_hook(lambda _, rows: seen.extend(rows))
    layer(x, memory)
    queries, keys, values, _ = seen
    assert torch.equal(keys, attention.key(memory))
    assert torch.equal(values, attention.value(memory))
    assert queries.shape == (1, 3, 32)


def test_dropout_does_nothing_outside_training():
    x = torch.randn(3, 5)
    assert torch.equal(Dropout(0.5).eval()(x), x)


@pytest.mark.parametrize("probability", [-0.5, 1.0, 1.5])
def test_impossible_dropout(probability):
    with pytest.raises(ValueError, match=f"dropout={probability}"):
        Dropout(probability)


def test_dropout_close_to_one_drops_nearly_all():
    assert (dropout(torch.ones(10_000), 0.99999) != 0).float().mean() < 0.01


@pytest.mark.parametrize("options", [{"norm": "Pre"}, {"activation": "tanh"}])
def test_blocks_refuse_options_they_do_not_have(options):
    with pytest.raises(ValueError, match="must be one of"):
        EncoderLayer(32, 4, 64, **options)
