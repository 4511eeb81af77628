"""Erasure of source tokens: how much less likely each token of the translation is without a token of the source.

Li et al. 2016, "Understanding Neural Networks through Representation Erasure"; for images it is called occlusion
(Zeiler and Fergus 2014). It asks the model itself, so it says what a word needs, where attention says where it looks.
A pair of words that can stand in for each other shows no need of either.

With all words erased at once it says what the source as a whole is good for: pointwise mutual information of token and
source, given the tokens before (as Fernandes et al. 2021, "Measuring and Increasing Context Usage in Context-Aware
Machine Translation", measure it for context). A translation that gains little from its source is a hallucination.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headway.insight.analyses.reading import Reading, each_erased, hidden_without, nothing_erased, words_erased
from headway.insight.maps import Floats
from headway.model import Transformer

NEED = 0.1
"""Nats by which a token must become less likely for the erased one to be called needed: a factor of 0.9."""
DETACHED = 2.0
"""Nats a token: where a translation gains less from its source, it is likely to be written without regard to it
(docs/results.md)."""


@dataclass(frozen=True)
class Erasure:
    """What each token of the translation loses when a token of the source is erased."""

    effect: Floats
    """log p(token i) - log p(token i | source token j erased), in nats, (target, source). Below 0: likelier without."""
    needs: list[int | None]
    """For each token of the translation the source token, other than <eos>, that it loses most without; None where
    that is less than NEED."""
    gain: list[float]
    """log p(token) - log p(token | all of the source but <eos> erased), in nats."""

    @property
    def mean_gain(self) -> float:
        """A token of the translation without <eos>, which comes with or without a source."""
        return float(np.mean(self.gain[:-1] or self.gain))

    @property
    def detached(self) -> bool:
        """A warning: the translation gains less than DETACHED from its source."""
        return self.mean_gain < DETACHED


@torch.inference_mode()
def erasure(model: Transformer, reading: Reading) -> Erasure:
    """Erases each token of the source by itself, and all words together."""
    rows = torch.cat([nothing_erased(reading), words_erased(reading), each_erased(reading)])
    hidden = hidden_without(model, reading, rows)  # (2 + source, target, d_model)
    given = torch.stack([_given(model, one, reading) for one in hidden])  # (2 + source, target)
    effect = (given[0] - given[2:]).T.float().cpu().numpy()
    return Erasure(effect, needed(effect), gain=(given[0] - given[1]).tolist())


def needed(effect: Floats) -> list[int | None]:
    """For each row the column of its largest number, or None where that is less than NEED; the last column, <eos>,
    left out. (target, source) -> (target,)"""
    words: NDArray[np.float32] = effect[:, :-1]
    if not words.shape[1]:
        return [None] * len(effect)
    return [int(row.argmax()) if row.max() >= NEED else None for row in words]


def _given(model: Transformer, hidden: torch.Tensor, reading: Reading) -> torch.Tensor:
    """Log-probabilities of the tokens that were given. hidden: (target, d_model) -> (target,)"""
    return model.output(hidden).log_softmax(dim=-1).gather(1, reading.given[:, None])[:, 0]
