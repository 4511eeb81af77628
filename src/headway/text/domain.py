"""Measures how far a text is from the domain that a model was learned from, by the pieces that it is cut into alone.

Pieces are learned from training text. Text of another language or domain falls into more of them, and into rarer ones.
The distance is the Mahalanobis distance (Lee et al. 2018) of two numbers, the pieces for each character and the mean
surprise of a piece, from those of known text.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

LONGEST_DOMAIN = 100
"""Maximum characters of a model's description of its domain."""
FALSE_ALARMS = 0.03
"""The share of known text that counts as text of another domain. On further text it is a little higher."""
LEAST_VARIANCE = 1e-4
"""Added to the variance of both numbers, because a few texts may be all alike."""
UNSEEN = 0.5
"""Added to the count of each piece."""


@dataclass(frozen=True)
class Domain:
    """Statistics of a domain's text. Ids are those of a tokenizer."""

    counts: Mapping[int, int]
    """Frequency of each piece in the known text, without those that never occur."""
    vocab_size: int
    mean: tuple[float, float]
    """Means of the known texts: the logarithm of the pieces for each character, the surprise of a piece in nats."""
    precision: tuple[float, float, float]
    """The inverse of the covariance of both numbers: first, between both, second."""
    farthest: float
    """The distance that all but FALSE_ALARMS of the known texts are within, above 0."""

    def distances(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """The distance of each text from the domain: above 1 is farther than nearly all known text. (texts,)

        texts: without tags, not blank. ids: the pieces of each.
        """
        return self._mahalanobis(self._looks(texts, ids, [{}] * len(texts))) / self.farthest

    def _looks(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]], left_out: Sequence[Mapping[int, int]]
    ) -> NDArray[np.float64]:
        """Both numbers of each text, by the counts of pieces less those that are left out for it. (texts, 2)"""
        total = sum(self.counts.values())
        looks = np.empty((len(texts), 2))
        for i, (text, one, less) in enumerate(zip(texts, ids, left_out, strict=True)):
            characters = len("".join(unicodedata.normalize("NFC", text).split()))
            seen = np.array([self.counts.get(id_, 0) - less.get(id_, 0) for id_ in one])
            pieces = total - sum(less.values()) + UNSEEN * self.vocab_size
            looks[i] = np.log(len(one) / max(characters, 1)), -np.log((seen + UNSEEN) / pieces).mean()
        return looks

    def _mahalanobis(self, looks: NDArray[np.float64]) -> NDArray[np.float64]:
        """(texts, 2) -> (texts,)"""
        of_first, between, of_second = self.precision
        away, precision = looks - np.array(self.mean), np.array([[of_first, between], [between, of_second]])
        return np.sqrt(np.maximum(np.einsum("ti,ij,tj->t", away, precision, away), 0.0))


def learn_domain(texts: Sequence[str], ids: Sequence[Sequence[int]], vocab_size: int) -> Domain:
    """Learns the domain of some hundred texts or more, as `Domain.distances` takes them. Each text is compared with the
    others only, so that it isn't nearer than an unknown one."""
    counts = Counter(id_ for of_text in ids for id_ in of_text)
    unfitted = Domain(counts, vocab_size, (0.0, 0.0), (1.0, 0.0, 1.0), 1.0)
    looks = unfitted._looks(texts, ids, [Counter(one) for one in ids])
    ((of_first, between), (_, of_second)) = np.linalg.inv(np.cov(looks.T) + LEAST_VARIANCE * np.eye(2)).tolist()
    mean = (float(looks[:, 0].mean()), float(looks[:, 1].mean()))
    found = replace(unfitted, mean=mean, precision=(of_first, between, of_second))
    return replace(found, farthest=max(1.0, float(np.quantile(found._mahalanobis(looks), 1 - FALSE_ALARMS))))
