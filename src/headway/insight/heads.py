"""What a head does, in numbers: where it looks, and how sharply. docs/record.md defines the measures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headway.insight.maps import AttentionKind, Floats
from headway.storage.aligner import Aligner
from headway.translator.aligning import MEAN, alignment


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
    """Of encoder-decoder attention, like the next one."""
    diagonal: float | None = None


def measure_heads(kind: AttentionKind, maps: Floats, aligner: Aligner = MEAN) -> list[list[HeadMeasures]]:
    """For each layer and head. Of encoder-decoder attention a head is measured by the alignment of the others, so that
    it doesn't define what it is measured by. maps: (layers, heads, query, key)"""
    return [
        [_measured(kind, head, _centre(kind, maps, aligner, layer, number)) for number, head in enumerate(heads)]
        for layer, heads in enumerate(maps)
    ]


def _centre(kind: AttentionKind, maps: Floats, aligner: Aligner, layer: int, head: int) -> list[int | None]:
    """The key that each query of a head is measured by."""
    if kind != "cross":
        return list(range(maps.shape[-2]))
    others = maps.copy()
    others[layer, head] = 0.0
    chosen = others if aligner.layer is None else others[[aligner.layer]]
    if not (chosen if aligner.head is None else chosen[:, [aligner.head]]).any():
        aligner = replace(aligner, layer=None, head=None)
    return alignment(others if others.any() else maps, aligner)  # a head without others by itself


def _measured(kind: AttentionKind, head: Floats, centre: list[int | None]) -> HeadMeasures:
    """head: (query, key)"""
    places = np.arange(len(centre))
    queries = np.array([query for query, key in enumerate(centre) if key is not None], dtype=np.intp)
    keys = np.array([key for key in centre if key is not None], dtype=np.intp)
    own = {"aligned" if kind == "cross" else "same": _mean_at(head, queries, keys)}
    if kind == "cross":
        slope = (head.shape[1] - 1) / max(len(head) - 1, 1)
        own["diagonal"] = _mean_at(head, places, np.floor(places * slope + 0.5).astype(np.intp))
    return HeadMeasures(
        previous=_mean_at(head, queries, keys - 1),
        next=_mean_at(head, queries, keys + 1),
        control=float(head[:, 0 if kind == "decoder" else -1].mean()),
        entropy=_entropy(head),
        **own,
    )


def _mean_at(head: Floats, queries: NDArray[np.intp], keys: NDArray[np.intp]) -> float:
    """The mean weight that each query gives to its key, of those whose key exists."""
    there = (keys >= 0) & (keys < head.shape[1])
    return float(head[queries[there], keys[there]].mean()) if there.any() else 0.0


def _entropy(head: Floats) -> float:
    weights = head.astype(np.float64)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return float(-(weights * logarithms).sum(axis=-1).mean()) + 0.0  # no negative zero
