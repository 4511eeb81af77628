"""What a translator needs of whatever finds translations: our own search over an engine, or another program's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headway.decoding.hypothesis import Hypothesis
from headway.decoding.options import SearchOptions


class Searcher(Protocol):
    """Finds translations of many sources at once, as ids. Sources are neither empty nor too long, and have no <eos>."""

    @property
    def default_length_penalty(self) -> float | None:
        """In place of the model's own, where the same number means something else."""
        ...

    def search(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
    ) -> list[list[Hypothesis]]:
        """The `n_best` hypotheses of each source, best first. caps: the most tokens of each translation; prefixes: what
        each begins with. Raises UserError for an option that it can't honour."""
        ...

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included."""
        ...
