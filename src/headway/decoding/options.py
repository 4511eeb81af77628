"""Options of search, each declared once with its bounds, its help, and the engines and exports that have it."""

import logging
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from headway.errors import raises_user_error

EVERY = ("ctranslate2", "torch")
TORCH = ("torch",)
PORTED = ("web", "onnx")
CHECKED = ConfigDict(strict=True, extra="forbid")
WIDEST_BEAM, LONGEST = 1000, 2**20
"""Limits far beyond any use, so that the options of an untrusted model can't ask for all of the memory."""


class Ability(NamedTuple):
    """Something that translating may need."""

    what: str
    """A noun phrase."""
    engines: tuple[str, ...] = EVERY
    """The engines that have the ability."""
    exports: tuple[str, ...] = ()
    """The exports that keep a model's own value of the option by its name here: `web`, `onnx`."""
    huggingface: str = ""
    """Name of the option in Hugging Face's generation_config.json; empty if it has none."""


def search_option(default: Any, *ability: Any, **bounds: Any) -> Any:
    """A search option: its default, the fields of its `Ability` and pydantic's bounds. The docstring under it is the
    help of command line and recipe."""
    field = Field(default, **bounds)
    field.metadata.append(Ability(*ability))
    return field


class DefaultOptions(BaseModel):
    """Search options that a model has as its defaults, in its decoding.json. A recipe's section `decoding` and the
    commands that translate have them all."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    beam_size: int = search_option(5, "beam search", EVERY, PORTED, "num_beams", ge=1, le=WIDEST_BEAM)
    """Number of hypotheses in beam search; 1 is greedy search."""
    length_penalty: float = search_option(1.0, "a length penalty", EVERY, PORTED, "length_penalty", ge=0, le=10)
    """Alpha of GNMT's length penalty; 0 ranks hypotheses by total log-probability, which favours short translations."""
    max_length: int | None = search_option(None, "a maximum length", EVERY, PORTED, "max_length", ge=1, le=LONGEST)
    """Maximum number of tokens in a translation; without it twice the number of source tokens plus 50."""
    no_repeat_ngram: int = search_option(
        0, "n-grams without repetition", EVERY, PORTED, "no_repeat_ngram_size", ge=0, le=LONGEST
    )
    """No sequence of this many tokens occurs twice in a translation; 0 turns it off."""


@raises_user_error
@dataclass(frozen=True, config=CHECKED)
class Sampling:
    """Options of sampling tokens. Raises UserError for impossible values."""

    temperature: Annotated[float, Field(ge=0.001, le=100)] = 1.0
    """Divides the log-probabilities; below 1, likely tokens become more likely."""
    top_k: Annotated[int, Field(ge=0)] = 0
    """Sample only from the k most likely tokens; 0 means from all."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Sample only from the most likely tokens whose probabilities add up to at least this (nucleus sampling)."""
    seed: Annotated[int, Field(ge=0)] = 1


@raises_user_error
class SearchOptions(DefaultOptions):
    """Options of a search. Raises UserError for impossible values."""

    n_best: int = search_option(1, "the n best translations", EVERY, ("web",), ge=1)
    """Number of translations of each text, the best first. All but the best are `alternatives` of a `Translation`."""
    check_numbers: bool = search_option(False, "a choice by numbers", EVERY)
    """Prefer, among the hypotheses of the beam, those with all numbers of the source and no others."""
    sample: Sampling | None = search_option(None, "sampling", TORCH)
    """Sample tokens instead of searching with a beam; `n_best` is then the number of samples."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.sample is None and self.n_best > self.beam_size:
            raise ValueError(f"n_best={self.n_best} is more than beam_size={self.beam_size}")
        if self.check_numbers and (self.sample is not None or self.beam_size == 1):
            raise ValueError("check_numbers chooses among the hypotheses of a beam: give a beam_size of 2 or more")
        return self

    @property
    def changed(self) -> dict[str, Any]:
        """The options with other values than the defaults."""
        return self.model_dump(exclude_defaults=True)

    def kept_by(self, export: str) -> dict[str, Any]:
        """The options that an export keeps, by their names there. Warns of changed ones that it leaves out."""
        self.warn_of_lost(export)
        return {there: getattr(self, name) for name, there in names_in(export).items()}

    def warn_of_lost(self, export: str) -> None:
        """Warns of changed options that an export leaves out."""
        for name, value in self.changed.items():
            if name not in names_in(export):
                logging.getLogger(__name__).warning("headway: an export to %s leaves out %s=%s", export, name, value)


ABILITIES = {
    **{
        name: next(one for one in field.metadata if isinstance(one, Ability))
        for name, field in SearchOptions.model_fields.items()
    },
    "prefix": Ability("a prefix"),
    "score": Ability("scores of given translations"),
    "glossary": Ability("a glossary", TORCH),
    "ensemble": Ability("an ensemble", TORCH),
    "inspect": Ability("a look inside a model", TORCH),
}
"""Abilities by the names of options and methods of a `Translator`. `--help`, the docs and refusals read them here."""
ONLY_TORCH = [ability.what for ability in ABILITIES.values() if ability.engines == TORCH]


def names_in(export: str) -> dict[str, str]:
    """The names in an export of the options that it keeps, by their names here."""
    if export == "huggingface":
        return {name: one.huggingface for name, one in ABILITIES.items() if one.huggingface}
    return {name: name for name, one in ABILITIES.items() if export in one.exports}
