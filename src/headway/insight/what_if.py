"""What if: edits of a model or its source, and what they do to a translation.

An edit changes a copy of the model, or the text. The layers know nothing of it: a head is switched off by zeroing its
rows of W_O, positions by putting another module in their place, the mask by a hook that leaves it out, the scaling by a
factor of W_Q. A model whose earlier tokens see later ones needs an engine of its own, which keeps nothing of a step for
the next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Annotated, Any, Literal, TypeVar, get_args

import torch
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from torch import Tensor, nn

from headway.errors import UserError
from headway.insight.maps import AttentionKind, attentions
from headway.model import ModelConfig, MultiHeadAttention, Transformer, padding_mask, target_mask
from headway.model.sharing import sharing_copy

_WORD = re.compile(r"\S+")
SHORT = 8
"""Words of a text of which any two are swapped."""


class StrictForm(BaseModel):
    """A JSON object that has no other fields than these, and never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class HeadOff(StrictForm):
    """One head is switched off: its rows of W_O are zero."""

    kind: Literal["head_off"] = "head_off"
    attention: AttentionKind
    layer: int = Field(ge=0)
    head: int = Field(ge=0)


class PositionsOff(StrictForm):
    """Nothing is added to the embeddings, on either side."""

    kind: Literal["positions_off"] = "positions_off"


class LookAheadOff(StrictForm):
    """The decoder's self-attention has no mask: each token sees all tokens so far."""

    kind: Literal["look_ahead_off"] = "look_ahead_off"


class ScalingOff(StrictForm):
    """Scores are not divided by sqrt(d_k), in any attention."""

    kind: Literal["scaling_off"] = "scaling_off"


class SwapWords(StrictForm):
    """Two words of the source change places. Words are separated by spaces and numbered from 0."""

    kind: Literal["swap_words"] = "swap_words"
    first: int = Field(ge=0)
    second: int = Field(ge=0)


Edit = Annotated[HeadOff | PositionsOff | LookAheadOff | ScalingOff | SwapWords, Field(discriminator="kind")]
_EDITS: TypeAdapter[list[Edit]] = TypeAdapter(list[Edit])
Form = TypeVar("Form")


@dataclass(frozen=True)
class Outcome:
    """A translation and its total log-probability, from the model that produced it."""

    text: str
    score: float


@dataclass(frozen=True)
class Word:
    """A word of a translation."""

    text: str
    probability: float
    """The product of the probabilities of its tokens, each after all tokens before it."""


@dataclass(frozen=True)
class Tried(Outcome):
    """An outcome with its words."""

    words: tuple[Word, ...]
    """Without <eos>."""


@dataclass(frozen=True)
class WhatIf:
    """The effect of edits on a translation."""

    edits: list[Edit]
    source: str
    """The text as it was translated."""
    after: Tried
    """The translation of the edited model, or of the edited text."""
    before: Tried
    """The translation without the edits, with the probabilities that the edited model gives it."""


def read_edits(document: Any) -> list[Edit]:
    """Edits from their JSON form, a list of objects with `kind`. Raises UserError."""
    return read_as(_EDITS, document, "edits")


def read_as(form: TypeAdapter[Form], document: Any, name: str) -> Form:
    """The document of this name in its form. Raises UserError."""
    try:
        return form.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(f"{'.'.join(map(str, (name, *first['loc'])))}: {first['msg']}") from None


def usual_cases(config: ModelConfig, text: str) -> list[list[Edit]]:
    """What a page without a live model shows: positions, mask and scaling switched off, each and together; each head
    switched off; each two words next to each other swapped, and any two words of a short text."""
    parts: list[Edit] = [PositionsOff(), LookAheadOff(), ScalingOff()]
    together = [list(some) for count in (1, 2, 3) for some in combinations(parts, count)]
    edits: list[Edit] = []
    encoder = config.encoder_layers, config.num_heads
    decoder = config.decoder_layers, config.decoder_num_heads or config.num_heads
    for kind in get_args(AttentionKind):
        places = product(*map(range, encoder if kind == "encoder" else decoder))
        edits += [HeadOff(attention=kind, layer=layer, head=head) for layer, head in places]
    words = len(_WORD.findall(text))
    farthest = words if words <= SHORT else 1
    edits += [SwapWords(first=one, second=two) for one, two in combinations(range(words), 2) if two - one <= farthest]
    return [*together, *([edit] for edit in edits)]


