"""Recording looks into a model without touching it."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from headway.errors import UserError
from headway.insight.recording import record_pass
from headway.model import ModelConfig, ScaledDotProductAttention, Transformer
from headway.model.sharing import sharing_copy

DOCS = Path(__file__).parent.parent.parent / "docs"
SOURCE, TARGET = [5, 6, 7, 3], [8, 9, 3]


def tiny(**changes) -> Transformer:
    torch.manual_seed(4)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 1, **changes}
    return Transformer(ModelConfig(20, 20, **sizes)).eval()


def documented(model: Transformer) -> set[str]:
    """The names in the table of arrays of docs/record.md, written out for the model."""
    table = (DOCS / "record.md").read_text(encoding="utf-8").partition("| Name | Shape |")[2].partition("\n\n")[0]
    names: set[str] = set()
    for row in table.splitlines()[2:]:
        before = ""
        for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
            full = before.rpartition(".")[0] + name if name.startswith(".") else name
            names, before = names | {full}, full
    layers = {
        "encoder": [f"encoder.layers.{i}" for i in range(model.config.encoder_layers)],
        "decoder": [f"decoder.layers.{i}" for i in range(model.config.decoder_layers)],
    }
    every = [*layers["encoder"], *layers["decoder"]]
    choices = {
        "{side}": ["source", "target"],
        "{stack}.layers.{layer}": every,
        "{layer}.": [f"{one}." for one in every],
        "{stack}": ["encoder", "decoder"],
        "{sublayer}": [f"{one}.self_attention" for one in every]
        + [f"{one}.cross_attention" for one in layers["decoder"]],
        "{residual}": [f"{one}.{kind}_residual" for one in every for kind in ("self", "feed_forward")]
        + [f"{one}.cross_residual" for one in layers["decoder"]],
    }
    for word, values in choices.items():
        names = {name.replace(word, value) for name in names for value in values}
    return names


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_names_are_those_of_the_documentation(norm):
    model = tiny(norm=norm)
    found = record_pass(model, SOURCE, TARGET).keys()
    assert set(found) == documented(model)


def test_the_model_stays_as_it_was():
    model = tiny()
    before = [(name, id(module), len(module._forward_hooks)) for name, module in model.named_modules()]
    record_pass(model, SOURCE, TARGET)
    assert [(name, id(module), len(module._forward_hooks)) for name, module in model.named_modules()] == before


def test_threads_may_look_at_one_model_at_once():
    model = tiny()
    pairs = [([5 + i % 7, 6, 7 + i % 5, 3], [8 + i % 3, 9, 3]) for i in range(24)]
    wanted = [record_pass(model, *pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: record_pass(model, *pair), pairs))
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


class Hidden(ScaledDotProductAttention):
    """Returns no weights."""

    def forward(self, *inputs, return_weights=False):
        return super().forward(*inputs)


class Even(ScaledDotProductAttention):
    """Attends to every key alike."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        return super().forward(queries * 0, keys, values, mask, return_weights=return_weights)


def test_a_core_of_ones_own_has_its_weights_recorded_and_no_scores():
    model = tiny()
    plain = record_pass(model, SOURCE, TARGET)
    model.encoder.layers[1].self_attention.core = Even(2)
    arrays, name = record_pass(model, SOURCE, TARGET), "encoder.layers.1.self_attention"
    assert np.allclose(arrays[f"{name}.weights"], 1 / len(SOURCE))
    missing = {f"{name}.{one}" for one in ("scores", "masked_scores", "queries", "keys", "heads")}
    assert plain.keys() - arrays.keys() == missing
    assert arrays[f"{name}.values"].shape == plain[f"{name}.values"].shape


def test_a_core_without_weights_is_refused_by_its_name():
    model = tiny()
    model.encoder.layers[1].self_attention.core = Hidden(2)
    with pytest.raises(UserError, match=r"encoder\.layers\.1\.self_attention.*Hidden"):
        record_pass(model, SOURCE, TARGET)


def test_a_sharing_copy_shares_weights_and_nothing_else():
    model = tiny()
    model.encoder.layers[0].register_forward_hook(lambda *_: None)
    copied = sharing_copy(model)
    assert [id(one) for one in copied.parameters()] == [id(one) for one in model.parameters()]
    assert not {id(one) for one in copied.modules()} & {id(one) for one in model.modules()}
    assert len(copied.encoder.layers[0]._forward_hooks) == 1
    copied.encoder.layers[0].register_forward_hook(lambda *_: torch.zeros(()))
    copied.output.weight = torch.nn.Parameter(torch.zeros(20, 16))
    copied.decoder.layers[0].self_attention.core = torch.nn.Identity()
    assert len(model.encoder.layers[0]._forward_hooks) == 1
    assert model.output.weight.count_nonzero() > 0
    assert isinstance(model.decoder.layers[0].self_attention.core, ScaledDotProductAttention)
