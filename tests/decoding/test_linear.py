"""Packed linear layers against torch's."""

import pytest
import torch
from torch import nn

from headway.decoding.linear import PackedLinear, packed
from headway.model import MultiHeadAttention


@pytest.mark.parametrize("with_onednn", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("shape", [(1, 20), (7, 3, 20)])
def test_several_layers_in_one(monkeypatch, with_onednn, bias, dtype, tolerance, shape):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: with_onednn)
    layers = [nn.Linear(20, 5, bias=bias), nn.Linear(20, 9, bias=bias)]
    x = torch.randn(shape)
    wanted = torch.cat([layers[0](x) * 0.5, layers[1](x)], dim=-1)
    found = PackedLinear(layers, dtype, scale=0.5)(x.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), wanted, atol=tolerance, rtol=tolerance)


def test_a_processor_without_bf16_uses_torch(monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    layer = nn.Linear(20, 5)
    found = PackedLinear([layer], torch.bfloat16)
    assert not found._packed
    torch.testing.assert_close(found(torch.ones(20).bfloat16()).float(), layer(torch.ones(20)), atol=3e-2, rtol=3e-2)


@torch.inference_mode()
def test_a_packed_copy_leaves_the_module_as_it_was():
    attention = MultiHeadAttention(16, 4, dropout=0.5)
    before = [parameter.clone() for parameter in attention.parameters()]
    copied = packed(attention, torch.float32)
    assert not any(isinstance(module, nn.Linear) for module in copied.modules())
    x = torch.randn(2, 6, 16)
    torch.testing.assert_close(copied(x, x, x)[0], attention.eval()(x, x, x)[0])
    for one, other in zip(before, attention.parameters(), strict=True):
        assert torch.equal(one, other)
