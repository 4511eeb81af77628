"""The record of one translation: every attention map of the model, with the pieces they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from headway.model import Transformer
from headway.text.tokenizer import CONTROL_PIECES

AttentionKind = Literal["encoder", "decoder", "cross"]

_SUBLAYERS: dict[AttentionKind, str] = {
    "encoder": "encoder.layers.{layer}.self_attention.weights",
    "decoder": "decoder.layers.{layer}.self_attention.weights",
    "cross": "decoder.layers.{layer}.cross_attention.weights",
}


@dataclass(frozen=True)
class TranslationRecord:
    """What happened inside while a target was read and given, teacher-forced."""

    source: list[str]
    """Source pieces, <eos> last."""
    target: list[str]
    """Target pieces, <eos> last: row i of `cross` and `decoder` belongs to the step that gives target[i]."""
    attention: dict[AttentionKind, Tensor]
    """For each kind the weights (layers, heads, query, key); keys of `decoder` are <sos> + target[:-1]."""

    def labels(self, kind: AttentionKind) -> tuple[list[str], list[str]]:
        """What the queries and the keys of a kind of attention are called."""
        if kind == "encoder":
            return self.source, self.source
        return self.target, self.source if kind == "cross" else ["<sos>", *self.target[:-1]]

    def words(self) -> TranslationRecord:
        """The same with pieces joined to words: weights to the pieces of a word are added, and those from its pieces
        averaged, so that rows still sum to 1."""
        source, target = (word_groups(pieces) for pieces in (self.source, self.target))
        read = [[0], *([place + 1 for place in group] for group in target[:-1])]  # <sos> + target[:-1]
        groups = {"encoder": (source, source), "decoder": (target, read), "cross": (target, source)}
        return TranslationRecord(
            source=_joined(self.source, source),
            target=_joined(self.target, target),
            attention={kind: _merged(weights, *groups[kind]) for kind, weights in self.attention.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON: `source`, `target`, and `attention` with, for each kind, its `queries`, `keys` and `weights`
        [layer][head][query][key]."""
        return {
            "source": self.source,
            "target": self.target,
            "attention": {
                kind: {"queries": self.labels(kind)[0], "keys": self.labels(kind)[1], "weights": weights.tolist()}
                for kind, weights in self.attention.items()
            },
        }


def word_groups(pieces: Sequence[str]) -> list[list[int]]:
    """The places of each word's pieces. A word begins at a piece with `▁`; a control symbol stands alone, and pieces of
    which none has `▁` are words already."""
    if not any(piece.startswith("▁") for piece in pieces):
        return [[place] for place in range(len(pieces))]
    groups: list[list[int]] = []
    for place, piece in enumerate(pieces):
        control = piece in CONTROL_PIECES
        if control or piece.startswith("▁") or not groups or pieces[groups[-1][-1]] in CONTROL_PIECES:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def _joined(pieces: Sequence[str], groups: Sequence[Sequence[int]]) -> list[str]:
    return ["".join(pieces[place] for place in group).removeprefix("▁") or "▁" for group in groups]


def _merged(weights: Tensor, queries: Sequence[Sequence[int]], keys: Sequence[Sequence[int]]) -> Tensor:
    """weights: (..., query, key) -> (..., groups of queries, groups of keys)"""
    rows = torch.stack([weights[..., group, :].mean(dim=-2) for group in map(list, queries)], dim=-2)
    return torch.stack([rows[..., group].sum(dim=-1) for group in map(list, keys)], dim=-1)


@torch.inference_mode()
def record_translation(
    model: Transformer, source_ids: list[int], target_ids: list[int], source_pieces: list[str], target_pieces: list[str]
) -> TranslationRecord:
    """Runs the model once over a source and its translation and keeps every attention map.

    Ids and pieces are without control symbols; they are put around here.
    """
    config, device = model.config, next(model.parameters()).device
    seen: dict[str, Tensor] = {}
    source = torch.tensor([[*source_ids, config.eos_id]], device=device)
    target = torch.tensor([[config.bos_id, *target_ids]], device=device)
    model(source, target, record=lambda name, tensor: seen.update({name: tensor}))
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers, "cross": config.decoder_layers}
    return TranslationRecord(
        source=[*source_pieces, "<eos>"],
        target=[*target_pieces, "<eos>"],
        attention={
            kind: torch.stack([seen[name.format(layer=layer)][0] for layer in range(layers[kind])]).cpu()
            for kind, name in _SUBLAYERS.items()
            if layers[kind]
        },
    )
