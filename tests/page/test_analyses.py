"""The analyses of the page's engine are those of headway.insight.analyses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from py_mini_racer import JSEvalException

from headway.decoding import SearchOptions, TorchEngine, TorchSearcher
from headway.insight.analyses.contrast import contrast
from headway.insight.analyses.contributions import contributions
from headway.insight.analyses.decoder_lens import cut_encoders, given_by_encoder_layer
from headway.insight.analyses.erasure import erasure
from headway.insight.analyses.faithfulness import faithfulness
from headway.insight.analyses.logit_lens import logit_lens
from headway.insight.analyses.patching import patching
from headway.insight.analyses.reading import Reading
from headway.insight.editing import edited_model
from headway.insight.recording import record_pass
from headway.insight.what_if import HeadOff
from headway.model import Transformer
from tests.page.engines import NEVER, VOCABULARY, engine_of, random_model, sources

KINDS: list[dict[str, Any]] = [
    {"norm": "post"},
    {"norm": "pre", "positions": "learned", "share_embeddings": "none", "output_bias": True},
    {"norm": "pre", "decoder_layers": 0},
]
SOURCE, TARGET = sources(4, longest=9)[1:3]
LONGEST = 10
TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=KINDS, ids=str)
def model(request):
    return random_model(**request.param)


def analysed(model, *asked: Any, **given: Any) -> dict[str, Any]:
    found = engine_of(model).call("analyses", list(asked), SOURCE, TARGET, LONGEST, given)
    arrays = {name: np.reshape(one["values"], one["shape"]) for name, one in found["arrays"].items()}
    return {**found["analyses"], **arrays}


@pytest.mark.parametrize("edits", [[], [HeadOff(attention="encoder", layer=1, head=2)]], ids=["as it is", "edited"])
def test_contributions(model, edits):
    edited = edited_model(model, edits)
    wanted = contributions(edited, record_pass(edited, SOURCE, TARGET))
    found = analysed(model, "contributions", edits=[edit.model_dump() for edit in edits])
    assert_close(found["contributions"]["source_share"], wanted.source_share)
    for name in ("source", "target", "encoder", "decoder", "cross"):
        assert_close(found[f"analyses.contributions.{name}"], getattr(wanted, name))


def test_erasure(model):
    found, wanted = analysed(model, "erasure"), erasure(model, Reading.of(model, SOURCE, TARGET))
    assert_close(found["analyses.erasure.effect"], wanted.effect)
    assert found["erasure"]["needs"] == wanted.needs
    assert_close(found["erasure"]["gain"], wanted.gain)
    assert_close(found["erasure"]["mean_gain"], wanted.mean_gain)
    assert found["erasure"]["detached"] == wanted.detached


@pytest.mark.parametrize("step", [None, 1])
def test_contrast(model, step):
    chosen, instead = {}, []
    if step is not None:
        foil = 4 if TARGET[step] == 5 else 5
        chosen, instead = {step: foil}, [*TARGET[:step], foil, 3]
    asked = {"kind": "contrast", **({"instead": "another"} if instead else {})}
    found, wanted = analysed(model, asked, instead=instead), contrast(model, Reading.of(model, SOURCE, TARGET), chosen)
    assert [foil["id"] for foil in found["contrast"]["foils"]] == wanted.foils
    assert_close(found["contrast"]["difference"], wanted.difference)
    assert_close(found["analyses.contrast.erasure"], wanted.erasure)


def test_lenses(model):
    found, reading = analysed(model, "logit_lens", "decoder_lens"), Reading.of(model, SOURCE, TARGET)
    wanted = logit_lens(model, reading)
    assert_close(found["analyses.logit_lens.log_probability"], wanted.log_probability)
    top = found["logit_lens"]["top"]
    assert [[[one["id"] for one in step] for step in layer] for layer in top] == wanted.ids
    assert_close([[[one["probability"] for one in step] for step in layer] for layer in top], wanted.probabilities)
    assert_close(found["analyses.decoder_lens.log_probability"], given_by_encoder_layer(model, reading))
    for cut, one in zip(cut_encoders(model), found["decoder_lens"]["translations"], strict=True):
        searcher = TorchSearcher(TorchEngine(cut, NEVER), cut.config.pad_id, reading.source.device)
        [[best, *_]] = searcher.search([SOURCE[:-1]], SearchOptions(beam_size=1), [LONGEST], [[]])
        assert one["text"] == " ".join(map(str, best.ids))
        assert one["score"] == pytest.approx(best.score, abs=TOLERANCE)


@pytest.mark.parametrize("step", [0, 1])
def test_patching(step):
    for fields in KINDS[:2]:
        model = random_model(**fields)
        source, other, target = told_apart(model, step)
        wanted = patching(model, Reading.of(model, source, target), torch.tensor(other), "other")
        assert wanted.step == step
        asked = [{"kind": "patching", "other": "other"}]
        found = engine_of(model).call("analyses", asked, source, target, LONGEST, {"other": other})
        said, arrays = found["analyses"]["patching"], found["arrays"]
        assert (said["other"], said["step"]) == ("other", step)
        assert (said["word"]["id"], said["other_word"]["id"]) == (wanted.word, wanted.other_word)
        for name in ("difference", "other_difference", "flips_above"):
            assert said[name] == pytest.approx(getattr(wanted, name), abs=TOLERANCE)
        for stack in ("encoder", "decoder"):
            one = arrays[f"analyses.patching.{stack}"]
            assert_close(np.reshape(one["values"], one["shape"]), getattr(wanted, stack))


def told_apart(model: Transformer, step: int) -> tuple[list[int], list[int], list[int]]:
    """Two sources that the model goes on with in the same words up to a step, there with others; and a translation of
    the first of them."""
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.cross_attention.output.weight *= 4
    generator = torch.Generator().manual_seed(1)
    pool = torch.cat([torch.randint(4, VOCABULARY, (400, 5), generator=generator), torch.full((400, 1), 3)], dim=1)
    target, rest = list[int](), pool
    for _ in range(step + 1):
        best = model(pool, torch.tensor([[model.config.bos_id, *target]]).expand(len(pool), -1))[:, -1].argmax(dim=1)
        target.append(int(best.mode().values))
        pool, rest = pool[best == target[-1]], pool[best != target[-1]]
    return pool[0].tolist(), rest[0].tolist(), [*target, 3]


def test_deletion_curves(model):
    reading = Reading.of(model, SOURCE, TARGET)
    foils, arrays = contrast(model, reading, {}), record_pass(model, SOURCE, TARGET)
    weights = [array for name, array in arrays.items() if name.endswith("cross_attention.weights")]
    attributions = {
        "contributions": contributions(model, arrays).source,
        "erasure": erasure(model, reading).effect,
        "contrast_erasure": foils.erasure,
    }
    if weights:
        attributions["attention"] = np.mean(np.concatenate(weights), axis=0)
    wanted = faithfulness(model, reading, attributions, foils.foils)
    found = analysed(model, "faithfulness")["faithfulness"]
    assert found["erased"] == wanted.erased
    for name in ("probability", "against_foil"):
        ours, theirs = found[name], getattr(wanted, name)
        assert ours["curves"].keys() == theirs.curves.keys() == ours["areas"].keys()
        for kind in attributions:
            assert_close(ours["curves"][kind], theirs.curves[kind])
            assert_close(ours["areas"][kind], theirs.areas[kind])
        random = ours["curves"]["random"]
        assert_close([random[0], random[-1]], [theirs.curves["random"][0], theirs.curves["random"][-1]])


def test_what_a_page_can_not_compute_is_refused(model):
    with pytest.raises(JSEvalException, match="guess isn't computed in a page without a server"):
        analysed(model, "guess")
    with pytest.raises(JSEvalException, match="patching: needs another sentence"):
        analysed(model, "patching")
    asked = {"kind": "patching", "other": "another sentence"}
    with pytest.raises(JSEvalException, match="as many tokens as the sentence, 5; it has 2"):
        analysed(model, asked, other=[5, 6, 3])
    with pytest.raises(JSEvalException, match="the same translation"):
        analysed(model, asked, other=SOURCE)


def assert_close(found: Any, wanted: Any) -> None:
    assert np.shape(found) == np.shape(wanted)
    assert np.abs(np.subtract(found, wanted)).max(initial=0.0) <= TOLERANCE
