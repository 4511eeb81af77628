"""Models with edits, for what-ifs.

An edit changes a copy of the model. The layers know nothing of it: a head is switched off by zeroing its rows of W_O,
positions by another module in their place, the mask by a hook that leaves it out, the scaling by a factor of W_Q. A
model whose earlier tokens see later ones needs an engine of its own, which caches nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from headway.errors import UserError
from headway.insight.maps import AttentionKind, attention_names
from headway.insight.what_if import Edit, HeadOff, LookAheadOff, PositionsOff, ScalingOff
from headway.model import MultiHeadAttention, Transformer
from headway.model.positions import SinusoidalPositions
from headway.model.sharing import sharing_copy


@torch.no_grad()
def edited_model(model: Transformer, edits: Sequence[Edit]) -> Transformer:
    """A copy after the edits; weights that none of them changes are shared with the model. Raises UserError."""
    model = sharing_copy(model)
    every = attentions(model)
    for edit in edits:
        if isinstance(edit, HeadOff):
            _switch_off(every[edit.attention], edit)
        elif isinstance(edit, PositionsOff):
            nothing = SinusoidalPositions(model.config.d_model, model.source_embedding.weight.new_zeros)
            model.source_positions = model.target_positions = nothing
        elif isinstance(edit, LookAheadOff):
            for attention in every["decoder"]:
                attention.register_forward_pre_hook(
                    lambda _, inputs, named: (inputs[:3], {**named, "mask": None}), with_kwargs=True
                )
        elif isinstance(edit, ScalingOff):
            for attention in (one for layers in every.values() for one in layers):
                factor, query = math.sqrt(attention.query.out_features / attention.num_heads), attention.query
                query.weight, query.bias = nn.Parameter(query.weight * factor), nn.Parameter(query.bias * factor)
    return model


def attentions(model: Transformer) -> dict[AttentionKind, list[MultiHeadAttention]]:
    """The attention of each layer, for each kind."""
    return {
        kind: [cast(MultiHeadAttention, model.get_submodule(name.removesuffix(".weights"))) for name in names]
        for kind, names in attention_names(model.config).items()
    }


def _switch_off(layers: Sequence[MultiHeadAttention], edit: HeadOff) -> None:
    name = f"edits: {edit.attention} attention"
    if edit.layer >= len(layers):
        raise UserError(f"{name} has no layer {edit.layer}, only {len(layers)}, from 0")
    attention = layers[edit.layer]
    if edit.head >= attention.num_heads:
        raise UserError(f"{name} has no head {edit.head}, only {attention.num_heads}, from 0")
    size = attention.output.in_features // attention.num_heads
    weight = attention.output.weight.clone()
    weight[:, edit.head * size : (edit.head + 1) * size] = 0.0  # torch's weight is W_O transposed
    attention.output.weight = nn.Parameter(weight)


@dataclass
class Prefixes:
    """The state of unfinished translations."""

    source: Tensor  # (rows, source length)
    tokens: Tensor  # target tokens that were read so far, (rows, length)


class RecomputingEngine:
    """An `Engine` that reads the source and all tokens again at each step, by the model itself."""

    def __init__(self, model: Transformer, never: Sequence[int] = ()) -> None:
        """`never`: as of `TorchEngine`."""
        self._model = model
        self.bos_id, self.eos_id = model.config.bos_id, model.config.eos_id
        self._never = [id_ for id_ in (model.config.pad_id, self.bos_id, *never) if id_ != self.eos_id]

    @torch.inference_mode()
    def start(self, source: Tensor) -> Prefixes:
        return Prefixes(source, source.new_zeros(len(source), 0))

    @torch.inference_mode()
    def step(self, state: Prefixes, tokens: Tensor) -> Tensor:
        state.tokens = torch.cat([state.tokens, tokens[:, None]], dim=1)
        hidden = self._model.hidden_states(state.source, state.tokens)[:, -1]  # (rows, d_model)
        log_probabilities = self._model.output(hidden).float().log_softmax(dim=-1)
        log_probabilities[:, self._never] = -torch.inf
        return log_probabilities

    @torch.inference_mode()
    def select(self, state: Prefixes, rows: Tensor) -> None:
        state.source, state.tokens = (one[rows.flatten()] for one in (state.source, state.tokens))


@torch.inference_mode()
def prefix_logits(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """Logits after each token from a model that has read the target only up to that token. source: (batch, source
    length); target: (batch, length), <bos> first -> (batch, length, vocabulary)"""
    hidden = [model.hidden_states(source, target[:, :end])[:, -1] for end in range(1, target.size(1) + 1)]
    return model.output(torch.stack(hidden, dim=1))
