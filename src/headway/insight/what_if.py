"""Edits of a model or of its source, and their effect on a translation. `editing` edits the model, this the text."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from headway.errors import UserError, said_briefly
from headway.insight.maps import AttentionKind
from headway.model import ModelConfig

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
    """An outcome with its words, without <eos>."""

    words: tuple[Word, ...]


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
        fault = said_briefly(first["msg"])
        if first["type"] == "union_tag_invalid" and "ctx" in first:
            fault = "{tag!r} is unknown; there are {expected_tags}".format_map(first["ctx"])
        raise UserError(f"{'.'.join(map(str, (name, *first['loc'])))}: {fault}") from None


def usual_cases(config: ModelConfig, text: str) -> list[list[Edit]]:
    """The edits in a page without a live model: positions, mask and scaling switched off, each and together; each head
    switched off; each two words next to each other swapped, and any two words of a short text."""
    parts: list[Edit] = [PositionsOff(), LookAheadOff(), ScalingOff()]
    together = [list(some) for count in (1, 2, 3) for some in combinations(parts, count)]
    words = len(_WORD.findall(text))
    farthest = words if words <= SHORT else 1
    swaps = [SwapWords(first=one, second=two) for one, two in combinations(range(words), 2) if two - one <= farthest]
    return [*together, *([edit] for edit in [*every_head(config), *swaps])]


def every_head(config: ModelConfig) -> list[HeadOff]:
    """Each head of each attention, switched off."""
    decoder = config.decoder_layers, config.decoder_num_heads or config.num_heads
    sizes = {"encoder": (config.encoder_layers, config.num_heads), "decoder": decoder, "cross": decoder}
    return [
        HeadOff(attention=kind, layer=layer, head=head)
        for kind in get_args(AttentionKind)
        for layer, head in product(*map(range, sizes[kind]))
    ]


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


def sees_ahead(edits: Iterable[Edit]) -> bool:
    """Whether earlier tokens of a translation see later ones, so that each step must read all of them again."""
    return any(isinstance(edit, LookAheadOff) for edit in edits)
