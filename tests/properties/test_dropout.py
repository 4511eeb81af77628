"""Dropout stands where the paper and the three options say, and nowhere else (section 5.4).

A probability so close to 1 that nothing is kept turns each place off, which a copy of the model in evaluation mode
does too once the parameters behind that place are zero. What little is kept of other probabilities tells them: it
is scaled by 1 / (1 - probability).
"""

from copy import deepcopy

import pytest
import torch
from torch import nn

from headway.kernels.dropout import dropout
from headway.model import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    ModelConfig,
    MultiHeadAttention,
    PositionwiseFeedForward,
    Transformer,
    causal_mask,
)
from headway.model.layers import Residual
from tests.properties.models import EXACT, random_batch, randomised

ALL = 1 - 1e-9
"""Nothing is kept of a tensor of a test."""
SILENT = {
    "dropout": ("attention.output", "feed_forward.outer", "embedding.weight", "positions.weight"),
    "attention_dropout": ("attention.value",),
    "feedforward_dropout": ("feed_forward.outer.weight",),
}
"""Of each option: parameters that are without effect where it drops all. The bias of a layer behind the dropped
weights or hidden values stays; in the values it adds nothing once their weights do."""
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])
OPTIONS = pytest.mark.parametrize("option", SILENT)


def silenced(module: nn.Module, option: str) -> nn.Module:
    """What the module is when this option drops all: a copy for evaluation, with zeros."""
    copy = deepcopy(module).eval()
    parameters = dict(copy.named_parameters())
    silent = [name for name in parameters if any(part in name for part in SILENT[option])]
    assert silent
    with torch.no_grad():
        for name in silent:
            parameters[name].zero_()
    return copy


def transformer(norm: str, **dropouts: float) -> Transformer:
    """Three layers on either side; dropout is 0 but for what is asked for. In double precision, ready for training."""
    config = ModelConfig(
        12,
        12,
        d_model=8,
        num_heads=2,
        encoder_layers=3,
        decoder_layers=3,
        d_ff=9,
        norm=norm,
        positions="learned",
        share_embeddings="none",
        output_bias=True,
        max_length=16,
        **{"dropout": 0.0, **dropouts},
    )
    return randomised(Transformer(config)).train()


@NORMS
@OPTIONS
def test_each_option_of_a_model_reaches_its_places_and_no_other(option, norm):
    model = transformer(norm, **{option: ALL})
    wanted = silenced(model, option)
    source, target = random_batch([(5, 4), (3, 6)], bos_id=2)
    memory = torch.randn(2, source.size(1), 8, dtype=torch.float64)
    mask = causal_mask(target.size(1))
    torch.testing.assert_close(model.encode(source), wanted.encode(source), **EXACT)
    torch.testing.assert_close(model.decode(target, memory, mask), wanted.decode(target, memory, mask), **EXACT)
    torch.testing.assert_close(model(source, target), wanted(source, target), **EXACT)
    plain = deepcopy(model).eval()
    assert not torch.allclose(plain.encode(source), wanted.encode(source))
    assert not torch.allclose(plain.decode(target, memory, mask), wanted.decode(target, memory, mask))


@NORMS
@OPTIONS
@pytest.mark.parametrize("stack", [EncoderLayer, DecoderLayer, Encoder, Decoder])
def test_each_option_of_a_stack_does(stack, option, norm):
    layers = () if stack in (EncoderLayer, DecoderLayer) else (2,)
    module = randomised(stack(8, 2, 9, *layers, **{"dropout": 0.0, option: ALL}, norm=norm)).train()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    given = (x,) if stack in (EncoderLayer, Encoder) else (x, torch.randn(2, 7, 8, dtype=torch.float64))
    torch.testing.assert_close(module(*given), silenced(module, option)(*given), **EXACT)
    assert not torch.allclose(deepcopy(module).eval()(*given), silenced(module, option)(*given))


@pytest.mark.parametrize("stack", [EncoderLayer, DecoderLayer])
def test_the_paper_drops_neither_weights_nor_hidden_values(stack):
    layer = stack(8, 2, 9, dropout=0.0).train()
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    given = (x,) if stack is EncoderLayer else (x, memory)
    assert torch.equal(layer(*given), layer.eval()(*given))


@pytest.mark.parametrize("stack", [EncoderLayer, DecoderLayer])
def test_the_residual_alone_is_left_of_a_layer(stack):
    layer = stack(8, 2, 9, dropout=ALL, norm="pre").train()
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    given = (x,) if stack is EncoderLayer else (x, memory)
    assert torch.equal(layer(*given), x)


@NORMS
def test_the_residual_alone_is_left_of_a_sub_layer(norm):
    residual = randomised(Residual(8, ALL, norm)).train()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    left = residual(x, lambda y: y + 1)
    assert torch.equal(left, x if norm == "pre" else residual.norm(x))


@OPTIONS
@NORMS
def test_none_of_it_in_evaluation(option, norm):
    model, plain = transformer(norm, **{option: 0.9}).eval(), transformer(norm).eval()
    plain.load_state_dict(model.state_dict())
    batch = random_batch([(5, 4), (3, 6)], bos_id=2)
    assert torch.equal(model(*batch), plain(*batch))
    assert not torch.allclose(model.train()(*batch), plain(*batch))


