"""What a head does, in numbers: where it looks, and how sharply. docs/record.md defines the measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.insight.maps import AttentionKind, Floats


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


def alignment(cross: Floats) -> NDArray[np.intp]:
    """The source token of each target token. cross: (layers, heads, target, source), <eos> last -> (target,)"""
    mean = cross.mean(axis=(0, 1))
    return (mean[:, :-1] if mean.shape[1] > 1 else mean).argmax(axis=1)


def measure_heads(kind: AttentionKind, maps: Floats) -> list[list[HeadMeasures]]:
    """For each layer and head. maps: (layers, heads, query, key)"""
    count = maps.shape[-2]
    centre = alignment(maps) if kind == "cross" else np.arange(count)
    own = "aligned" if kind == "cross" else "same"
    control = 0 if kind == "decoder" else -1
    return [
        [
            HeadMeasures(
                previous=_mean_at(head, centre - 1),
                next=_mean_at(head, centre + 1),
                control=float(head[:, control].mean()),
                entropy=_entropy(head),
                **{own: _mean_at(head, centre)},
            )
            for head in layer
        ]
        for layer in maps
    ]


def _mean_at(head: Floats, keys: NDArray[np.intp]) -> float:
    """The mean weight that each query gives to its key, of those whose key exists."""
    queries = np.flatnonzero((keys >= 0) & (keys < head.shape[1]))
    return float(head[queries, keys[queries]].mean()) if len(queries) else 0.0


def _entropy(head: Floats) -> float:
    weights = head.astype(np.float64)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return float(-(weights * logarithms).sum(axis=-1).mean()) + 0.0  # no negative zero
