"""The page's engine is the model: its numbers, searches, edits and records are Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from headway.decoding import TorchEngine, beam_search, greedy
from headway.decoding.constraints import Constraints
from headway.insight.editing import RecomputingEngine, edited_model, prefix_logits
from headway.insight.recording import record_pass
from headway.insight.what_if import read_edits, sees_ahead
from headway.model import Transformer
from tests.page.engines import NEVER, engine_of, random_model, sources

KINDS: list[dict[str, Any]] = [
    {"norm": "post", "positions": "sinusoidal"},
    {"norm": "post", "positions": "learned", "activation": "gelu", "share_embeddings": "none", "output_bias": True},
    {"norm": "pre", "positions": "sinusoidal", "activation": "swish", "share_embeddings": "decoder"},
    {"norm": "pre", "positions": "learned", "decoder_num_heads": 2, "decoder_d_ff": 16, "bos_id": 0},
    {"norm": "pre", "decoder_layers": 0},
    {"d_model": 12, "d_ff": 9, "encoder_layers": 0},
]
"""The last is too narrow for the kernel: plain JavaScript multiplies."""
EDITS = [
    [],
    [{"kind": "head_off", "attention": "encoder", "layer": 1, "head": 2}],
    [{"kind": "head_off", "attention": "decoder", "layer": 0, "head": 0}, {"kind": "positions_off"}],
    [{"kind": "head_off", "attention": "cross", "layer": 1, "head": 3}],
    [{"kind": "scaling_off"}],
    [{"kind": "look_ahead_off"}],
]
TOLERANCE = 1e-4


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("fields", KINDS)
def test_logits(fields, kernel):
    model = random_model(**fields)
    engine = engine_of(model, kernel=kernel)
    for source, target in zip(sources(6), sources(6, longest=9)[::-1], strict=True):
        read = [model.config.bos_id, *target[:-1]]
        [wanted] = model(torch.tensor([source]), torch.tensor([read])).detach().numpy()
        found = np.reshape(engine.call("logits", source, read), wanted.shape)
        assert np.abs(found - wanted).max() <= TOLERANCE


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("fields", KINDS)
def test_greedy_search(fields, kernel):
    model = random_model(**fields)
    engine, ours = engine_of(model, kernel=kernel), TorchEngine(model, NEVER)
    for source in sources(8):
        [wanted] = greedy(ours, torch.tensor([source]), [14])
        assert_same(engine.call("greedy", source, 14), wanted)


@pytest.mark.parametrize("options", [(5, 3, 1.0, 0), (5, 5, 0.0, 2), (2, 1, 2.5, 1), (4, 1, 1.0, 0)])
@pytest.mark.parametrize("fields", KINDS)
def test_beam_search(fields, options):
    beam_size, n_best, alpha, ngram = options
    model = random_model(**fields)
    engine, ours = engine_of(model), TorchEngine(model, NEVER)
    for source in sources(6):
        [wanted] = beam_search(
            ours,
            torch.tensor([source]),
            [9],
            beam_size=beam_size,
            n_best=n_best,
            alpha=alpha,
            constraints=Constraints(no_repeat_ngram=ngram),
        )
        given = {"beamSize": beam_size, "nBest": n_best, "alpha": alpha, "noRepeatNgram": ngram}
        found = engine.call("beam", source, 9, given)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)


@pytest.mark.parametrize("edits", [[], [{"kind": "look_ahead_off"}]])
def test_no_translation_is_empty(edits):
    """Of a model that would always rather end at once."""
    model = random_model(output_bias=True)
    with torch.no_grad():
        model.output.bias[model.config.eos_id] = 20.0
    engine, ours = engine_of(model), python_engine(model, edits)
    for source, cap in zip(sources(6), [1, 9] * 3, strict=True):
        [alone] = greedy(ours, torch.tensor([source]), [cap])
        found = engine.call("beam", source, cap, {"beamSize": 4, "nBest": 4}, edits)
        [wanted] = beam_search(ours, torch.tensor([source]), [cap], beam_size=4, n_best=4)
        for one, other in zip([engine.call("greedy", source, cap, edits), *found], [alone, *wanted], strict=True):
            assert_same(one, other)
            assert len(one["ids"]) == 1


def test_searches_end_both_ways():
    """So that the tests above have seen <eos> and the cap."""
    model = random_model(**KINDS[0])
    found = [engine_of(model).call("beam", source, 9, {"beamSize": 5, "nBest": 5}) for source in sources(6)]
    assert {one["stopped"] for each in found for one in each} == {"eos", "max_length"}


@pytest.mark.parametrize("edits", EDITS, ids=lambda edits: "+".join(one["kind"] for one in edits))
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_edited_models(norm, edits):
    model = random_model(norm=norm)
    engine, ours = engine_of(model), python_engine(model, edits)
    for source in sources(3):
        [wanted] = greedy(ours, torch.tensor([source]), [8])
        assert_same(engine.call("greedy", source, 8, edits), wanted)
        [[best]] = beam_search(ours, torch.tensor([source]), [8], beam_size=3)
        assert_same(engine.call("beam", source, 8, {"beamSize": 3}, edits)[0], best)
        target = [model.config.bos_id, 9, 8, 7, 3]
        read, given = torch.tensor([target[:-1]]), torch.tensor(target[1:])
        logits = prefix_logits(edited_model(model, read_edits(edits)), torch.tensor([source]), read)[0]
        scores = logits.log_softmax(-1).gather(1, given[:, None])[:, 0].numpy()
        assert np.abs(engine.call("score", source, target, edits) - scores).max() <= TOLERANCE
        [unedited] = greedy(TorchEngine(model, NEVER), torch.tensor([source]), [8])
        assert_same(engine.call("greedy", source, 8), unedited)  # edits are of a copy


@pytest.mark.parametrize("edits", EDITS, ids=lambda edits: "+".join(one["kind"] for one in edits))
@pytest.mark.parametrize("fields", KINDS[:4])
def test_records(fields, edits):
    """Every array of docs/record.md, by its name."""
    if any(edit.get("head") == 3 for edit in edits):
        fields = {**fields, "decoder_num_heads": 4}
    model, target = random_model(**fields), [8, 9, 30, 3]
    [source] = sources(1)
    read = read_edits(edits)
    wanted = record_pass(edited_model(model, read), source, target, rereads=sees_ahead(read))
    found = engine_of(model).call("record", source, target, edits)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name]["shape"] == list(array.shape), name
        assert found[name]["dtype"] == str(array.dtype), name
        close = np.isclose(np.reshape(found[name]["values"], array.shape), array, rtol=1e-4, atol=TOLERANCE)
        assert close.all(), name


def python_engine(model: Transformer, edits: list[dict[str, Any]]) -> Any:
    read = read_edits(edits)
    edited = edited_model(model, read)
    return RecomputingEngine(edited, NEVER) if sees_ahead(read) else TorchEngine(edited, NEVER)


def assert_same(found: dict[str, Any], wanted: Any) -> None:
    assert (found["ids"], found["stopped"]) == (wanted.ids, wanted.stopped)
    assert found["score"] == pytest.approx(wanted.score, abs=1e-3)
