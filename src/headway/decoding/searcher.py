"""The protocol by which a translator uses search, headway's own or another program's, and a translation as ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from headway.decoding.options import SearchOptions
from headway.decoding.phrases import RequiredPhrases

Stopped = Literal["eos", "max_length"]


@dataclass
class Hypothesis:
    """A translation as ids, without control ids."""

    ids: list[int]
    score: float
    """Total log-probability, <eos> included, even if the length limit ended the hypothesis."""
    stopped: Stopped


class Searcher(Protocol):
    """Finds the translations of many sources, as ids. Sources are neither empty nor too long, and have no <eos>."""

    def search(
        self, sources: Sequence[list[int]], options: SearchOptions, caps: Sequence[int], prefixes: Sequence[list[int]]
    ) -> list[list[Hypothesis]]:
        """The `n_best` hypotheses of each source, best first. caps: the maximum number of tokens in each translation;
        prefixes: the ids that each begins with. Raises UserError for an option that it doesn't support."""
        ...

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included."""
        ...


@runtime_checkable
class PhraseSearcher(Searcher, Protocol):
    """A `Searcher` for translations with required phrases."""

    def search_with_phrases(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
        required: RequiredPhrases,
    ) -> list[list[Hypothesis]]:
        """Like `search`; each source has at least one phrase. The beam has a place for each number of phrases, even if
        `options` make it narrower. If a cap leaves no room for the phrases, they are left out."""
        ...
