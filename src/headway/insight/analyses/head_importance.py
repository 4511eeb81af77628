"""The importance of heads over many sentences, in nats per token.

By ablation: the loss in log-probability of reference translations when the head gives nothing, one head at a time
(Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 3.2; Voita et al. 2019, "Analyzing Multi-Head
Self-Attention"). And by Michel et al.'s gradient proxy (section 4.1), one backward pass for all heads: the mean over
sentences of |dL/dxi|, L the loss of a sentence and xi a factor of the head's output, 1 in the model as it is. It equals
the ablation if the loss is linear in xi and has one sign for every head.
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

from headway.decoding.engine import padded
from headway.decoding.searcher import search_batches
from headway.insight.analyses.analysis import MOST_PAIRS, Analysis, Analyst, Pairs, Request, TokenNames
from headway.insight.analyses.reading import output_from, states
from headway.insight.editing import attentions, edited_model
from headway.insight.maps import KINDS, AttentionKind, Floats
from headway.insight.terminal import draw_numbers
from headway.insight.what_if import every_head
from headway.model import Transformer, cross_mask, padding_mask, target_mask
from headway.model.sharing import sharing_copy

Ids = Sequence[Sequence[int]]
Sums = Mapping[AttentionKind, NDArray[np.float64]]
"""Sums over sentences, (layers, heads)."""


@dataclass(frozen=True)
class HeadImportance(Analysis):
    """Importance for each kind of attention that the model has, (layers, heads), and the mean log-probability of a
    token over these sentences and tokens, which include <eos>."""

    ablation: Mapping[AttentionKind, Floats]
    """The loss of the translations without the head; below 0: they are likelier without it."""
    gradient: Mapping[AttentionKind, Floats]
    """Michel et al.'s proxy of its size."""
    sentences: int
    tokens: int
    log_probability: float

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


class AskHeadImportance(Request):
    """The importance of each head over some sentences."""

    kind: Literal["head_importance"] = "head_importance"
    pairs: Pairs = Field(min_length=1, max_length=MOST_PAIRS)
    """Sources and their translations."""

    @classmethod
    def from_option(cls, text: str | None, read_pairs: Callable[[str | None], Pairs]) -> Self:
        return cls(pairs=read_pairs(text))

    def texts(self) -> tuple[list[str], list[str]]:
        return [source for source, _ in self.pairs], [target for _, target in self.pairs]

    def compute(self, analyst: Analyst) -> HeadImportance:
        ids = [(analyst.source_ids(source), analyst.target_ids(target, source)) for source, target in self.pairs]
        return head_importance(analyst.model, *zip(*ids, strict=True))


def head_importance(model: Transformer, sources: Ids, targets: Ids) -> HeadImportance:
    """Ids are with <eos>."""
    every = attentions(model)
    ablation: Sums = {kind: np.zeros((len(some), some[0].num_heads)) for kind, some in every.items() if some}
    gradient: Sums = {kind: np.zeros(one.shape) for kind, one in ablation.items()}
    tokens, total = sum(map(len, targets)), 0.0
    config, device = model.config, next(model.parameters()).device
    lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
    for batch in search_batches(range(len(sources)), lengths.__getitem__, MOST_PAIRS):
        source, given = (padded([side[i] for i in batch], config.pad_id).to(device) for side in (sources, targets))
        read = torch.cat([given.new_full((len(batch), 1), config.bos_id), given[:, :-1]], dim=1)
        total += _add_gradients(model, source, read, given, gradient)
        _add_ablations(model, source, read, given, ablation)

    def per_token(sums: Sums) -> dict[AttentionKind, Floats]:
        return {kind: (one / tokens).astype(np.float32) for kind, one in sums.items()}

    return HeadImportance(per_token(ablation), per_token(gradient), len(sources), tokens, total / tokens)


def _log_probability(model: Transformer, hidden: Tensor, given: Tensor) -> Tensor:
    """The sum over all translations. hidden: the decoder's output; given: (sentences, target length) -> ()"""
    real = given != model.config.pad_id
    return -F.cross_entropy(model.output(hidden[real]).float(), given[real], reduction="sum")


def _add_gradients(model: Transformer, source: Tensor, read: Tensor, given: Tensor, found: Sums) -> float:
    """Adds |d log p / d xi| of each sentence. Returns the log-probability of all."""
    copied, factors = sharing_copy(model), {}

    def multiply(place: tuple[AttentionKind, int, int], _: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        """A hook of W_O's input."""
        factors[place] = torch.ones(len(source), 1, place[2], 1, device=source.device, requires_grad=True)
        return (inputs[0].unflatten(-1, (place[2], -1)) * factors[place].to(inputs[0].dtype)).flatten(-2)

    for kind, layers in attentions(copied).items():
        for layer, attention in enumerate(layers):
            attention.output.register_forward_pre_hook(partial(multiply, (kind, layer, attention.num_heads)))
    with torch.enable_grad():
        total = _log_probability(copied, copied.hidden_states(source, read), given)
    if total.requires_grad and factors:  # a model without decoder layers reads no source
        gradients = torch.autograd.grad(total, list(factors.values()), materialize_grads=True)
        for (kind, layer, _), gradient in zip(factors, gradients, strict=True):
            found[kind][layer] += gradient[:, 0, :, 0].abs().sum(dim=0).cpu().numpy()
    return float(total.detach())


@torch.inference_mode()
def _add_ablations(model: Transformer, source: Tensor, read: Tensor, given: Tensor, found: Sums) -> None:
    """Adds the loss of the translations without each head. The layers before the head's are computed once."""
    mask = padding_mask(source, model.config.pad_id)
    masks = target_mask(read, model.config.pad_id), cross_mask(mask)
    encoder = states(model.encoder, model.embed_source(source), mask)
    memory = model.encoder.norm(encoder[-1])
    decoder = states(model.decoder, model.embed_target(read), memory, *masks)
    whole = _log_probability(model, model.decoder.norm(decoder[-1]), given)
    for one in every_head(model.config):
        edited, layer = edited_model(model, [one]), one.layer
        if one.attention == "encoder":
            changed = output_from(edited.encoder, layer, encoder[layer], mask)
            hidden = output_from(edited.decoder, 0, decoder[0], changed, *masks)
        else:
            hidden = output_from(edited.decoder, layer, decoder[layer], memory, *masks)
        found[one.attention][layer, one.head] += float(whole - _log_probability(model, hidden, given))
