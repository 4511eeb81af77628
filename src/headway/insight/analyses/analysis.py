"""An analysis of a translation: its request, its result, and what both are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.insight.maps import Floats
from headway.insight.terminal import shown
from headway.insight.what_if import Outcome, StrictForm
from headway.text.characters import is_blank

if TYPE_CHECKING:
    from headway.insight.analyses.reading import Reading
    from headway.model import Transformer
    from headway.translator import Translator

MOST_PAIRS = 100
"""Pairs over which the importance of heads is measured, at most."""
LONGEST_ANALYSED = 40
"""Tokens of a text that is analysed for a page; the work grows with their cube."""
Pairs = list[tuple[str, str]]


class Request(StrictForm):
    """A request for an analysis. JSON: an object with `kind`, or the kind alone if nothing else is needed."""

    kind: Any = ""

    @classmethod
    def from_option(cls, text: str | None, read_pairs: Callable[[str | None], Pairs]) -> Self:
        """The request for `--analysis KIND` or `KIND=TEXT`. read_pairs: reads a file of pairs, None for the run's
        validation pairs. Raises UserError."""
        if text is not None:
            raise UserError(f"--analysis {cls().kind}={text}: {cls().kind} takes no text")
        return cls()

    def texts(self) -> tuple[list[str], list[str]]:
        """Other texts that the model reads: in the language of the source, and in that of the target."""
        return [], []

    @abstractmethod
    def compute(self, analyst: Analyst) -> Analysis:
        """The result for the analyst's translation. Raises UserError."""


class TokenNames(NamedTuple):
    """Names of the tokens of a translation, <eos> last, and the target vocabulary by id."""

    source: Sequence[str]
    target: Sequence[str]
    vocabulary: Sequence[str]

    def of_id(self, id_: int) -> str:
        return shown(self.vocabulary[id_].removeprefix("▁"))


class Analysis(ABC):
    """The result of an analysis, a dataclass."""

    def document(self, vocabulary: Sequence[str]) -> dict[str, Any]:
        """The entry in a record's JSON form, whose arrays will be left out. vocabulary: the target's."""
        return vars(self)

    @abstractmethod
    def text(self, names: TokenNames) -> Iterator[str]:
        """Titled tables and maps for a terminal."""

    def arrays(self) -> Iterator[tuple[str, Floats]]:
        """Every array with the end of its name in a record, such as `source` or `ablation.cross`."""
        for name, value in vars(self).items():
            for kind, array in value.items() if isinstance(value, Mapping) else [(None, value)]:
                if isinstance(array, np.ndarray):
                    yield f"{name}.{kind}" if kind else name, array


@dataclass
class Analyst:
    """Computes the requested analyses of one translation, each once."""

    requests: Mapping[type[Request], Request]
    model: Transformer
    arrays: Mapping[str, NDArray[Any]]
    """The record of the model's pass over the translation."""
    reading: Reading
    source_ids: Callable[[str], list[int]]
    target_ids: Callable[..., list[int]]
    """Ids of another source, and of another translation of the source or of one that is given, too, <eos> last. Both
    raise UserError."""
    greedy: Callable[[Transformer], Outcome]
    """The translation of the source by another model."""
    _results: dict[type[Request], Any] = field(default_factory=dict)

    def result(self, kind: type[Request]) -> Any:
        """The result of the request of this class, or of its default if there is none. Raises UserError."""
        if kind not in self._results:
            self._results[kind] = (self.requests.get(kind) or kind()).compute(self)
        return self._results[kind]


def can_be_analysed(translator: Translator, source: str, target: str, most: int | None = LONGEST_ANALYSED) -> bool:
    """Whether the model can read both sides of a pair, the source has text, and each has at most `most` tokens."""
    if is_blank(source) or not translator.is_readable(source, most):
        return False
    return translator.is_readable(target, most, side="target")


def token(id_: int, vocabulary: Sequence[str]) -> dict[str, Any]:
    """A token in a record's JSON form."""
    return {"id": id_, "piece": vocabulary[id_]}
