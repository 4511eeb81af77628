"""Gradients against differences of values (torch's gradcheck), in double precision."""

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from headway.kernels.cross_entropy import output_cross_entropy
from headway.kernels.dropout import _bits, _Kept
from headway.model import (
    DecoderLayer,
    EncoderLayer,
    ModelConfig,
    PositionwiseFeedForward,
    attend,
    causal_mask,
)
from headway.model.layers import Residual
from headway.training.loss import TranslationLoss
from tests.packed import teacher_forced
from tests.properties.models import Body, attention_by, padded, random_model, randomised

EVERY_BODY: list[Body] = ["readable", "fused", "plain"]


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def gradients_are_right(module: nn.Module, *inputs: Tensor, **options) -> bool:
    """Those of the inputs and of every weight."""
    names = [name for name, _ in module.named_parameters()]

    def run(*tensors: Tensor) -> Tensor:
        weights = dict(zip(names, tensors[len(inputs) :], strict=True))
        return torch.func.functional_call(module, weights, tensors[: len(inputs)], options)

    return gradcheck(run, (*inputs, *(parameter.detach().requires_grad_() for parameter in module.parameters())))


@pytest.mark.parametrize("masking", ["none", "causal", "a row that sees nothing"])
@pytest.mark.parametrize("body", EVERY_BODY)
def test_attention(body, masking):
    mask = None if masking == "none" else causal_mask(3)
    if masking == "a row that sees nothing":
        mask = mask.clone()
        mask[..., 1, :] = False
    with attention_by(body):
        assert gradcheck(
            lambda *inputs: attend(*inputs, mask, return_weights=body == "readable")[0],
            (normal(1, 2, 3, 2), normal(1, 2, 3, 2), normal(1, 2, 3, 2)),
        )


@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_feed_forward(activation):
    assert gradients_are_right(randomised(PositionwiseFeedForward(4, 6, activation=activation)), normal(1, 3, 4))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_residual_and_norm(norm):
    assert gradients_are_right(randomised(Residual(4, 0.0, norm)), normal(2, 4), sublayer=torch.tanh)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("body", EVERY_BODY)
def test_layers(body, norm):
    def hidden(place: int) -> Tensor:
        return (torch.arange(3) != place)[None, None, None]

    x, memory = normal(1, 3, 4), normal(1, 3, 4)
    with attention_by(body):
        encoder, decoder = (randomised(layer(4, 2, 3, 0.0, norm=norm)) for layer in (EncoderLayer, DecoderLayer))
        assert gradients_are_right(encoder, x, mask=hidden(1))
        assert gradients_are_right(decoder, x, memory, target_mask=causal_mask(3), memory_mask=hidden(0))


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_loss(with_bias, label_smoothing):
    targets = torch.tensor([4, 0, 2])
    inputs = (normal(3, 2), normal(5, 2), *([normal(5)] if with_bias else []))

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return output_cross_entropy(hidden, weight, bias, targets, label_smoothing)

    assert gradcheck(loss, inputs)


@pytest.mark.parametrize("with_bias", [False, True])
def test_weighted_loss(with_bias):
    """One target is ignored."""
    targets, weights = torch.tensor([4, 0, 2]), torch.tensor([0.5, 2.0, -1.0])
    inputs = (normal(3, 2), normal(5, 2), *([normal(5)] if with_bias else []))

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return output_cross_entropy(hidden, weight, bias, targets, 0.1, ignore_index=0, weights=weights)

    assert gradcheck(loss, inputs)


def test_dropout():
    bits = _bits(torch.Size([4, 5]), 0.6)
    assert gradcheck(lambda x: _Kept.apply(x, bits), (normal(4, 5),))


@pytest.mark.parametrize("body", ["fused", "plain"])
@pytest.mark.parametrize("variant", [{}, {"norm": "pre", "positions": "learned", "share_embeddings": "none"}])
def test_the_loss_of_a_whole_model(body, variant):
    """Of every weight, through padding on both sides and all that is shared."""
    sizes = {"d_model": 4, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_ff": 3, "max_length": 4}
    model = random_model(ModelConfig(6, 6, dropout=0.0, output_bias=True, **{**sizes, **variant}), seed=1)
    batch = teacher_forced(padded([[4, 5, 3], [5, 3]]), padded([[2, 4, 5, 3], [2, 3]]))
    with attention_by(body):
        assert gradients_are_right(TranslationLoss(model, label_smoothing=0.1), *batch)
