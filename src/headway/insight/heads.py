"""What a head does, in numbers: where it looks, and how sharply. docs/record.md defines the measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.insight.maps import AttentionKind, Floats
from headway.storage.aligner import Aligner

MEAN = Aligner()
"""Of all layers and heads."""


@dataclass(frozen=True)
class HeadMeasures:
    """Shares of the attention, from 0 to 1, and the entropy in bits."""

    previous: float
    next: float
    control: float
    entropy: float
    same: float | None = None
    """Of self-attention."""
    aligned: float | None = None
    """Of encoder-decoder attention."""


def alignment(cross: Floats, aligner: Aligner = MEAN, first: int = 0) -> list[int | None]:
    """The number of the source token, from `first` on, that each target token is aligned with; None: with nothing.

    cross: (layers, heads, target, source), <eos> last of both. No step reads the target's <eos>: where others are
    aligned by the step that reads them, it is by the one that gives it.
    """
    layers = cross if aligner.layer is None else cross[[aligner.layer]]
    mean = (layers if aligner.head is None else layers[:, [aligner.head]]).mean(axis=(0, 1))  # (target, source)
    if aligner.shifted:
        mean = np.concatenate([mean[1:], mean[-1:]])
    length = max(mean.shape[1] - 1, 1)  # a source of <eos> alone is aligned with it
    places = mean[:, first : length + aligner.eos_is_nothing].argmax(axis=1) + first
    return [place if place < length else None for place in places.tolist()]


def measure_heads(kind: AttentionKind, maps: Floats, aligner: Aligner = MEAN) -> list[list[HeadMeasures]]:
    """For each layer and head. maps: (layers, heads, query, key)"""
    centre = alignment(maps, aligner) if kind == "cross" else list(range(maps.shape[-2]))
    queries = np.array([query for query, key in enumerate(centre) if key is not None], dtype=np.intp)
    keys = np.array([key for key in centre if key is not None], dtype=np.intp)
    own = "aligned" if kind == "cross" else "same"
    control = 0 if kind == "decoder" else -1
    return [
        [
            HeadMeasures(
                previous=_mean_at(head, queries, keys - 1),
                next=_mean_at(head, queries, keys + 1),
                control=float(head[:, control].mean()),
                entropy=_entropy(head),
                **{own: _mean_at(head, queries, keys)},
            )
            for head in layer
        ]
        for layer in maps
    ]


def _mean_at(head: Floats, queries: NDArray[np.intp], keys: NDArray[np.intp]) -> float:
    """The mean weight that each query gives to its key, of those whose key exists."""
    there = (keys >= 0) & (keys < head.shape[1])
    return float(head[queries[there], keys[there]].mean()) if there.any() else 0.0


def _entropy(head: Floats) -> float:
    weights = head.astype(np.float64)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return float(-(weights * logarithms).sum(axis=-1).mean()) + 0.0  # no negative zero
