"""What a head does, in numbers: where it looks, and how sharply. A is a head's map, (query, key), rows of sum 1.

| Measure | Self-attention | Encoder-decoder attention |
|---|---|---|
| `same` | mean over i of A[i, i] | none |
| `aligned` | none | mean over i of A[i, a(i)] |
| `previous` | mean over i > 0 of A[i, i - 1] | mean over a(i) > 0 of A[i, a(i) - 1] |
| `next` | mean over i < n - 1 of A[i, i + 1] | mean over a(i) < n - 1 of A[i, a(i) + 1] |
| `control` | mean over i of A[i, c] | the same |
| `entropy` | mean over i of the sum over j of -A[i, j] log2 A[i, j], in bits | the same |

a(i) is the source token that target token i is aligned with: the one other than <eos> with the largest mean of all
layers' and heads' weights. c is the control symbol among the keys: <eos> of the source, <sos> of the target. A mean
over nothing is 0. In the decoder row i belongs to the step that gives token i, and key i is the token that it reads,
which is token i - 1 of the target.
"""

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
