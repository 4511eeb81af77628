"""The probability that a translation is acceptable, by what the model itself thinks of it.

The decoder reads the finished translation once. The log-probabilities of its tokens, the entropies of what it expected
in their places and the lengths are the features of a logistic regression, fitted on translations that are known to be
acceptable or not. So the probability is the same whatever has found the translation.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.evaluation import sentence_chrf
from headway.storage import ModelInfo
from headway.storage.model_info import FEATURES, Calibration
from headway.text.domain import learn_domain
from headway.translator.reading import Reader, Tokens, batches_of_pairs
from headway.translator.translation import Translation, with_alternatives

ACCEPTABLE = 60.0
"""The sentence chrF against a reference from which on a translation is acceptable."""
FEWEST = 100
"""Pairs of a calibration."""
LOGITS_AT_ONCE = 1 << 22
"""Logits that are computed together, at most, unless one translation has more."""
RIDGE = 1.0
"""Strength of the L2 penalty on the weights of the standardised features."""
MOST_STEPS, CLOSE = 100, 1e-9
"""Newton's method ends after so many steps, or when no weight changes by more."""

Floats = NDArray[np.float64]


def with_confidence(reader: Reader, calibration: Calibration, translations: Sequence[Translation]) -> list[Translation]:
    """The translations and their alternatives with `confidence` and `out_of_domain`, both None where the model can't
    read source and translation: a blank source, one without words, and where either is too long."""

    def judged(every: Sequence[Translation]) -> list[Translation]:
        known = [one for one in every if _source_ids(one)]
        chances = probabilities(calibration, _features(reader, known)).tolist()
        distances = calibration.domain.distances(*_sources(known)).tolist()
        pairs = zip(chances, distances, strict=True)
        found = ({"confidence": chance, "out_of_domain": distance > 1} for chance, distance in pairs)
        return [replace(one, **next(found)) if _source_ids(one) else one for one in every]

    return with_alternatives(translations, judged)


def learn_calibration(
    reader: Reader, info: ModelInfo, translations: Sequence[Translation], references: Sequence[str]
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
    weights, bias = fit_weights(_features(reader, translated), acceptable)
    return Calibration(weights, bias, learn_domain(*_sources(translated), info.source_tokenizer.vocab_size))


def _features(reader: Reader, translations: Sequence[Translation]) -> np.ndarray:
    sides = ([one._pieces.ids[side] for one in translations] for side in (0, 1))
    return confidence_features(reader, *sides)


def _sources(translations: Sequence[Translation]) -> tuple[list[str], list[list[int]]]:
    """Texts and ids."""
    return [one._pieces.source_text for one in translations], [_source_ids(one) for one in translations]


def _source_ids(translation: Translation) -> list[int]:
    """Without those of a tag; empty where there is no translation."""
    pieces = translation._pieces
    return pieces.ids[0][pieces.tags :]


def confidence_features(reader: Reader, sources: Tokens, targets: Tokens) -> Floats:
    """FEATURES of each translation: (translations, features). Ids are without <eos>, and no source is empty."""
    config = reader.config
    features = np.zeros((len(sources), len(FEATURES)))
    batches = batches_of_pairs(
        config, sources, targets, lambda *lengths: max(lengths) * config.target_vocab_size, LOGITS_AT_ONCE
    )
    for batch, source, target in batches:
        scores, entropies = (of_each.astype(np.float64) for of_each in reader.token_scores(source, target))
        for row, number in enumerate(batch):
            length, source_length = len(targets[number]) + 1, len(sources[number]) + 1
            tokens, entropy = scores[row, :length], entropies[row, :length].mean()
            ratio = np.log(length / source_length)
            features[number] = tokens.mean(), tokens.min(), entropy, ratio, np.log(source_length)
    return features


def probabilities(calibration: Calibration, features: Floats) -> Floats:
    """Probabilities of being acceptable, by features: (translations, features) -> (translations,)"""
    return _logistic(features @ np.array(calibration.weights) + calibration.bias)


def fit_weights(features: Floats, acceptable: NDArray[np.bool_]) -> tuple[tuple[float, ...], float]:
    """Weights and bias of the logistic regression, by Newton's method. features: (translations, features); acceptable:
    (translations,), some of each kind."""
    means, scales = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-12)
    rows = np.column_stack([(features - means) / scales, np.ones(len(features))])
    ridge = np.diag([*np.full(features.shape[1], RIDGE), 0.0])
    weights = np.zeros(rows.shape[1])
    for _ in range(MOST_STEPS):
        expected = _logistic(rows @ weights)
        gradient = rows.T @ (expected - acceptable) + ridge @ weights
        curvature = rows.T @ (rows * (expected * (1 - expected))[:, None]) + ridge
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < CLOSE:
            break
    unscaled = weights[:-1] / scales
    return tuple(unscaled.tolist()), float(weights[-1] - unscaled @ means)


def _logistic(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(values, -500, 500)))
