"""Whether a text is like the text that a domain was learned from: by the pieces that it is cut into alone.

Pieces are learned from training text. Text of another language or domain falls into more of them, and into rarer ones.
Two numbers tell of it, the pieces for each character and the mean surprise of a piece, and the Mahalanobis distance
(Lee et al. 2018) of both from those of known text says how far a text is from it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

LONGEST_DOMAIN = 100
"""Characters of what a model says that its text is about."""
FALSE_ALARMS = 0.03
"""The share of known text that is as far away as text of another domain. On further text it is a little more."""
LEAST_VARIANCE = 1e-4
"""Added to that of both numbers, because a few texts may be all alike."""
UNSEEN = 0.5
"""Added to the count of each piece."""


@dataclass(frozen=True)
class Domain:
    """What text of a domain looks like. Ids are those of a tokenizer."""

    counts: Mapping[int, int]
    """How often each piece stands in the known text; those that never do are left out."""
    vocab_size: int
    mean: tuple[float, float]
    """Of the known texts: the logarithm of the pieces for each character, and the surprise of a piece in nats."""
    precision: tuple[float, float, float]
    """The inverse of the covariance of these: of the first, between both, of the second."""
    farthest: float
    """The distance that all but FALSE_ALARMS of the known texts are within, above 0."""

    def distances(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """How far each text is from the domain: above 1 is farther than nearly all known text. (texts,)

        texts: without tags, not blank. ids: the pieces of each.
        """
        total = sum(self.counts.values())
        looks = [_look(text, one, self._surprise(one, total, {})) for text, one in zip(texts, ids, strict=True)]
        return self._mahalanobis(np.array(looks).reshape(-1, 2)) / self.farthest

    def _surprise(self, ids: Sequence[int], total: int, left_out: Mapping[int, int]) -> float:
        """The mean of the pieces' negative log-probabilities, by the counts less those that are left out."""
        seen = np.array([self.counts.get(id_, 0) - left_out.get(id_, 0) for id_ in ids])
        pieces = total - sum(left_out.values())
        return float(-np.log((seen + UNSEEN) / (pieces + UNSEEN * self.vocab_size)).mean())

    def _mahalanobis(self, looks: NDArray[np.float64]) -> NDArray[np.float64]:
        """(texts, 2) -> (texts,)"""
        first, second = (looks - np.array(self.mean)).T
        of_first, between, of_second = self.precision
        squares = of_first * first**2 + 2 * between * first * second + of_second * second**2
        return np.sqrt(np.maximum(squares, 0.0))


def learn_domain(texts: Sequence[str], ids: Sequence[Sequence[int]], vocab_size: int) -> Domain:
    """Of texts as `Domain.distances` takes them, a few hundred or more. A text is compared with all others, so that it
    isn't nearer than one that wasn't known."""
    counts = Counter(id_ for of_text in ids for id_ in of_text)
    unfitted = Domain(counts, vocab_size, (0.0, 0.0), (1.0, 0.0, 1.0), 1.0)
    total = sum(counts.values())
    surprises = [unfitted._surprise(one, total, Counter(one)) for one in ids]
    looks = np.array([_look(*one) for one in zip(texts, ids, surprises, strict=True)])
    ((of_first, between), (_, of_second)) = np.linalg.inv(np.cov(looks.T) + LEAST_VARIANCE * np.eye(2)).tolist()
    mean = (float(looks[:, 0].mean()), float(looks[:, 1].mean()))
    found = replace(unfitted, mean=mean, precision=(of_first, between, of_second))
    return replace(found, farthest=max(1.0, float(np.quantile(found._mahalanobis(looks), 1 - FALSE_ALARMS))))


def _look(text: str, ids: Sequence[int], surprise: float) -> tuple[float, float]:
    characters = len("".join(unicodedata.normalize("NFC", text).split()))
    return float(np.log(len(ids) / max(characters, 1))), surprise
