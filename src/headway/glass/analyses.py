"""The JSON form of a record's analyses (docs/record.md) without their matrices, which are among the record's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.glass.plain import plain, rounded
from headway.insight.analyses import (
    Analyses,
    Contrast,
    DecoderLens,
    Erasure,
    Faithfulness,
    HeadImportance,
    LogitLens,
    Patching,
)
from headway.insight.analyses.faithfulness import DeletionCurves


def analyses_document(analyses: Analyses, vocabulary: Sequence[str]) -> dict[str, Any]:
    """Those that there are, by name. vocabulary: the target's, by id."""
    found: dict[str, Any] = {}
    if analyses.contributions is not None:
        found["contributions"] = {"source_share": _numbers(analyses.contributions.source_share)}
    if analyses.erasure is not None:
        found["erasure"] = _erasure(analyses.erasure)
    if analyses.contrast is not None:
        found["contrast"] = _contrast(analyses.contrast, vocabulary)
    if analyses.logit_lens is not None:
        found["logit_lens"] = {"top": _top(analyses.logit_lens, vocabulary)}
    if analyses.decoder_lens is not None:
        found["decoder_lens"] = _decoder_lens(analyses.decoder_lens)
    if analyses.patching is not None:
        found["patching"] = _patching(analyses.patching, vocabulary)
    if analyses.head_importance is not None:
        found["head_importance"] = head_importance_document(analyses.head_importance)
    if analyses.faithfulness is not None:
        found["faithfulness"] = _faithfulness(analyses.faithfulness)
    return found


def _erasure(found: Erasure) -> dict[str, Any]:
    gains = {"gain": _numbers(found.gain), "mean_gain": rounded(found.mean_gain)}
    return {"needs": found.needs, **gains, "detached": found.detached}


def _contrast(found: Contrast, vocabulary: Sequence[str]) -> dict[str, Any]:
    foils = [_token(id_, vocabulary) for id_ in found.foils]
    return {"foils": foils, "difference": _numbers(found.difference)}


def _top(lens: LogitLens, vocabulary: Sequence[str]) -> list[list[list[dict[str, Any]]]]:
    """[layer][step], the likeliest first."""
    return [
        [
            [
                {**_token(id_, vocabulary), "probability": rounded(probability)}
                for id_, probability in zip(*step, strict=True)
            ]
            for step in zip(*layer, strict=True)
        ]
        for layer in zip(lens.ids, lens.probabilities, strict=True)
    ]


def _decoder_lens(lens: DecoderLens) -> dict[str, Any]:
    return {"translations": [plain(one) for one in lens.translations]}


def _patching(found: Patching, vocabulary: Sequence[str]) -> dict[str, Any]:
    return {
        "other": found.other,
        "step": found.step,
        "word": _token(found.word, vocabulary),
        "other_word": _token(found.other_word, vocabulary),
        "difference": rounded(found.difference),
        "other_difference": rounded(found.other_difference),
        "flips_above": rounded(found.flips_above),
    }


def head_importance_document(found: HeadImportance) -> dict[str, Any]:
    """As a record has it."""
    return {
        "sentences": found.sentences,
        "tokens": found.tokens,
        "log_probability": rounded(found.log_probability),
    }


def _faithfulness(found: Faithfulness) -> dict[str, Any]:
    return {
        "erased": found.erased,
        "probability": _curves(found.probability),
        "against_foil": _curves(found.against_foil),
    }


def _curves(found: DeletionCurves) -> dict[str, Any]:
    return {
        "curves": {name: _numbers(curve) for name, curve in found.curves.items()},
        "areas": {name: rounded(area) for name, area in found.areas.items()},
    }


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [rounded(value) for value in values]


def _token(id_: int, vocabulary: Sequence[str]) -> dict[str, Any]:
    return {"id": id_, "piece": vocabulary[id_]}
