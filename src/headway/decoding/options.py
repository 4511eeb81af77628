"""How to search for a translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.errors import UserError


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. Raises UserError for what is impossible."""

    temperature: float = 1.0
    """Log-probabilities are divided by it: below 1 likely tokens become likelier still."""
    top_k: int = 0
    """Only the k likeliest tokens; 0: all."""
    top_p: float = 1.0
    """Only the likeliest tokens that together have at least this probability (nucleus sampling)."""
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
    """How to search. Raises UserError for what is impossible."""

    WIDEST_BEAM: ClassVar[int] = 1000
    LONGEST: ClassVar[int] = 2**20
    """Limits far beyond any use, so that the options of a stranger's model can't ask for all the memory there is."""

    beam_size: int = 5
    """Hypotheses that are followed side by side; 1 is greedy search."""
    length_penalty: float = 1.0
    """Alpha of GNMT's length penalty, see `headway.decoding.beam.length_penalty`; 0 ranks by total log-probability."""
    max_length: int | None = None
    """Most pieces of a translation; by default twice the source's and 50 more."""
    n_best: int = 1
    """Translations of each text; the others are `alternatives` of the best."""
    no_repeat_ngram: int = 0
    """No run of so many pieces occurs twice in a translation; 0: any may."""
    sample: Sampling | None = None
    """Draw tokens by chance in place of a beam; the n best are then n that were drawn."""

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


def _check_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"{name}={value!r}: must be a whole number, at least {least}")
    if most is not None and value > most:
        raise UserError(f"{name}={value}: must be at most {most}")
