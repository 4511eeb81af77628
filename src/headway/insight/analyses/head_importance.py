"""How much a model needs each of its heads, over many sentences and not for one alone.

By ablation: what the reference translations lose in log-probability when the head gives nothing, one head at a time
(Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3.2; Voita et al. 2019, "Analyzing Multi-Head
Self-Attention: Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned"). And by Michel et al.'s gradient proxy
(section 4.1), which costs one backward pass for all heads together: the mean over sentences of |dL/dxi|, L the loss of
a sentence and xi a factor of the head's output, 1 as the model is. Both are in nats a token here, so that the proxy
is what the ablation would be if the loss were linear in xi and every head's loss of one sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.decoding.engine import padded
from headway.insight.maps import AttentionKind, Floats
from headway.model import DecoderLayer, MultiHeadAttention, Transformer, cross_mask, padding_mask, target_mask
from headway.model.sharing import sharing_copy

TOKENS_AT_ONCE = 1 << 12
"""Padded tokens of both sides that are read together, at most, unless one pair has more."""

Ids = Sequence[Sequence[int]]
Sums = Mapping[AttentionKind, NDArray[np.float64]]
"""Over sentences, (layers, heads)."""


@dataclass(frozen=True)
class HeadImportance:
    """For each kind of attention that the model has, (layers, heads), in nats a token of the translations."""

    ablation: Mapping[AttentionKind, Floats]
    """What the translations lose without the head; below 0: they are likelier without."""
    gradient: Mapping[AttentionKind, Floats]
    """Michel et al.'s proxy of its size."""
    sentences: int
    tokens: int
    """Of the translations, with <eos>."""
    log_probability: float
    """A token, of the model as it is."""


def head_importance(model: Transformer, sources: Ids, targets: Ids) -> HeadImportance:
    """Ids are with <eos>."""
    gated = _Gated(model)
    ablation, gradient = _zeros(gated), _zeros(gated)
    tokens = sum(map(len, targets))
    total = 0.0
    for batch in _batches(model, sources, targets):
        total += _gradients(gated, batch, gradient)
        _ablate(gated, batch, ablation)
    return HeadImportance(
        _a_token(ablation, tokens),
        _a_token(gradient, tokens),
        sentences=len(sources),
        tokens=tokens,
        log_probability=total / tokens,
    )


@dataclass(frozen=True)
class _Batch:
    """Padded pairs."""

    source: Tensor
    """(sentences, source length)"""
    read: Tensor
    """What the decoder reads, (sentences, target length)"""
    given: Tensor
    """What its steps give, (sentences, target length)"""


class _Gated:
    """A copy of a model, whose heads' outputs are multiplied by gates: 1 as they are, 0 for a head that is off."""

    def __init__(self, model: Transformer) -> None:
        self.model = sharing_copy(model)
        self.gates: dict[tuple[AttentionKind, int], Tensor] = {}
        """Of the attentions that have any, (sentences or 1, 1, heads, 1)."""
        self.shapes: dict[AttentionKind, tuple[int, int]] = {}
        """Layers and heads of each kind of attention."""
        for kind, attentions in self._attentions().items():
            if attentions:
                self.shapes[kind] = len(attentions), attentions[0].num_heads
            for layer, attention in enumerate(attentions):
                attention.output.register_forward_pre_hook(self._gate(kind, layer, attention.num_heads))

    def _attentions(self) -> dict[AttentionKind, list[MultiHeadAttention]]:
        encoder, decoder = self.model.encoder.layers, cast("list[DecoderLayer]", list(self.model.decoder.layers))
        return {
            "encoder": [cast(DecoderLayer, layer).self_attention for layer in encoder],
            "decoder": [layer.self_attention for layer in decoder],
            "cross": [layer.cross_attention for layer in decoder],
        }

    def _gate(self, kind: AttentionKind, layer: int, heads: int) -> Callable[[nn.Module, Any], Tensor | None]:
        """A hook of W_O's input."""

        def gate(_: nn.Module, inputs: Any) -> Tensor | None:
            gates = self.gates.get((kind, layer))
            x = inputs[0]
            return None if gates is None else (x.unflatten(-1, (heads, -1)) * gates.to(x.dtype)).flatten(-2)

        return gate

    def encoder_states(self, batch: _Batch) -> list[Tensor]:
        """The input of each encoder layer, and the encoder's output."""
        mask = padding_mask(batch.source, self.model.config.pad_id)
        states = [self.model.embed_source(batch.source)]
        for layer in self.model.encoder.layers:
            states.append(layer(states[-1], mask))
        return [*states[:-1], self.model.encoder.norm(states[-1])]

    def memory_from(self, batch: _Batch, first: int, x: Tensor) -> Tensor:
        """The encoder's output, from the input of layer `first` on."""
        mask = padding_mask(batch.source, self.model.config.pad_id)
        for layer in list(self.model.encoder.layers)[first:]:
            x = layer(x, mask)
        return self.model.encoder.norm(x)

    def decoder_inputs(self, batch: _Batch, memory: Tensor) -> list[Tensor]:
        """The input of each decoder layer."""
        states = [self.model.embed_target(batch.read)]
        for layer in list(self.model.decoder.layers)[:-1]:
            states.append(layer(states[-1], memory, *self._decoder_masks(batch)))
        return states

    def log_probabilities(self, batch: _Batch, memory: Tensor, first: int, y: Tensor) -> Tensor:
        """Of each sentence's translation, from the input of decoder layer `first` on. -> (sentences,)"""
        for layer in list(self.model.decoder.layers)[first:]:
            y = layer(y, memory, *self._decoder_masks(batch))
        real = batch.given != self.model.config.pad_id
        logits = self.model.output(self.model.decoder.norm(y)[real])  # (tokens, vocabulary)
        tokens = logits.float().log_softmax(dim=-1).gather(1, batch.given[real][:, None])[:, 0]
        return torch.zeros(real.shape, device=y.device).masked_scatter(real, tokens).sum(dim=1)

    def _decoder_masks(self, batch: _Batch) -> tuple[Tensor, Tensor]:
        pad = self.model.config.pad_id
        return target_mask(batch.read, pad), cross_mask(padding_mask(batch.source, pad))


