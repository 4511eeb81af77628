"""Minimum-Bayes-risk choice (Kumar and Byrne 2004; Eikema and Aziz 2020): of several translations of a text the one
that is, on average, most like all of them, by chrF, in place of the most probable one."""

from dataclasses import replace

import numpy as np

from headway.translator.translation import Translation


def least_risk(found: Translation, keep: int, *, drawn: bool) -> Translation:
    """The translation and its alternatives, the highest expected chrF first, with `keep` of them left. drawn: they are
    samples and count as often as they were drawn; else each counts by its probability."""
    from headway.evaluation import chrf_between  # loads sacreBLEU, which takes longer than all else here

    if not found.alternatives:
        return found
    candidates = [found, *found.alternatives]
    scores = np.array([one.score for one in candidates])
    weights = np.ones(len(candidates)) if drawn else np.exp(scores - scores.max())
    first: dict[str, Translation] = {}
    weight_of: dict[str, float] = {}
    for one, weight in zip(candidates, weights.tolist(), strict=True):
        first.setdefault(one.text, one)
        weight_of[one.text] = weight_of.get(one.text, 0.0) + weight
    different = list(first.values())
    expected = chrf_between(list(first)) @ np.array(list(weight_of.values()))
    ranked = [different[place] for place in np.argsort(-expected, kind="stable")[:keep]]
    return replace(ranked[0], alternatives=[replace(one, alternatives=[]) for one in ranked[1:]])
