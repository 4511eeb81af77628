"""The analyses of the page's engine are those of headway.insight.analyses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.decoding import SearchOptions, TorchEngine, TorchSearcher
from headway.insight import record_pass
from headway.insight.analyses import (
    Reading,
    contrast,
    cut_encoders,
    erasure,
    faithfulness,
    given_by_encoder_layer,
    logit_lens,
)
from tests.web.engines import NEVER, engine_of, random_model, sources

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
    found = engine_of(model).call("analyses", list(asked), SOURCE, TARGET, LONGEST, *given.values())
    arrays = {name: np.reshape(one["values"], one["shape"]) for name, one in found["arrays"].items()}
    return {**found["analyses"], **arrays}


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


def test_deletion_curves(model):
    reading = Reading.of(model, SOURCE, TARGET)
    foils, arrays = contrast(model, reading, {}), record_pass(model, SOURCE, TARGET)
    weights = [array for name, array in arrays.items() if name.endswith("cross_attention.weights")]
    attributions = {"erasure": erasure(model, reading).effect, "contrast_erasure": foils.erasure}
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
    with pytest.raises(Exception, match="patching isn't computed in a page without a server"):
        analysed(model, {"kind": "patching", "other": "x"})


def assert_close(found: Any, wanted: Any) -> None:
    assert np.shape(found) == np.shape(wanted)
    assert np.abs(np.subtract(found, wanted)).max(initial=0.0) <= TOLERANCE