@OPTIONS
def test_each_pass_drops_others(option):
    model = transformer("post", **{option: 0.3})
    source, target = random_batch([(5, 4)], bos_id=2)
    assert not torch.allclose(model.encode(source), model.encode(source))
    memory = torch.randn(1, 6, 8, dtype=torch.float64)
    assert not torch.allclose(model.decode(target, memory), model.decode(target, memory))


def assert_dropped(found: torch.Tensor, whole: float, probability: float) -> None:
    """Of many equal numbers some are zero, the others scaled so that the mean stays."""
    zero = found.abs() < 1e-6
    assert zero.double().mean().item() == pytest.approx(probability, abs=0.03)
    torch.testing.assert_close(
        found[~zero], torch.full_like(found[~zero], whole / (1 - probability)), rtol=4e-3, atol=0
    )


@torch.no_grad()
def giving(linear: nn.Linear, number: float) -> None:
    """Makes its output this number everywhere."""
    linear.weight.zero_()
    linear.bias.fill_(number)


@pytest.mark.parametrize(("options", "probability"), [((), 0.1), ((0.25,), 0.25)], ids=["default", "given"])
@pytest.mark.parametrize(
    ("stack", "place"),
    [
        (EncoderLayer, "self_attention"),
        (EncoderLayer, "feed_forward"),
        (DecoderLayer, "self_attention"),
        (DecoderLayer, "cross_attention"),
        (DecoderLayer, "feed_forward"),
    ],
)
def test_what_a_sub_layer_gives_is_dropped_with_the_probability(stack, place, options, probability):
    layer = stack(64, 4, 8, *options, norm="pre").train()
    for name, module in layer.named_modules():
        if name.endswith(("attention.output", "feed_forward.outer")):
            giving(module, 2.0 if name.startswith(place) else 0.0)
    x = torch.randn(2, 50, 64)
    given = (x,) if stack is EncoderLayer else (x, torch.randn(2, 7, 64))
    assert_dropped(layer(*given) - x, 2.0, probability)


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_a_stack_drops_a_tenth_unless_it_is_told(stack):
    layers = stack(64, 4, 8, 1, norm="pre").train()
    for name, module in layers.named_modules():
        if name.endswith(("attention.output", "feed_forward.outer")):
            giving(module, 2.0 if "self_attention" in name else 0.0)
    layers.norm = nn.Identity()
    x = torch.randn(2, 50, 64)
    given = (x,) if stack is Encoder else (x, torch.randn(2, 7, 64))
    assert_dropped(layers(*given) - x, 2.0, 0.1)


def test_hidden_values_are_dropped_with_the_probability():
    network = PositionwiseFeedForward(256, 256, 0.25).train()
    giving(network.inner, 2.0)
    with torch.no_grad():
        network.outer.weight.copy_(torch.eye(256))
        network.outer.bias.zero_()
    assert_dropped(network(torch.randn(2, 5, 256)), 2.0, 0.25)


@pytest.mark.parametrize(
    ("dtype", "return_weights"), [(torch.float32, False), (torch.float32, True), (torch.bfloat16, False)]
)
def test_attention_weights_are_dropped_with_the_probability(dtype, return_weights):
    """Each of 64 positions sees all alike, and gives one of 64 features: so the output is the weights."""
    attention = MultiHeadAttention(64, 1, 0.25).to(dtype).train()
    for one in (attention.query, attention.key):
        giving(one, 0.0)
    for one in (attention.value, attention.output):
        giving(one, 0.0)
        with torch.no_grad():
            one.weight.copy_(torch.eye(64))
    x = torch.eye(64, dtype=dtype).expand(4, 64, 64)
    output, weights = attention(x, x, x, return_weights=return_weights)
    with torch.no_grad():
        assert_dropped(64 * output.float(), 1.0, 0.25)
    if return_weights:
        torch.testing.assert_close(weights, torch.full((4, 1, 64, 64), 1 / 64))  # as they are before dropout


def test_a_probability_is_exact_to_one_of_32768():
    """Of 2^23 elements that are kept with 2^-15 each, 256 are, within five deviations of 16."""
    kept = dropout(torch.ones(2**23), 1 - 2**-15).count_nonzero().item()
    assert kept == pytest.approx(256, abs=80)


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_sum_of_embedding_and_position_is_dropped_with_the_probability(side):
    """Seen through a stack without layers."""
    config = ModelConfig(
        6, 6, d_model=64, encoder_layers=0, decoder_layers=0, dropout=0.25, positions="learned", norm="post"
    )
    model = Transformer(config).train()
    with torch.no_grad():
        model.get_parameter(f"{side}_embedding.weight").fill_(0.125)  # times sqrt(64)
        model.get_parameter(f"{side}_positions.weight").fill_(1.0)
    ids = torch.full((2, 50), 4)
    seen = model.encode(ids) if side == "source" else model.decode(ids, torch.zeros(2, 1, 64))
    assert_dropped(seen, 2.0, 0.25)
