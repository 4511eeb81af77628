"""The importance of heads: how much a model needs each of its heads, over many sentences.

By ablation: the loss in log-probability of reference translations when the head gives nothing, one head at a time
(Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3.2; Voita et al. 2019, "Analyzing Multi-Head
Self-Attention: Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned"). And by Michel et al.'s gradient proxy
(section 4.1), which costs one backward pass for all heads together: the mean over sentences of |dL/dxi|, L the loss of
a sentence and xi a factor of the head's output, 1 in the model as it is. Both are in nats per token here, so the proxy
is the ablation if the loss is linear in xi and every head's loss has one sign.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from headway.decoding.by_length import batches_by_length
from headway.decoding.engine import padded
from headway.insight.analyses.analysis import MOST_PAIRS, Analysis, Analyst, Pairs, Request, TokenNames
from headway.insight.analyses.reading import output_from, states
from headway.insight.editing import attentions
from headway.insight.maps import KINDS, AttentionKind, Floats
from headway.insight.terminal import draw_numbers
from headway.model import Transformer, cross_mask, padding_mask, target_mask
from headway.model.sharing import sharing_copy

TOKENS_AT_ONCE = 1 << 12
"""Maximum number of padded tokens of both sides that are read together, unless one pair has more."""

Ids = Sequence[Sequence[int]]
Sums = Mapping[AttentionKind, NDArray[np.float64]]
"""Sums over sentences, (layers, heads)."""


@dataclass(frozen=True)
class HeadImportance(Analysis):
    """Importance for each kind of attention that the model has, (layers, heads), in nats per token."""

    ablation: Mapping[AttentionKind, Floats]
    """The loss of the translations without the head; below 0: they are likelier without it."""
    gradient: Mapping[AttentionKind, Floats]
    """Michel et al.'s proxy of its size."""
    sentences: int
    tokens: int
    """Number of tokens of the translations, with <eos>."""
    log_probability: float
    """Mean log-probability of a token."""

    def document(self, vocabulary: Sequence[str]) -> dict[str, Any]:
        return {"sentences": self.sentences, "tokens": self.tokens, "log_probability": self.log_probability}

    def text(self, names: TokenNames) -> Iterator[str]:
        for kind, name in KINDS.items():
            for method, values in (("ablation", self.ablation), ("gradient", self.gradient)):
                if kind in values:
                    layers, heads = (range(1, count + 1) for count in values[kind].shape)
                    rows, columns = [f"layer {layer}" for layer in layers], [f"head {head}" for head in heads]
                    title = f"{name}, importance of heads by {method}, over {self.sentences} sentences, nats a token"
                    yield f"{title}\n\n{draw_numbers(values[kind], rows, columns)}"


class HeadImportanceRequest(Request):
    """The importance of each head over some sentences."""

    kind: Literal["head_importance"] = "head_importance"
    pairs: Pairs = Field(min_length=1, max_length=MOST_PAIRS)
    """Sources and their translations."""

    @classmethod
    def from_option(cls, name: str, text: str | None, read_pairs: Callable[[str | None], Pairs]) -> Self:
        return cls(pairs=read_pairs(text))

    def texts(self) -> tuple[list[str], list[str]]:
        return [source for source, _ in self.pairs], [target for _, target in self.pairs]

    def compute(self, analyst: Analyst) -> HeadImportance:
        sources, targets = self.texts()
        ids = [analyst.source_ids(one) for one in sources], [analyst.target_ids(one) for one in targets]
        return head_importance(analyst.model, *ids)


def head_importance(model: Transformer, sources: Ids, targets: Ids) -> HeadImportance:
    """Ids are with <eos>."""
    gated = _Gated(model)
    ablation: Sums = {kind: np.zeros(shape) for kind, shape in gated.shapes.items()}
    gradient: Sums = {kind: np.zeros(shape) for kind, shape in gated.shapes.items()}
    tokens, total = sum(map(len, targets)), 0.0
    for batch in _batches(model, sources, targets):
        total += _add_gradients(gated, *batch, gradient)
        _add_ablations(gated, *batch, ablation)

    def per_token(sums: Sums) -> dict[AttentionKind, Floats]:
        return {kind: (one / tokens).astype(np.float32) for kind, one in sums.items()}

    return HeadImportance(per_token(ablation), per_token(gradient), len(sources), tokens, total / tokens)


class _Gated:
    """A copy of a model whose heads' outputs are multiplied by gates: 1 as they are, 0 for a head that is off."""

    def __init__(self, model: Transformer) -> None:
        self.model = sharing_copy(model)
        self.gates: dict[tuple[AttentionKind, int], Tensor] = {}
        """Gates of some attentions, by kind and layer, (sentences or 1, 1, heads, 1)."""
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
        """The sum over all translations. hidden: the decoder's output; given: (sentences, target length) -> ()"""
        real = given != self.model.config.pad_id
        return -F.cross_entropy(self.model.output(hidden[real]).float(), given[real], reduction="sum")


def _add_gradients(gated: _Gated, source: Tensor, read: Tensor, given: Tensor, found: Sums) -> float:
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
def _add_ablations(gated: _Gated, source: Tensor, read: Tensor, given: Tensor, found: Sums) -> None:
    """Adds the loss of the translations without each head. The layers before the head's are computed once."""
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
    """Pairs of similar length together, padded: the sources, the decoder's input, and the target of each step,
    (sentences, length) each."""
    config, device = model.config, next(model.parameters()).device
    for batch in batches_by_length(
        range(len(sources)),
        lambda i: (len(sources[i]) + len(targets[i]),),
        lambda count, longest: count * longest[0] <= TOKENS_AT_ONCE,
    ):
        source, given = (padded([side[i] for i in batch], config.pad_id).to(device) for side in (sources, targets))
        yield source, torch.cat([given.new_full((len(batch), 1), config.bos_id), given[:, :-1]], dim=1), given
