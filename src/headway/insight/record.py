"""The record of one translation: every attention map of the model, with the pieces they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headway.model import Transformer

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
    """For each kind the weights (layers, heads, query, key); keys of `decoder` are <bos> + target[:-1]."""


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
