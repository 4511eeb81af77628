"""The record of one translation: everything that the model computed while it read a source and predicted its target.

It comes from one teacher-forced pass through a copy of the modules with the same weights and the readable attention.
The names of the arrays are in docs/record.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headway.insight.analyses import Analyses
from headway.insight.beams import BeamTree
from headway.insight.maps import AttentionKind, AttentionMaps, HeadMeasures, attention_names, measure_heads, word_groups
from headway.insight.order import WordOrder
from headway.insight.what_if import Edit, Outcome, Tried, WhatIf, Word
from headway.model import ModelConfig
from headway.storage.model_info import Aligner
from headway.text.tokenizer import CONTROL_PIECES, EOS_ID, LANGUAGE_TOKEN, Piece, is_tag
from headway.translator.aligning import MEAN, alignment
from headway.translator.reading import Floats

TOP = 10
"""Number of likely tokens that each step has."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its characters in the text, text[start:end]."""

    id: int
    piece: str
    start: int
    end: int


@dataclass(frozen=True)
class Text:
    """One side of a translation. Its last token is <eos>, which has no characters."""

    text: str
    tokens: list[Token]

    @classmethod
    def of(cls, text: str, ids: Sequence[int], pieces: Sequence[Piece], eos_id: int) -> Self:
        """ids and pieces: one for each token, without <eos>."""
        tokens = [Token(id_, one.text, one.start, one.end) for id_, one in zip(ids, pieces, strict=True)]
        return cls(text, [*tokens, Token(eos_id, CONTROL_PIECES[EOS_ID], len(text), len(text))])

    @property
    def ids(self) -> list[int]:
        """Ids of the tokens, <eos> last."""
        return [token.id for token in self.tokens]

    @property
    def pieces(self) -> list[str]:
        """Pieces of the tokens, <eos> last."""
        return [token.piece for token in self.tokens]

    @property
    def opening(self) -> int:
        """Number of first tokens that are no text: 1 for a tag or the token of a language, which has no characters."""
        first = self.tokens[0]
        return int(first.end == 0 and bool(is_tag(first.piece) or LANGUAGE_TOKEN.fullmatch(first.piece)))

    def words(self, log_probabilities: Sequence[float]) -> tuple[Word, ...]:
        """The words without <eos>. log_probabilities: one for each token."""
        words = []
        for group in word_groups(self.pieces[self.opening : -1]):
            places = [self.opening + place for place in group]
            text = self.text[self.tokens[places[0]].start : self.tokens[places[-1]].end]
            words.append(Word(text, math.exp(math.fsum(log_probabilities[place] for place in places))))
        return tuple(words)


@dataclass(frozen=True)
class Step:
    """The log-probability of the target's token at one step, and the most likely tokens, best first."""

    log_probability: float
    rank: int
    """Number of tokens that are more likely than the target's."""
    ids: list[int]
    logits: list[float]
    probabilities: list[float]


@dataclass(frozen=True)
class Moment:
    """A model that a run has saved."""

    name: str
    """The name of its folder, such as `step-00002000`."""
    step: int | None
    """The training step, if the name contains it."""
    score: float
    """Total log-probability of the target."""


@dataclass(frozen=True)
class TranslationRecord:
    """Everything that the model computes for a source and its target, with teacher forcing."""

    config: ModelConfig
    source_language: str
    target_language: str
    domain: str
    """The subject of the model's training text; empty if unknown."""
    source: Text
    """The tag of a target language isn't part of its text, but is the first of its tokens."""
    original_text: str
    """The source text before words were swapped."""
    target: Text
    target_given: bool
    """Whether the caller gave the target, so that no search was needed."""
    arrays: dict[str, NDArray[Any]]
    """Everything that was computed, by name (docs/record.md), without the batch dimension; float32, masks bool."""
    vocabulary: Sequence[str]
    """The target vocabulary, by id."""
    beam: BeamTree | None = None
    """The beam search, if it found the target."""
    alternatives: list[Outcome] = field(default_factory=list)
    """The next best translations of the search."""
    edits: list[Edit] = field(default_factory=list)
    """The edits that were applied to the model or the source."""
    before: Tried | None = None
    """The translation without the edits, if there are any."""
    cases: list[WhatIf] = field(default_factory=list)
    """The effect of other edits."""
    order: WordOrder | None = None
    """Two sentences with the same words and, if requested, their translations."""
    aligner: Aligner = MEAN
    """The attention that the alignment is taken from."""
    step: int | None = None
    """The training step of the model, if the name of its folder contains it."""
    history: list[Moment] = field(default_factory=list)
    """Other models of the same run, in the order of their steps, with the same source and target. Their attention
    weights are among the arrays, under `history.0`, `history.1` and so on."""
    analyses: Analyses = field(default_factory=Analyses)
    """The requested analyses. Their arrays are also in `arrays`, under `analyses`."""
    training: dict[str, Any] | None = None
    """The moments of its training that the model's run has kept (docs/record.md)."""

    @property
    def score(self) -> float:
        """Total log-probability of the target."""
        return math.fsum(step.log_probability for step in self.steps)

    @cached_property
    def maps(self) -> AttentionMaps:
        """Every attention map, with its tokens."""
        return self._maps("")

    @property
    def attention(self) -> dict[AttentionKind, Floats]:
        """The attention weights of each kind that the model has, (layers, heads, query, key). Row i of `cross` and
        `decoder` is the step that gives token i of the target; keys of `decoder` are <sos> and the tokens before."""
        return self.maps.attention

    @cached_property
    def heads(self) -> dict[AttentionKind, list[list[HeadMeasures]]]:
        """Measures of each head, by kind, layer and head."""
        return {kind: measure_heads(kind, maps, self.aligner) for kind, maps in self.attention.items()}

    @property
    def alignment(self) -> list[int | None] | None:
        """For each token of the target the number of the source token that it is aligned with, or None. The whole list
        is None for a model without a decoder layer."""
        cross = self.attention.get("cross")
        return None if cross is None else alignment(cross, self.aligner, self.source.opening)

    @cached_property
    def steps(self) -> list[Step]:
        """The most likely tokens at each step, one step per token of the target."""
        logits = self.arrays["logits"]
        logarithms, best = log_probabilities(logits), np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
        found = []
        for step, given in enumerate(of_target(logarithms, self.target)):
            row, ids = logits[step], best[step]
            rank, probabilities = int((row > row[self.target.ids[step]]).sum()), np.exp(logarithms[step, ids])
            found.append(Step(given, rank, ids.tolist(), row[ids].tolist(), probabilities.tolist()))
        return found

    def past(self, number: int) -> AttentionMaps:
        """The maps of one of the models in `history`."""
        return self._maps(f"history.{number}.")

    def _maps(self, prefix: str) -> AttentionMaps:
        names = attention_names(self.config).items()
        return AttentionMaps(
            self.source.pieces,
            self.target.pieces,
            {kind: [self.arrays[f"{prefix}{name}"] for name in layers] for kind, layers in names if layers},
        )


def log_probabilities(logits: Floats) -> NDArray[np.float64]:
    """log softmax over the last dimension."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))


def of_target(logarithms: NDArray[np.float64], target: Text) -> list[float]:
    """The log-probability of each token of the target; 0 for the token of its language, which is given, as in a search.
    logarithms: `log_probabilities` of each step."""
    found = logarithms[range(len(target.tokens)), target.ids]
    found[: target.opening] = 0.0
    return found.tolist()
