"""How much a model needs each of its heads, over many sentences and not for one alone.

By ablation: what the reference translations lose in log-probability when the head gives nothing, one head at a time
(Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3.2; Voita et al. 2019, "Analyzing Multi-Head
Self-Attention: Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned"). And by Michel et al.'s gradient proxy
(section 4.1), which costs one backward pass for all heads together: the mean over sentences of |dL/dxi|, L the loss of
a sentence and xi a factor of the head's output, 1 as the model is. Both are in nats a token here, so that the proxy
is what the ablation would be if the loss were linear in xi and every head's loss of one sign.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from headway.decoding.by_length import batches_by_length
from headway.decoding.engine import padded
from headway.insight.analyses.reading import output_from, states
from headway.insight.editing import attentions
from headway.insight.maps import AttentionKind, Floats
from headway.model import Transformer, cross_mask, padding_mask, target_mask
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
    ablation: Sums = {kind: np.zeros(shape) for kind, shape in gated.shapes.items()}
    gradient: Sums = {kind: np.zeros(shape) for kind, shape in gated.shapes.items()}
    tokens = sum(map(len, targets))
    total = 0.0
    for batch in _batches(model, sources, targets):
        total += _gradients(gated, *batch, gradient)
        _ablate(gated, *batch, ablation)
    return HeadImportance(
        ablation={kind: (one / tokens).astype(np.float32) for kind, one in ablation.items()},
        gradient={kind: (one / tokens).astype(np.float32) for kind, one in gradient.items()},
        sentences=len(sources),
        tokens=tokens,
        log_probability=total / tokens,
    )


class _Gated:
    """A copy of a model, whose heads' outputs are multiplied by gates: 1 as they are, 0 for a head that is off."""

    def __init__(self, model: Transformer) -> None:
        self.model = sharing_copy(model)
        self.gates: dict[tuple[AttentionKind, int], Tensor] = {}
        """Of the attentions that have any, (sentences or 1, 1, heads, 1)."""
        self.shapes: dict[AttentionKind, tuple[int, int]] = {}
        """Layers and heads of each kind of attention."""
        for kind, layers in attentions(self.model).items():
            if layers:
                self.shapes[kind] = len(layers), layers[0].num_heads
            for layer, attention in enumerate(layers):
                attention.output.register_forward_pre_hook(partial(self._gate, (kind, layer)))

    def _gate(self, place: tuple[AttentionKind, int], _: nn.Module, inputs: Any) -> Tensor | None:
        """A hook of W_O's input."""
        gates, [x] = self.gates.get(place), inputs
        return None if gates is None else (x.unflatten(-1, (gates.size(2), -1)) * gates.to(x.dtype)).flatten(-2)

    def log_probability(self, hidden: Tensor, given: Tensor) -> Tensor:
        """Of all translations. hidden: the decoder's output; given: (sentences, target length) -> ()"""
        real = given != self.model.config.pad_id
        return -F.cross_entropy(self.model.output(hidden[real]).float(), given[real], reduction="sum")


def _gradients(gated: _Gated, source: Tensor, read: Tensor, given: Tensor, found: Sums) -> float:
    """Adds |d log p / d gate| of each sentence. Returns the log-probability of all."""
    for kind, (layers, heads) in gated.shapes.items():
        for layer in range(layers):
            gated.gates[kind, layer] = torch.ones(len(source), 1, heads, 1, device=source.device, requires_grad=True)
    with torch.enable_grad():
        total = gated.log_probability(gated.model.hidden_states(source, read), given)
    gradients = torch.autograd.grad(total, list(gated.gates.values()))
    for (kind, layer), gradient in zip(gated.gates, gradients, strict=True):
        found[kind][layer] += gradient[:, 0, :, 0].abs().sum(dim=0).cpu().numpy()
    gated.gates.clear()
    return float(total.detach())


@torch.inference_mode()
def _ablate(gated: _Gated, source: Tensor, read: Tensor, given: Tensor, found: Sums) -> None:
    """Adds what the translations lose without each head. What comes before its layer is computed once."""
    model, pad = gated.model, gated.model.config.pad_id
    mask = padding_mask(source, pad)
    masks = target_mask(read, pad), cross_mask(mask)
    encoder = states(model.encoder, model.embed_source(source), mask)
    memory = model.encoder.norm(encoder[-1])
    decoder = states(model.decoder, model.embed_target(read), memory, *masks)
    whole = gated.log_probability(model.decoder.norm(decoder[-1]), given)
    for kind, (layers, heads) in gated.shapes.items():
        for layer in range(layers):
            for head in range(heads):
                gates = torch.ones(1, 1, heads, 1, device=memory.device)
                gates[:, :, head] = 0.0
                gated.gates[kind, layer] = gates
                if kind == "encoder":
                    changed = output_from(model.encoder, layer, encoder[layer], mask)
                    hidden = output_from(model.decoder, 0, decoder[0], changed, *masks)
                else:
                    hidden = output_from(model.decoder, layer, decoder[layer], memory, *masks)
                found[kind][layer, head] += float(whole - gated.log_probability(hidden, given))
            del gated.gates[kind, layer]


def _batches(model: Transformer, sources: Ids, targets: Ids) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Pairs of similar length together, padded: the sources, what the decoder reads, and what its steps give,
    (sentences, length) each."""
    config, device = model.config, next(model.parameters()).device
    for batch in batches_by_length(
        range(len(sources)),
        lambda i: (len(sources[i]) + len(targets[i]),),
        lambda count, longest: count * longest[0] <= TOKENS_AT_ONCE,
    ):
        source, given = (padded([side[i] for i in batch], config.pad_id).to(device) for side in (sources, targets))
        yield source, torch.cat([given.new_full((len(batch), 1), config.bos_id), given[:, :-1]], dim=1), given
