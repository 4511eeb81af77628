"""Search by a model whose parts were replaced: its cached steps are its own computation for the last position."""

import pytest
import torch
from torch import Tensor, nn

from headway.decoding import TorchEngine, beam_search
from headway.model import ModelConfig, ScaledDotProductAttention, Transformer


class Rotated(ScaledDotProductAttention):
    """Rotary positions: queries stand at the last places of the keys."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        queries, keys = rotated(queries, keys.size(1) - queries.size(1)), rotated(keys, 0)
        return super().forward(queries, keys, values, mask, return_weights=return_weights)


class Sharper(ScaledDotProductAttention):
    """Attention at half the temperature."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        return super().forward(2 * queries, keys, values, mask, return_weights=return_weights)


def rotated(x: Tensor, first: int) -> Tensor:
    """Pairs of features turn by the place times a frequency. (batch, length, d_model) -> the same shape"""
    angles = (torch.arange(x.size(1))[:, None] + first) * 10.0 ** -torch.arange(x.size(2) // 2)
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(2, (-1, 2)).contiguous()) * turns).flatten(2)


class Adapted(nn.Module):
    """A linear layer with a low-rank adapter that isn't merged."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


def model() -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(20, 20, d_model=16, num_heads=2, encoder_layers=1, decoder_layers=2, d_ff=24, dropout=0.1)
    return Transformer(config).eval()


def with_other_cores() -> Transformer:
    net = model()
    for layer in [*net.encoder.layers, *net.decoder.layers]:
        layer.self_attention.core = Rotated(2)
    net.decoder.layers[1].cross_attention.core = Sharper(2)
    return net


def with_adapters() -> Transformer:
    net = model()
    for parent in list(net.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and not isinstance(parent, Adapted):
                setattr(parent, name, Adapted(child))
    return net


@pytest.mark.parametrize("build", [with_other_cores, with_adapters])
@torch.inference_mode()
def test_steps_are_the_models_own(build):
    net, source = build(), torch.tensor([[5, 6, 7, 8, 3], [9, 4, 3, 0, 0]])
    engine = TorchEngine(net)
    plain = beam_search(TorchEngine(model()), source, [12, 12], beam_size=3, n_best=3)
    found = beam_search(engine, source, [12, 12], beam_size=3, n_best=3)
    for source_ids, some, others in zip(source, found, plain, strict=True):
        assert [one.score for one in some] != pytest.approx([one.score for one in others], abs=1e-3)
        for one in some:
            scores = engine.score(source_ids[None], torch.tensor([[2, *one.ids, 3]]))
            assert one.score == pytest.approx(scores.sum().item(), abs=1e-4)