def _zeros(gated: _Gated) -> Sums:
    return {kind: np.zeros(shape) for kind, shape in gated.shapes.items()}


def _a_token(sums: Sums, tokens: int) -> Mapping[AttentionKind, Floats]:
    return {kind: (one / tokens).astype(np.float32) for kind, one in sums.items()}


def _gradients(gated: _Gated, batch: _Batch, found: Sums) -> float:
    """Adds |d log p / d gate| of each sentence. Returns the log-probability of all."""
    rows, device = len(batch.source), batch.source.device
    for kind, (layers, heads) in gated.shapes.items():
        for layer in range(layers):
            gated.gates[kind, layer] = torch.ones(rows, 1, heads, 1, device=device, requires_grad=True)
    with torch.enable_grad():
        memory = gated.encoder_states(batch)[-1]
        y = gated.model.embed_target(batch.read)
        total = gated.log_probabilities(batch, memory, 0, y).sum()
    places = list(gated.gates)
    gradients = torch.autograd.grad(total, [gated.gates[place] for place in places])
    for (kind, layer), gradient in zip(places, gradients, strict=True):
        found[kind][layer] += gradient[:, 0, :, 0].abs().sum(dim=0).cpu().numpy()
    gated.gates.clear()
    return float(total.detach())


@torch.inference_mode()
def _ablate(gated: _Gated, batch: _Batch, found: Sums) -> None:
    """Adds what the translations lose without each head. What comes before its layer is computed once."""
    *encoder, memory = gated.encoder_states(batch)
    decoder = gated.decoder_inputs(batch, memory)
    whole = gated.log_probabilities(batch, memory, 0, decoder[0]).sum()
    for kind, (layers, heads) in gated.shapes.items():
        for layer in range(layers):
            for head in range(heads):
                gates = torch.ones(1, 1, heads, 1, device=memory.device)
                gates[:, :, head] = 0.0
                gated.gates[kind, layer] = gates
                if kind == "encoder":
                    changed = gated.memory_from(batch, layer, encoder[layer])
                    left = gated.log_probabilities(batch, changed, 0, decoder[0])
                else:
                    left = gated.log_probabilities(batch, memory, layer, decoder[layer])
                found[kind][layer, head] += float(whole - left.sum())
            del gated.gates[kind, layer]


def _batches(model: Transformer, sources: Ids, targets: Ids) -> Iterator[_Batch]:
    """Pairs of like length together."""
    device, config = next(model.parameters()).device, model.config
    batch: list[int] = []
    for number in sorted(range(len(sources)), key=lambda i: len(sources[i]) + len(targets[i])):
        if batch and (len(batch) + 1) * (len(sources[number]) + len(targets[number])) > TOKENS_AT_ONCE:
            yield _batch(config.pad_id, config.bos_id, [sources[i] for i in batch], [targets[i] for i in batch], device)
            batch = []
        batch.append(number)
    if batch:
        yield _batch(config.pad_id, config.bos_id, [sources[i] for i in batch], [targets[i] for i in batch], device)


def _batch(pad_id: int, bos_id: int, sources: Ids, targets: Ids, device: torch.device) -> _Batch:
    source, given = (padded(side, pad_id).to(device) for side in (sources, targets))
    read = torch.cat([given.new_full((len(given), 1), bos_id), given[:, :-1]], dim=1)
    return _Batch(source, read, given)
