"""How to search for a translation, and how the translations that are found rank."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from headway.errors import UserError


@dataclass(frozen=True)
class Sampling:
    """How tokens are sampled. Raises UserError for impossible values."""

    temperature: float = 1.0
    """Divides the log-probabilities; below 1, likely tokens become more likely."""
    top_k: int = 0
    """Sample only from the k most likely tokens; 0 means from all."""
    top_p: float = 1.0
    """Sample only from the most likely tokens whose probabilities add up to at least this (nucleus sampling)."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0.001 <= self.temperature <= 100.0:
            raise UserError(f"temperature={self.temperature}: must be between 0.001 and 100")
        if not 0.0 < self.top_p <= 1.0:
            raise UserError(f"top_p={self.top_p}: must be above 0, at most 1")
        _check_whole("top_k", self.top_k, 0)
        _check_whole("seed", self.seed, 0)


@dataclass(frozen=True)
class SearchOptions:
    """How to search. Raises UserError for impossible values."""

    WIDEST_BEAM: ClassVar[int] = 1000
    LONGEST: ClassVar[int] = 2**20
    """Limits far beyond any use, so that the options of an untrusted model can't ask for all of the memory."""

    beam_size: int = 5
    """Number of hypotheses that beam search keeps; 1 is greedy search."""
    length_penalty: float = 1.0
    """Alpha of GNMT's length penalty, the function `length_penalty`; 0 ranks hypotheses by total log-probability."""
    max_length: int | None = None
    """Maximum number of tokens in a translation; by default twice the number of source tokens plus 50."""
    n_best: int = 1
    """Number of translations of each text. All but the best are its `alternatives`."""
    no_repeat_ngram: int = 0
    """No sequence of this many tokens occurs twice in a translation; 0 turns it off."""
    sample: Sampling | None = None
    """Sample tokens instead of searching with a beam; `n_best` is then the number of samples."""

    def __post_init__(self) -> None:
        _check_whole("beam_size", self.beam_size, 1, self.WIDEST_BEAM)
        if self.max_length is not None:
            _check_whole("max_length", self.max_length, 1, self.LONGEST)
        _check_whole("n_best", self.n_best, 1)
        _check_whole("no_repeat_ngram", self.no_repeat_ngram, 0)
        penalty = self.length_penalty
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not 0.0 <= penalty <= 10.0:
            raise UserError(f"length_penalty={self.length_penalty!r}: must be between 0 and 10")
        if self.sample is not None and not isinstance(self.sample, Sampling):
            raise UserError(f"sample={self.sample!r}: must be a Sampling(temperature, top_k, top_p, seed)")
        if self.sample is None and self.n_best > self.beam_size:
            raise UserError(f"n_best={self.n_best} is more than beam_size={self.beam_size}")


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6) ** alpha, GNMT's (Wu et al., 2016, equation 14): a hypothesis is ranked by its score
    divided by this. |Y| counts <eos>."""
    return ((5.0 + length) / 6.0) ** alpha


class Rankable(Protocol):
    """A `Hypothesis`, which this module may not import."""

    ids: list[int]
    score: float


F = TypeVar("F", bound=Rankable)


def worth(hypothesis: Rankable, alpha: float) -> float:
    """The score divided by the length penalty."""
    return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)


def ranked(finished: Iterable[F], beam_size: int, alpha: float) -> list[F]:
    """The `beam_size` likeliest, best first by what they are worth. CTranslate2 knows no others."""
    likeliest = sorted(finished, key=lambda one: one.score, reverse=True)[:beam_size]
    return sorted(likeliest, key=lambda one: worth(one, alpha), reverse=True)


def _check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"{name}={value!r}: must be a whole number, at least {least}")
    if most is not None and value > most:
        raise UserError(f"{name}={value}: must be at most {most}")
