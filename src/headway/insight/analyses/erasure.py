"""Erasure: how much less likely is each token of the translation without a token of the source?

Li et al. 2016, "Understanding Neural Networks through Representation Erasure". A token is erased as word dropout does
it in training: its embedding is zero, its position stays. If two words can replace each other, neither seems needed.
With all words erased it gives the pointwise mutual information of token and source, given the tokens before (Fernandes
et al. 2021, "Measuring and Increasing Context Usage in Context-Aware Machine Translation", for context). A translation
that gains little from its source is a hallucination.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from headway.insight.analyses.analysis import Analysis, Analyst, Request, TokenNames
from headway.insight.analyses.reading import Reading, erasures, hidden_without, log_probabilities_of_given
from headway.insight.maps import Floats
from headway.insight.terminal import draw_map, draw_table, shown
from headway.model import Transformer

NEED = 0.1
"""Nats by which a token must become less likely for the erased one to be called needed: a factor of 0.9."""
DETACHED = 2.0
"""Nats per token: a translation that gains less from its source was probably written without it (docs/results.md)."""


@dataclass(frozen=True)
class Erasure(Analysis):
    """The loss of each token of the translation when a token of the source is erased."""

    effect: Floats
    """log p(token i) - log p(token i | source token j erased), in nats, (target, source). Below 0: likelier without."""
    needs: list[int | None]
    """For each token of the translation the source token, other than <eos>, whose erasure costs most; None if that is
    less than NEED."""
    gain: list[float]
    """log p(token) - log p(token | all of the source but <eos> erased), in nats."""

    @property
    def mean_gain(self) -> float:
        """Mean gain of a token of the translation, without <eos>, which comes with or without a source."""
        return float(np.mean(self.gain[:-1] or self.gain))

    @property
    def detached(self) -> bool:
        """A warning: the translation gains less than DETACHED from its source."""
        return self.mean_gain < DETACHED

    def document(self, vocabulary: Sequence[str]) -> dict[str, Any]:
        return {**vars(self), "mean_gain": self.mean_gain, "detached": self.detached}

    def text(self, names: TokenNames) -> Iterator[str]:
        lost = 1.0 - np.exp(-np.maximum(self.effect, 0.0))  # (target, source)
        title = "erasure: the share of its probability that each token loses without a token of the source"
        yield f"{title}\n\n{draw_map(lost, names.target, names.source)}"
        rows = [[shown(piece), f"{gain:+.2f}"] for piece, gain in zip(names.target, self.gain, strict=True)]
        warning = "; so little that it may have nothing to do with the source" if self.detached else ""
        title = "what each token gains in log-probability from the source as a whole"
        yield f"{title}, {self.mean_gain:.2f} on average{warning}\n\n{draw_table(rows)}"


class AskErasure(Request):
    """The source tokens that each token of the translation needs."""

    kind: Literal["erasure"] = "erasure"

    def compute(self, analyst: Analyst) -> Erasure:
        return erasure(analyst.model, analyst.reading)


@torch.inference_mode()
def erasure(model: Transformer, reading: Reading) -> Erasure:
    """Erases each token of the source by itself, and all words together."""
    hidden = hidden_without(model, reading, erasures(reading))  # (2 + source, target, d_model)
    given = torch.stack([log_probabilities_of_given(model, reading, one) for one in hidden])  # (2 + source, target)
    effect = (given[0] - given[2:]).T.float().cpu().numpy()
    return Erasure(effect, needed(effect), gain=(given[0] - given[1]).tolist())


def needed(effect: Floats) -> list[int | None]:
    """The column of each row's largest number, or None if that is less than NEED; the last column, <eos>, is left out.
    (target, source) -> (target,)"""
    words = effect[:, :-1]
    return [int(row.argmax()) if row.max(initial=-np.inf) >= NEED else None for row in words]
