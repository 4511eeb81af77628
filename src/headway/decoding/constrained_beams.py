"""Beams of hypotheses that must have given phrases: lexically constrained decoding.

Hypotheses with equally many phrases form a bank, and the banks share the beam equally: grid beam search (Hokamp and
Liu, 2017) with dynamic beam allocation (Post and Vilar, 2018), on arrays (Hu et al., 2019). These count the tokens of
phrases; here a phrase counts from its first token on, however long it is, and once begun it is completed. So the rank
of a hypothesis within a phrase includes the expected cost of the rest, as known from earlier hypotheses.

The first token of a phrase may or may not begin the phrase, and both are tried. Hence every translation with the
phrases can be reached, and a beam that is wide enough finds the best of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.decoding.beam import Beams, Continuations
from headway.decoding.engine import likeliest, read, tensor_on
from headway.decoding.searcher import Phrase, RequiredPhrases

NONE = -1


@dataclass
class PhraseTable:
    """The phrases of each sentence; a sentence with fewer than others has empty ones."""

    ids: np.ndarray
    """(sentences, phrases, longest), padded with 0."""
    lengths: np.ndarray
    """0 for an empty one. (sentences, phrases)"""
    after: np.ndarray
    """The phrase of the same ids that must be begun before, or NONE. (sentences, phrases)"""
    ends_word: np.ndarray
    """(sentences, phrases)"""
    stands_for: np.ndarray
    """The phrase that this one completes: itself, or the one of which it is the initial form. (sentences, phrases)"""
    initial: np.ndarray
    """Whether it is an initial form, which may only begin a translation. (sentences, phrases)"""

    @classmethod
    def of(cls, required: RequiredPhrases) -> Self:
        forms = [[*each, *dict.fromkeys(one for one in each if one.initial)] for each in required.phrases]
        size = len(forms), max(map(len, forms))
        longest = max(max(len(one.ids), len(one.initial)) for each in forms for one in each)
        table = cls(
            ids=np.zeros((*size, longest), dtype=np.int64),
            lengths=np.zeros(size, dtype=np.int64),
            after=np.full(size, NONE),
            ends_word=np.zeros(size, dtype=bool),
            stands_for=np.tile(np.arange(size[1]), (size[0], 1)),
            initial=np.zeros(size, dtype=bool),
        )
        for sentence, (each, phrases) in enumerate(zip(forms, required.phrases, strict=True)):
            before: dict[Phrase, int] = {}
            for number, one in enumerate(each):
                at, is_initial = (sentence, number), number >= len(phrases)
                ids = one.initial if is_initial else one.ids
                table.ids[sentence, number, : len(ids)] = ids
                table.lengths[at], table.ends_word[at], table.initial[at] = len(ids), one.ends_word, is_initial
                if is_initial:
                    table.stands_for[at] = phrases.index(one)
                else:
                    table.after[at] = before.get(one, NONE)
                    before[one] = number
        return table


@dataclass
class Coverage:
    """The phrases that each hypothesis contains. Shapes begin with (sentences, width)."""

    begun: np.ndarray
    """Whether each phrase is begun or complete; empty ones and initial forms always are. (..., phrases)"""
    current: np.ndarray
    """The phrase that is begun and not complete, or NONE. (...)"""
    offset: np.ndarray
    """Tokens of that phrase so far. (...)"""
    closed: np.ndarray
    """Whether the last token ended a phrase whose last word may not continue. (...)"""


Arrays = TypeVar("Arrays", PhraseTable, Coverage)


def _at(arrays: Arrays, place: list[int] | tuple[np.ndarray, np.ndarray]) -> Arrays:
    """Each of the arrays at this place."""
    return type(arrays)(*(one[place] for one in vars(arrays).values()))


@dataclass
class ConstrainedBeams(Beams):
    """The hypotheses of sentences that have phrases, each at least one."""

    caps: np.ndarray
    """The maximum length of each translation. (sentences,)"""
    table: PhraseTable
    coverage: Coverage
    costs: np.ndarray
    """Highest known log-probability of a phrase's token after those before, or 0. (sentences, phrases, longest)"""
    word_parts: NDArray[np.bool_]
    eos_id: int

    @classmethod
    def start(cls, bos_id: int, eos_id: int, required: RequiredPhrases, caps: Sequence[int]) -> Self:
        batch = len(required.phrases)
        table = PhraseTable.of(required)
        begun = ((table.lengths == 0) | table.initial)[:, None]
        nowhere, zeros = np.full((batch, 1), NONE), np.zeros((batch, 1), dtype=np.int64)
        return cls(
            sentences=np.arange(batch),
            tokens=np.full((batch, 1, 1), bos_id),
            scores=np.zeros((batch, 1)),
            caps=np.array(caps),
            table=table,
            coverage=Coverage(begun, nowhere, zeros, np.zeros((batch, 1), dtype=bool)),
            costs=np.zeros(table.ids.shape),
            word_parts=required.word_parts,
            eos_id=eos_id,
        )

    def keep(self, kept: list[int]) -> Self:
        table, coverage = _at(self.table, kept), _at(self.coverage, kept)
        more = {"caps": self.caps[kept], "table": table, "coverage": coverage, "costs": self.costs[kept]}
        return replace(super().keep(kept), **more)

    def upper_bound(self) -> np.ndarray:
        """The upper bound, including the missing phrases as far as their costs are known."""
        each, number = self._numbers()
        inside = self.coverage.current[:, :, None] == number
        missing = self._costs_from()[each, number, np.where(inside, self.coverage.offset[:, :, None], 0)]
        return (self.scores + np.where(inside | ~self.coverage.begun, missing, 0.0).sum(axis=2)).max(axis=1)

    @torch.inference_mode()
    def continuations(self, log_probabilities: Tensor, beam_size: int) -> Continuations:
        """The best of each bank, then the second of each, the most phrases first. Changes `log_probabilities`."""
        sentences, width, count = self.coverage.begun.shape
        tokens, offsets, wanted = self._wanted()
        by_place = log_probabilities.view(sentences, width, -1)
        tokens_there = tensor_on(by_place.device, tokens)
        of_phrases = by_place.gather(2, tokens_there).flatten(0, 1)
        self._forbid(log_probabilities)
        candidates = min(beam_size + 1, by_place.size(2))
        free_there, ids_there = likeliest(log_probabilities, candidates)
        both = torch.cat([free_there, of_phrases], 1), torch.cat([ids_there, tokens_there.flatten(0, 1)], 1)
        values, ids = (one.reshape(sentences, width, -1) for one in read(*both))
        free, ids = values[:, :, :candidates], ids[:, :, :candidates]
        asked = np.where(wanted, values[:, :, candidates:], -np.inf)  # (sentences, width, phrases)
        self._learn_costs(asked, offsets)

        def joined(of_free: np.ndarray | int, of_phrases: np.ndarray) -> np.ndarray:
            """(sentences, width * (candidates + phrases))"""
            shape = (sentences, width)
            parts = [np.broadcast_to(of_free, (*shape, candidates)), np.broadcast_to(of_phrases, (*shape, count))]
            return np.concatenate(parts, axis=2).reshape(sentences, -1)

        totals = joined(free, asked) + self.scores.repeat(candidates + count, axis=1)
        begun = self.coverage.begun.sum(axis=2)[:, :, None]  # (sentences, width, 1)
        banks = joined(begun, begun + (self.coverage.current[:, :, None] == NONE))
        costs_after = (self._costs_from() - self.costs)[(*self._numbers(), offsets)]  # (sentences, width, phrases)
        order = in_turns(totals + joined(0, costs_after), banks)[:, : 2 * beam_size]
        place = np.arange(width)[:, None]
        found = (joined(place, place), joined(ids, tokens), totals, joined(NONE, np.arange(count)))
        return Continuations(*(np.take_along_axis(one, order, axis=1) for one in found))

    def extended(self, chosen: Continuations, ranks: np.ndarray, scores: np.ndarray) -> Self:
        assert chosen.phrases is not None
        each = np.arange(len(self.sentences))[:, None]
        phrase = chosen.phrases[each, ranks]  # (sentences, width)
        before = _at(self.coverage, (each, chosen.places[each, ranks]))
        takes = (phrase != NONE) & np.isfinite(scores)
        there = self.table.stands_for[each, phrase][:, :, None] == np.arange(before.begun.shape[2])
        begun = before.begun | (there & takes[:, :, None])
        offset = np.where(before.current == NONE, 0, before.offset) + takes
        ends = takes & (offset == self.table.lengths[each, phrase])
        closed = ends & self.table.ends_word[each, phrase]
        coverage = Coverage(begun, np.where(takes & ~ends, phrase, NONE), offset, closed)
        return replace(super().extended(chosen, ranks, scores), coverage=coverage)

    def _wanted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each hypothesis the next token of each phrase, its place in the phrase, and whether it may be the next:
        of the phrase that the hypothesis is in, or the first of one that it lacks. All (sentences, width, phrases)."""
        table, state, (each, numbers) = self.table, self.coverage, self._numbers()
        inside = state.current[:, :, None] == numbers
        offsets = np.where(inside, state.offset[:, :, None], 0)
        tokens = table.ids[each, numbers, offsets]
        after = table.after[:, None, :]
        ready = (after == NONE) | np.take_along_axis(state.begun, np.broadcast_to(after, tokens.shape), axis=2)
        missing = ~state.begun | (table.initial[:, None, :] & (self.length == 0))
        begins = missing & ready & (state.current == NONE)[:, :, None]
        begins &= ~(state.closed[:, :, None] & self.word_parts[tokens])
        return tokens, offsets, inside | begins

    def _learn_costs(self, asked: np.ndarray, offsets: np.ndarray) -> None:
        """asked: log-probabilities of the tokens at `offsets` of each phrase, (sentences, width, phrases)."""
        known = np.where(self.costs < 0, self.costs, -np.inf)
        there = np.where(np.isfinite(self.scores)[:, :, None], asked, -np.inf)
        np.maximum.at(known, (*self._numbers(), offsets), there)
        self.costs = np.where(np.isfinite(known), known, 0.0)

    def _costs_from(self) -> np.ndarray:
        """The cost of each token of a phrase with those after it. (sentences, phrases, longest)"""
        return np.cumsum(self.costs[:, :, ::-1], axis=2)[:, :, ::-1]

    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of sentences and phrases for arrays (sentences, width, phrases)."""
        sentences, phrases = self.table.lengths.shape
        return np.arange(sentences)[:, None, None], np.arange(phrases)

    def _forbid(self, log_probabilities: Tensor) -> None:
        """Forbids free text <eos> before all phrases are begun, a continuation of a phrase's last word, and any token
        within a phrase or where the missing phrases need all the room. (sentences * width, vocabulary)"""

        def rows(places: Any) -> Tensor:
            return tensor_on(log_probabilities.device, np.flatnonzero(places))

        state, lengths = self.coverage, self.table.lengths[:, None]
        log_probabilities[:, self.eos_id].index_fill_(0, rows(~state.begun.all(axis=2)), -torch.inf)
        if state.closed.any():
            closed, parts = rows(state.closed), tensor_on(log_probabilities.device, self.word_parts)
            log_probabilities[closed] = log_probabilities[closed].masked_fill(parts, -torch.inf)
        missing = (lengths * ~state.begun).sum(axis=2)  # (sentences, width)
        no_room = (missing > 0) & (missing >= self.caps[:, None] - self.length)
        log_probabilities.index_fill_(0, rows((state.current != NONE) | no_room), -torch.inf)


def in_turns(totals: np.ndarray, banks: np.ndarray) -> np.ndarray:
    """The order in which the banks take turns, the one with the most phrases first, each with its best candidate left.
    Both (sentences, candidates)."""
    order = np.lexsort((-totals, -banks), axis=1)
    each = np.arange(len(order))[:, None]
    ranked = banks[each, order]
    numbers = np.arange(order.shape[1])
    first = np.where(np.diff(ranked, axis=1, prepend=-1) != 0, numbers, 0)  # where a bank begins
    rank = numbers - np.maximum.accumulate(first, axis=1)
    rank = np.where(np.isfinite(totals[each, order]), rank, len(numbers))
    return order[each, np.argsort(rank, axis=1, kind="stable")]
