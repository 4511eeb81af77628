"""The beam of one sentence as a tree: every hypothesis that was kept, dropped or finished, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from headway.decoding import Hypothesis
from headway.decoding.searcher import length_penalty

if TYPE_CHECKING:
    from headway.decoding.beam import BeamStep

Fate = Literal["kept", "dropped", "finished"]


@dataclass(frozen=True)
class Candidate:
    """A continuation that a step could choose."""

    parent: int | None
    """Number of the hypothesis that it extends among the candidates of the step before; None at the first step."""
    id: int
    """The token that it adds."""
    score: float
    """Total log-probability with this token."""
    fate: Fate


@dataclass(frozen=True)
class Finished:
    """A hypothesis that ended with <eos>, in the candidate of this step and number."""

    step: int
    number: int
    text: str
    score: float
    """Total log-probability, <eos> included."""
    ranking: float
    """The score divided by the length penalty: the higher, the better."""


@dataclass
class BeamTree:
    """The candidates of each step in the beam search of one sentence, best first; see `BeamStep`."""

    beam_size: int
    length_penalty: float
    """Finished hypotheses are ranked by score / ((5 + length) / 6) ** length_penalty, length with <eos>."""
    steps: list[list[Candidate]] = field(default_factory=list)
    result: tuple[int, int] | None = None
    """Step and number of the candidate that became the translation."""
    finished: list[Finished] = field(default_factory=list)
    """Best first; those beyond the `beam_size` likeliest come last."""
    _beam: list[int] = field(default_factory=list)
    """For each place of the beam, the number of its candidate in the last step."""

    def watch(self, step: BeamStep) -> None:
        """To be called by a `beam_search` of one sentence."""
        [places], [tokens], [scores], [ended], [kept] = step.places, step.tokens, step.scores, step.ended, step.kept
        candidates, beam = [], {}
        for number, score in enumerate(scores.tolist()):
            if score == -float("inf"):
                break
            fate: Fate = "finished" if ended[number] else "kept" if kept[number] >= 0 else "dropped"
            parent = self._beam[places[number]] if self.steps else None
            candidates.append(Candidate(parent, int(tokens[number]), score, fate))
            beam[int(kept[number])] = number
        self.steps.append(candidates)
        self._beam = [beam[place] for place in sorted(beam) if place >= 0]

    def ids(self, step: int, number: int) -> list[int]:
        """The tokens of a candidate, from the first on."""
        ids, place = [], number
        for candidates in self.steps[step::-1]:
            ids.append(candidates[place].id)
            place = candidates[place].parent or 0
        return ids[::-1]

    def end(self, hypothesis: Hypothesis, eos_id: int, decode: Callable[[Sequence[int]], str]) -> None:
        """To be called after the search. Lists the finished hypotheses and finds the one that became the translation: a
        finished candidate, or, if the search reached the length limit, the one kept last."""
        for step, candidates in enumerate(self.steps):
            penalty = length_penalty(step + 1, self.length_penalty)
            for number, one in enumerate(candidates):
                if one.fate == "finished":
                    text = decode(self.ids(step, number)[:-1])
                    self.finished.append(Finished(step, number, text, one.score, one.score / penalty))
        self.finished.sort(key=lambda one: one.score, reverse=True)
        likeliest, rest = self.finished[: self.beam_size], self.finished[self.beam_size :]
        self.finished = sorted(likeliest, key=lambda one: one.ranking, reverse=True) + rest
        fate, end = ("finished", [eos_id]) if hypothesis.stopped == "eos" else ("kept", [])
        ids = [*hypothesis.ids, *end]
        step = len(ids) - 1
        for number, candidate in enumerate(self.steps[step]):
            if candidate.fate == fate and self.ids(step, number) == ids:
                self.result = step, number
