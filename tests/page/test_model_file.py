"""The file of a model: what the page reads out of it is what was written, and damage is noticed."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from py_mini_racer import JSEvalException

from headway.page import export
from headway.page.document import quantized
from headway.page.export import JavaScriptModel, script
from tests.page.engines import engine_of, file_of, random_model, sources

BOS, EOS = 2, 3


def logits(engine: JavaScriptModel, source: list[int]) -> np.ndarray:
    return np.array(engine.call("logits", source, [BOS, 9, 8]))


@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_the_page_has_the_rounded_weights(precision):
    """Its logits are those of a model in Python whose matrices are rounded by numpy."""
    model = random_model(norm="pre", positions="learned", share_embeddings="none", output_bias=True)
    rounded = copy.deepcopy(model)
    for weight in rounded.parameters():
        if weight.dim() == 2:
            array = weight.detach().numpy()
            step = np.abs(array).max(axis=1, keepdims=True) / 127
            kept = np.rint(array / step) * step if precision == "int8" else array.astype(np.float16)
            weight.data = torch.from_numpy(kept.astype(np.float32))
    [source] = sources(1)
    wanted = rounded(torch.tensor([source]), torch.tensor([[BOS, 9, 8]])).detach().numpy().ravel()
    found = logits(engine_of(model, precision), source)
    assert np.abs(found - wanted).max() <= 1e-4
    assert np.abs(found - logits(engine_of(model), source)).max() > 1e-4


def test_half_precision_of_small_and_negative_numbers():
    """Those whose exponent float16 has no room for included."""
    model = random_model()
    with torch.no_grad():
        model.source_embedding.weight.mul_(2.0**-16)
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for weight in rounded.parameters():
            if weight.dim() == 2:
                weight.copy_(weight.half().float())
    [source] = sources(1)
    wanted = rounded(torch.tensor([source]), torch.tensor([[BOS, 9, 8]])).detach().numpy().ravel()
    assert np.abs(logits(engine_of(model, "float16"), source) - wanted).max() <= 1e-6


def test_int8_is_off_by_half_a_step_at_most():
    weight = np.random.default_rng(1).normal(size=(5, 33)).astype(np.float32)
    weight[2] = 0.0
    numbers, scales = quantized(weight)
    assert numbers.dtype == np.int8
    assert (np.abs(numbers * scales[:, None] - weight) <= 0.5001 * scales[:, None]).all()
    assert (np.abs(numbers).max(axis=1) == [127, 127, 0, 127, 127]).all()


@pytest.mark.parametrize("place", [8, 12, 16, 100, -1000, -1])
def test_damage_is_noticed(place):
    file = bytearray(file_of(random_model(), "int8"))
    file[place] ^= 1
    with pytest.raises(JSEvalException, match="the model file is damaged"):
        JavaScriptModel(bytes(file), bos_id=BOS, eos_id=EOS)


@pytest.mark.parametrize("length", [8, 13, 100, -5])
def test_a_file_that_was_cut_off_is_noticed(length):
    with pytest.raises(JSEvalException, match="the model file is damaged"):
        JavaScriptModel(file_of(random_model())[:length], bos_id=BOS, eos_id=EOS)


@pytest.mark.parametrize("file", [b"", b"<!DOCTYPE html>", b"HEADWAY1" + bytes(100)])
def test_another_file_is_refused(file):
    with pytest.raises(JSEvalException, match="not a headway model"):
        JavaScriptModel(file, bos_id=BOS, eos_id=EOS)


def test_without_webassembly_javascript_multiplies(monkeypatch):
    monkeypatch.setattr(export, "script", lambda entry: f"delete globalThis.WebAssembly;\n{script(entry)}")
    model = random_model()
    engine = engine_of(model)
    assert not engine.kernel
    [source] = sources(1)
    wanted = model(torch.tensor([source]), torch.tensor([[BOS, 9, 8]])).detach().numpy().ravel()
    assert np.abs(logits(engine, source) - wanted).max() <= 1e-4
