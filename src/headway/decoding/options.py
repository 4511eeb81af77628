"""Options of search, each declared once with its bounds, its help and the engines that have it; and the ranking of
translations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple, Protocol, TypeVar, get_type_hints

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from headway.errors import raises_user_error

EVERY = ("ctranslate2", "torch")
TORCH = ("torch",)
CHECKED = ConfigDict(strict=True, extra="forbid")
WIDEST_BEAM, LONGEST = 1000, 2**20
"""Limits far beyond any use, so that the options of an untrusted model can't ask for all of the memory."""


class Ability(NamedTuple):
    """Something that translating may need."""

    what: str
    """A noun phrase."""
    engines: tuple[str, ...] = EVERY
    """The engines that have the ability."""


BeamSize = Annotated[
    int,
    Field(ge=1, le=WIDEST_BEAM, description="Number of hypotheses in beam search; 1 is greedy search."),
    Ability("beam search"),
]
LengthPenalty = Annotated[
    float,
    Field(
        ge=0,
        le=10,
        description="Alpha of GNMT's length penalty; 0 ranks hypotheses by total log-probability, which favours short "
        "translations.",
    ),
    Ability("a length penalty"),
]
MaxLength = Annotated[
    int | None,
    Field(
        ge=1,
        le=LONGEST,
        description="Maximum number of tokens in a translation; without it twice the number of source tokens plus 50.",
    ),
    Ability("a maximum length"),
]
BestCount = Annotated[
    int,
    Field(ge=1, description="Number of translations of each text, the best first."),
    Ability("the n best translations"),
]
NoRepeatNgram = Annotated[
    int,
    Field(
        ge=0,
        description="No sequence of this many tokens occurs twice in a translation; 0 turns it off.",
    ),
    Ability("n-grams without repetition"),
]


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
@dataclass(frozen=True, config=CHECKED)
class SearchOptions:
    """Options of a search. Raises UserError for impossible values."""

    beam_size: BeamSize = 5
    length_penalty: LengthPenalty = 1.0
    """Alpha in the function `length_penalty`."""
    max_length: MaxLength = None
    n_best: BestCount = 1
    """All but the best are `alternatives` of a `Translation`."""
    no_repeat_ngram: NoRepeatNgram = 0
    sample: Annotated[Sampling | None, Ability("sampling", TORCH)] = None
    """Sample tokens instead of searching with a beam; `n_best` is then the number of samples."""

    @model_validator(mode="after")
    def _fits(self) -> SearchOptions:
        if self.sample is None and self.n_best > self.beam_size:
            raise ValueError(f"n_best={self.n_best} is more than beam_size={self.beam_size}")
        return self


ABILITIES = {
    **{
        name: next(one for one in hint.__metadata__ if isinstance(one, Ability))
        for name, hint in get_type_hints(SearchOptions, include_extras=True).items()
    },
    "prefix": Ability("a prefix"),
    "score": Ability("scores of given translations"),
    "glossary": Ability("a glossary", TORCH),
    "ensemble": Ability("an ensemble", TORCH),
    "inspect": Ability("a look inside a model", TORCH),
}
"""Abilities by the names of options and methods of a `Translator`. `--help`, the docs and refusals read them here."""
ONLY_TORCH = [ability.what for ability in ABILITIES.values() if ability.engines == TORCH]


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6) ** alpha, GNMT's (Wu et al., 2016, equation 14): a hypothesis is ranked by its score
    divided by this. |Y| counts <eos>."""
    return ((5.0 + length) / 6.0) ** alpha


class Rankable(Protocol):
    """A `Hypothesis`, which this module may not import."""

    ids: list[int]
    score: float


F = TypeVar("F", bound=Rankable)


def normalized_score(hypothesis: Rankable, alpha: float) -> float:
    """The score divided by the length penalty."""
    return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)


def ranked(finished: Iterable[F], beam_size: int, alpha: float) -> list[F]:
    """The `beam_size` likeliest, best first by their normalised scores. CTranslate2 knows no others."""
    likeliest = sorted(finished, key=lambda one: one.score, reverse=True)[:beam_size]
    return sorted(likeliest, key=lambda one: normalized_score(one, alpha), reverse=True)
