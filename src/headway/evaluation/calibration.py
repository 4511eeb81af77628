"""How good probabilities are: whether they are as high as things happen often, and whether they tell cases apart."""

from collections.abc import Sequence

import numpy as np

BINS = 10
"""Of equal width, from 0 to 1."""


def expected_calibration_error(probabilities: Sequence[float], happened: Sequence[bool]) -> float:
    """The mean distance, over all cases, between the mean probability of a case's bin and the share of the bin's cases
    that happened (Naeini et al. 2015)."""
    chances, came = np.array(probabilities, dtype=np.float64), np.array(happened, dtype=np.float64)
    bins = np.minimum((chances * BINS).astype(int), BINS - 1)
    excess = np.bincount(bins, chances - came, minlength=BINS)  # of each bin, summed over its cases
    return float(np.abs(excess).sum() / len(chances))


def area_under_curve(scores: Sequence[float], happened: Sequence[bool]) -> float:
    """The probability that a case that happened has a higher score than one that didn't, equal scores counting half:
    the area under the ROC curve. Needs cases of both kinds."""
    _, places, counts = np.unique(np.array(scores), return_inverse=True, return_counts=True)
    came = np.array(happened, dtype=bool)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # of each value, from 1; equal ones share their mean
    of_those, others = int(came.sum()), int((~came).sum())
    total = float(ranks[places][came].sum())
    return (total - of_those * (of_those + 1) / 2) / (of_those * others)
