"""The forward pass in numpy (headway/plain.py) of a model, also without some tokens, a head or some layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.insight.what_if import HeadOff
from headway.plain import Floats, Ids, PlainTransformer
from headway.translator import Translator


@dataclass(frozen=True)
class Forward(PlainTransformer):
    """A pass without some tokens of the source: their embeddings are zero, their positions stay."""

    erased: NDArray[np.bool_] | None = None
    """(batch, source length)"""

    def embed(self, side: str, ids: Ids) -> Floats:
        rows = super().embed(side, ids)
        if side == "target" or self.erased is None:
            return rows
        return np.where(self.erased[..., None], self.positions(side, ids.shape[1]), rows)


def logarithms(
    door: Translator, source: list[int], target: list[int], off: HeadOff | None = None, erased: Any = None, **sizes: int
) -> Floats:
    """Log-probabilities (rows, target length, vocabulary), a row for each of `erased`. off: a head that gives nothing;
    sizes: other numbers of layers."""
    config = replace(door.model.config, **sizes)
    own = {name: one.detach().numpy().astype(np.float64) for name, one in door.model.named_parameters()}
    if off is not None:
        stack, sublayer = ("encoder", "self") if off.attention == "encoder" else ("decoder", "self")
        sublayer = "cross" if off.attention == "cross" else sublayer
        heads = config.num_heads if stack == "encoder" else config.decoder_num_heads or config.num_heads
        width = config.d_model // heads
        name = f"{stack}.layers.{off.layer}.{sublayer}_attention.output.weight"
        own[name] = own[name].copy()
        own[name][:, off.head * width : (off.head + 1) * width] = 0
    rows = 1 if erased is None else len(erased)
    read = [config.bos_id, *target[:-1]]
    logits = Forward(config, own, erased).logits(np.array([source] * rows), np.array([read] * rows))
    most = logits.max(axis=-1, keepdims=True)
    return logits - most - np.log(np.exp(logits - most).sum(axis=-1, keepdims=True))


def of_given(found: Floats, target: list[int]) -> Floats:
    """(rows, target length, vocabulary) -> (rows, target length)"""
    return found[:, np.arange(len(target)), target]