def edited_text(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits that change it. Raises UserError."""
    for edit in edits:
        if isinstance(edit, SwapWords):
            words = list(_WORD.finditer(text))
            low, high = sorted((edit.first, edit.second))
            if high >= len(words):
                raise UserError(f"edits: there is no word {high}, the text has {len(words)}, numbered from 0")
            text = swapped(words[low], words[high]) if low != high else text
    return text


def swapped(one: re.Match[str], other: re.Match[str]) -> str:
    """The text in which two words were found, the first one first, with each in the other's place."""
    text = one.string
    return f"{text[: one.start()]}{other[0]}{text[one.end() : other.start()]}{one[0]}{text[other.end() :]}"


def changes_model(edits: Iterable[Edit]) -> bool:
    """Whether any of them changes more than the text."""
    return not all(isinstance(edit, SwapWords) for edit in edits)


def edited_model(model: Transformer, edits: Sequence[Edit]) -> Transformer:
    """A copy after the edits; weights that none of them changes are shared with the model. Raises UserError."""
    model = sharing_copy(model)
    every = attentions(model)
    for edit in edits:
        if isinstance(edit, HeadOff):
            _switch_off(every[edit.attention], edit)
        elif isinstance(edit, PositionsOff):
            model.source_positions = NoPositions(model.source_embedding.weight)
            model.target_positions = NoPositions(model.target_embedding.weight)
        elif isinstance(edit, LookAheadOff):
            for attention in every["decoder"]:
                attention.register_forward_pre_hook(_without_mask, with_kwargs=True)
        elif isinstance(edit, ScalingOff):
            for attention in (one for layers in every.values() for one in layers):
                _undo_scaling(attention)
    return model


def sees_ahead(edits: Iterable[Edit]) -> bool:
    """Whether the earlier tokens of a translation are to be read anew at each step, because they see the later."""
    return any(isinstance(edit, LookAheadOff) for edit in edits)


class NoPositions(nn.Module):
    """Zeros in the place of positions, on the device and of the type of the embeddings. (vocabulary, d_model)"""

    def __init__(self, embeddings: Tensor) -> None:
        super().__init__()
        self.zero: Tensor
        self.register_buffer("zero", embeddings.new_zeros(embeddings.size(1)), persistent=False)

    def forward(self, length: int, start: int = 0) -> Tensor:
        """-> (length, d_model)"""
        return self.zero.expand(length, -1)


def _without_mask(_: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A hook for an attention: the mask, its fourth input, is left out."""
    return inputs[:3], {**named, "mask": None}


@torch.no_grad()
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


@torch.no_grad()
def _undo_scaling(attention: MultiHeadAttention) -> None:
    factor = math.sqrt(attention.query.out_features / attention.num_heads)
    attention.query.weight = nn.Parameter(attention.query.weight * factor)
    attention.query.bias = nn.Parameter(attention.query.bias * factor)


@dataclass
class Prefixes:
    """Where translations stand."""

    memory: Tensor
    """(rows, source length, d_model)"""
    memory_mask: Tensor
    """(rows, 1, 1, source length)"""
    tokens: Tensor
    """What was read so far, (rows, length)"""


class RecomputingEngine:
    """An `Engine` that reads all tokens anew at each step, by the model's own `decode`."""

    def __init__(self, model: Transformer, never: Sequence[int] = ()) -> None:
        """`never`: as of `TorchEngine`."""
        self._model = model
        self.bos_id, self.eos_id = model.config.bos_id, model.config.eos_id
        self._never = [id_ for id_ in (model.config.pad_id, self.bos_id, *never) if id_ != self.eos_id]

    @torch.inference_mode()
    def start(self, source: Tensor) -> Prefixes:
        mask = padding_mask(source, self._model.config.pad_id)
        return Prefixes(self._model.encode(source, mask), mask, source.new_zeros(len(source), 0))

    @torch.inference_mode()
    def step(self, state: Prefixes, tokens: Tensor) -> Tensor:
        state.tokens = torch.cat([state.tokens, tokens[:, None]], dim=1)
        logits = _next_logits(self._model, state.tokens, state.memory, state.memory_mask)
        log_probabilities = logits.float().log_softmax(dim=-1)
        log_probabilities[:, self._never] = -torch.inf
        return log_probabilities

    @torch.inference_mode()
    def select(self, state: Prefixes, rows: Tensor) -> None:
        kept = rows.flatten()
        state.memory, state.memory_mask, state.tokens = state.memory[kept], state.memory_mask[kept], state.tokens[kept]

    @torch.inference_mode()
    def score(self, source: Tensor, target: Tensor) -> Tensor:
        log_probabilities = prefix_logits(self._model, source, target[:, :-1]).float().log_softmax(dim=-1)
        given = target[:, 1:]
        scores = log_probabilities.gather(2, given[:, :, None])[:, :, 0]  # (batch, target length)
        return scores.masked_fill(given == self._model.config.pad_id, 0.0)


@torch.inference_mode()
def prefix_logits(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """What the model gives after each token, having read the target up to that token alone. source: (batch, source
    length); target: (batch, length), <bos> first -> (batch, length, vocabulary)"""
    mask = padding_mask(source, model.config.pad_id)
    memory = model.encode(source, mask)
    steps = [_next_logits(model, target[:, :end], memory, mask) for end in range(1, target.size(1) + 1)]
    return torch.stack(steps, dim=1)


def _next_logits(model: Transformer, read: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
    """read: (rows, length) -> (rows, vocabulary)"""
    mask = target_mask(read, model.config.pad_id)
    return model.output(model.decode(read, memory, mask, memory_mask)[:, -1])
