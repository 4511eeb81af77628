"""Packed linear layers: where they are not packed, and what packing leaves alone."""

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from headway.decoding.step import PackedLinear, packed
from headway.model import MultiHeadAttention


def test_a_processor_without_bf16_uses_torch(monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    layer = nn.Linear(20, 5)
    found = PackedLinear([layer], torch.bfloat16)
    assert not found._packed
    torch.testing.assert_close(found(torch.ones(20).bfloat16()).float(), layer(torch.ones(20)), atol=3e-2, rtol=3e-2)


class Called(TorchDispatchMode):
    """The operations that are called inside."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@torch.inference_mode()
def test_products_on_the_cpu_go_by_onednn_where_torch_has_it():
    layer, x = nn.Linear(20, 5), torch.randn(3, 20)
    found = PackedLinear([layer], torch.float32)
    with Called() as called:
        given = found(x)
    assert any("mkldnn._linear_pointwise" in name for name in called.names) == torch.backends.mkldnn.is_available()
    torch.testing.assert_close(given, layer(x))


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
