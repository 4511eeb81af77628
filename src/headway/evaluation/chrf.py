"""chrF (Popović 2015) between all texts of a few: what the choice by the least expected risk asks for. Equal to
sacreBLEU's of single sentences, which would take apart each text once for each other one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ORDER = 6
"""The longest n-grams of characters."""
BETA = 2
"""How much more recall counts than precision."""


def chrf_between(texts: Sequence[str]) -> NDArray[np.float64]:
    """(texts, texts): row i, column j has the chrF of text i with text j as the reference, 0 to 100."""
    characters = ["".join(text.split()) for text in texts]
    precision, recall, orders = np.zeros((3, len(texts), len(texts)))
    for order in range(1, ORDER + 1):
        counts = _counts(characters, order)
        totals = counts.sum(axis=1)  # (texts,)
        matches = np.array([np.minimum(one, counts).sum(axis=1) for one in counts])  # (texts, texts)
        both = (totals[:, None] > 0) & (totals > 0)
        precision += np.divide(matches, totals[:, None], out=np.zeros(both.shape), where=both)
        recall += np.divide(matches, totals, out=np.zeros(both.shape), where=both)
        orders += both
    precision, recall = (np.divide(sums, orders, out=sums, where=orders > 0) for sums in (precision, recall))
    weighted = BETA**2 * precision + recall
    scores = (1 + BETA**2) * precision * recall
    return 100 * np.divide(scores, weighted, out=np.zeros_like(scores), where=weighted > 0)


def _counts(texts: Sequence[str], order: int) -> NDArray[np.int32]:
    """How often each text has each n-gram of any of them: (texts, n-grams)"""
    columns: dict[str, int] = {}
    grams = [
        [columns.setdefault(text[start : start + order], len(columns)) for start in range(len(text) - order + 1)]
        for text in texts
    ]
    counts = np.zeros((len(texts), len(columns)), dtype=np.int32)
    for row, of_text in zip(counts, grams, strict=True):
        np.add.at(row, of_text, 1)
    return counts
