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
    """Of encoder-decoder attention, as is the next."""
    diagonal: float | None = None


def alignment(cross: Floats) -> NDArray[np.intp]:
    """The source token of each target token. cross: (layers, heads, target, source), <eos> last -> (target,)"""
    mean = cross.mean(axis=(0, 1))
    return (mean[:, :-1] if mean.shape[1] > 1 else mean).argmax(axis=1)


def measure_heads(kind: AttentionKind, maps: Floats) -> list[list[HeadMeasures]]:
    """For each layer and head. Of encoder-decoder attention a head is measured by the alignment of all the others, so
    that it doesn't define what it is measured by. maps: (layers, heads, query, key)"""
    queries, keys = maps.shape[-2:]
    control = 0 if kind == "decoder" else -1
    total = maps.sum(axis=(0, 1), dtype=np.float64)

    def measured(head: Floats) -> HeadMeasures:
        if kind == "cross":
            others = total - head if maps.shape[0] * maps.shape[1] > 1 else total
            centre = alignment(others[None, None])
            slope = (keys - 1) / max(queries - 1, 1)
            diagonal = np.floor(np.arange(queries) * slope + 0.5).astype(int)
            own = {"aligned": _mean_at(head, centre), "diagonal": _mean_at(head, diagonal)}
        else:
            centre = np.arange(queries)
            own = {"same": _mean_at(head, centre)}
        return HeadMeasures(
            previous=_mean_at(head, centre - 1),
            next=_mean_at(head, centre + 1),
            control=float(head[:, control].mean()),
            entropy=_entropy(head),
            **own,
        )

    return [[measured(head) for head in layer] for layer in maps]


def _mean_at(head: Floats, keys: NDArray[np.intp]) -> float:
    """The mean weight that each query gives to its key, of those whose key exists."""
    queries = np.flatnonzero((keys >= 0) & (keys < head.shape[1]))
    return float(head[queries, keys[queries]].mean()) if len(queries) else 0.0


def _entropy(head: Floats) -> float:
    weights = head.astype(np.float64)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return float(-(weights * logarithms).sum(axis=-1).mean()) + 0.0  # no negative zero
