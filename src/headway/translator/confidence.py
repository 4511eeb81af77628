"""How likely translations are acceptable, and whether their sources are like the text of the calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.errors import UserError
from headway.evaluation import sentence_chrf
from headway.insight import confidence_features, fit_weights, probabilities
from headway.model import Transformer
from headway.storage import Calibration, StoredModel
from headway.text.domain import learn_domain
from headway.translator.translation import Translation

ACCEPTABLE = 60.0
"""The sentence chrF against a reference from which on a translation is acceptable."""
FEWEST = 100
"""Pairs of a calibration."""


def with_confidence(
    model: Transformer, calibration: Calibration, translations: Sequence[Translation]
) -> list[Translation]:
    """The translations and their alternatives with `confidence` and `out_of_domain`, both None where the model can't
    read source and translation: a blank source, one without words, and where either is too long."""
    flat = [one for first in translations for one in (first, *first.alternatives)]
    judged = _judged(model, calibration, flat)
    following = iter(judged)
    found = []
    for first in translations:
        best = next(following)
        found.append(replace(best, alternatives=[next(following) for _ in first.alternatives]))
    return found


def learn_calibration(
    stored: StoredModel, translations: Sequence[Translation], references: Sequence[str]
) -> Calibration:
    """Learns what tells acceptable translations of the model from others. Raises UserError for too little text."""
    known = [(one, reference) for one, reference in zip(translations, references, strict=True) if _source_ids(one)]
    if len(known) < FEWEST:
        raise UserError(f"{len(known)} pairs with text are too few to calibrate on; give {FEWEST} or more")
    translated = [one for one, _ in known]
    scores = np.array([sentence_chrf(one.text, reference) for one, reference in known])
    acceptable = scores >= ACCEPTABLE
    if acceptable.all() or not acceptable.any():
        which = "all" if acceptable.all() else "none"
        raise UserError(
            f"{which} of the {len(known)} translations have a chrF of {ACCEPTABLE:g} or more: nothing to learn from; "
            f"calibrate on text that is {'harder' if acceptable.all() else 'easier'} for the model"
        )
    weights, bias = fit_weights(_features(stored.model, translated), acceptable)
    domain = learn_domain(
        [one._pieces.source_text for one in translated],
        [_source_ids(one) for one in translated],
        stored.source_tokenizer.vocab_size,
    )
    return Calibration(weights, bias, domain)


def _judged(model: Transformer, calibration: Calibration, translations: Sequence[Translation]) -> list[Translation]:
    judged = list(translations)
    places = [place for place, one in enumerate(translations) if _source_ids(one)]
    known = [translations[place] for place in places]
    chances = probabilities(calibration, _features(model, known)).tolist()
    distances = calibration.domain.distances(
        [one._pieces.source_text for one in known], [_source_ids(one) for one in known]
    )
    for place, chance, distance in zip(places, chances, distances.tolist(), strict=True):
        judged[place] = replace(translations[place], confidence=chance, out_of_domain=distance > 1)
    return judged


def _features(model: Transformer, translations: Sequence[Translation]) -> np.ndarray:
    sides = ([one._pieces.ids[side] for one in translations] for side in (0, 1))
    return confidence_features(model, *sides)


def _source_ids(translation: Translation) -> list[int]:
    """Without those of a tag; empty where there is no translation."""
    pieces = translation._pieces
    return pieces.ids[0][pieces.tags :]
