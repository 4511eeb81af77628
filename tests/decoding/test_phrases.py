"""Search that must have phrases: exhaustive search on tiny tables says which translation is the best that has them."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.decoding import Phrase, RequiredPhrases
from headway.decoding.beam import beam_search
from headway.decoding.constrained_beams import NONE, ConstrainedBeams, in_turns
from headway.decoding.searcher import length_penalty
from tests.decoding.tables import EOS, STEPS, SYMBOLS, TableEngine, exhaustive

TEXT = [token for token in range(SYMBOLS) if token != EOS]
NO_PARTS = np.zeros(SYMBOLS, dtype=bool)


def started(required, caps) -> ConstrainedBeams:
    return ConstrainedBeams.start(TableEngine.bos_id, TableEngine.eos_id, required, caps)


phrases_of_a_sentence = st.lists(
    st.builds(
        Phrase,
        st.lists(st.sampled_from(TEXT), min_size=1, max_size=2).map(tuple),
        st.booleans(),
        st.lists(st.sampled_from(TEXT), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=2,
)


def holds(ids, phrases, word_parts):
    """Whether the ids have all phrases, none in the place of another: tried with every way to place them."""
    places = []
    for one in phrases:
        found = [(i, i + len(one.ids)) for i in range(len(ids)) if tuple(ids[i : i + len(one.ids)]) == one.ids]
        if one.initial and tuple(ids[: len(one.initial)]) == one.initial:
            found.append((0, len(one.initial)))
        places.append(found)
    for spans in itertools.product(*places):
        taken = [i for span in spans for i in range(*span)]
        ends = [end for (_, end), one in zip(spans, phrases, strict=True) if one.ends_word]
        if len(set(taken)) == len(taken) and not any(end < len(ids) and word_parts[ids[end]] for end in ends):
            return True
    return False


@given(
    seed=st.integers(0, 2**31),
    phrases=phrases_of_a_sentence,
    parts=st.sets(st.sampled_from(TEXT)).map(lambda parts: np.isin(np.arange(SYMBOLS), list(parts))),
    alpha=st.sampled_from([0.0, 1.0]),
)
def test_a_wide_beam_finds_every_translation_that_has_the_phrases_best_first(seed, phrases, parts, alpha):
    engine, wide, cap = TableEngine(seed), 4 * SYMBOLS**STEPS, STEPS - 1
    required = RequiredPhrases([tuple(phrases)], parts)
    options = {"beam_size": wide, "n_best": wide, "alpha": alpha, "beams": started(required, [cap])}
    [found] = beam_search(engine, torch.zeros(1, 1), [cap], **options)
    scores = {ids: s for ids, s in exhaustive(engine, cap).items() if holds(ids, phrases, parts)}
    ranked = sorted(scores, key=lambda ids: -scores[ids] / length_penalty(len(ids) + 1, alpha))
    assert [tuple(one.ids) for one in found] == ranked
    assert [one.score for one in found] == pytest.approx([scores[ids] for ids in ranked], abs=1e-5)


@given(
    seed=st.integers(0, 2**31), phrases=st.lists(phrases_of_a_sentence, min_size=1, max_size=4), extra=st.integers(0, 3)
)
def test_a_beam_of_one_place_more_than_phrases_always_finds_them(seed, phrases, extra):
    """However unlikely they are, in a batch of sentences with other phrases."""
    required = RequiredPhrases([tuple(each) for each in phrases], NO_PARTS)
    caps = [sum(len(one.ids) for one in each) for each in phrases]
    width = 1 + max(map(len, phrases)) + extra
    beams = started(required, caps)
    found = beam_search(TableEngine(seed), torch.zeros(len(phrases), 1), caps, beam_size=width, beams=beams)
    for hypotheses, each in zip(found, phrases, strict=True):
        assert hypotheses
        assert holds(hypotheses[0].ids, each, NO_PARTS)


@given(seed=st.integers(0, 2**31), width=st.integers(1, 5), alpha=st.sampled_from([0.0, 1.0]))
def test_beside_others_a_sentence_without_phrases_has_its_ordinary_n_best_list(seed, width, alpha):
    cap = STEPS - 1
    options = {"beam_size": width, "n_best": width, "alpha": alpha}
    [ordinary] = beam_search(TableEngine(seed), torch.zeros(1, 1), [cap], **options)
    beams = started(RequiredPhrases([(), (Phrase((2,)),)], NO_PARTS), [cap, cap])
    found, _ = beam_search(TableEngine(seed), torch.zeros(2, 1), [cap, cap], beams=beams, **options)
    assert [one.ids for one in found] == [one.ids for one in ordinary]
    assert [one.score for one in found] == pytest.approx([one.score for one in ordinary], abs=1e-5)


@given(
    ids=st.lists(st.sampled_from(TEXT), max_size=6),
    phrases=phrases_of_a_sentence,
    parts=st.sets(st.sampled_from(TEXT)).map(lambda parts: np.isin(np.arange(SYMBOLS), list(parts))),
)
def test_required_phrases_are_found_only_in_what_holds_the_phrases(ids, phrases, parts):
    assert holds(ids, phrases, parts) >= RequiredPhrases([tuple(phrases)], parts).found_in(0, ids)
    for one in phrases:
        assert holds(ids, [one], parts) == RequiredPhrases([(one,)], parts).found_in(0, ids)


def test_a_phrase_within_another_leaves_it_its_place():
    for phrases in itertools.permutations([Phrase((2,)), Phrase((2, 3))]):
        assert RequiredPhrases([phrases], NO_PARTS).found_in(0, [2, 3, 2])
        assert not RequiredPhrases([phrases], NO_PARTS).found_in(0, [2, 3])


def test_a_begun_phrase_is_judged_with_the_expected_cost_of_its_rest():
    """2 is less likely than 4, but its phrase as a whole is likelier: -2 - 0.1 against -1 - 1.5."""
    beams = started(RequiredPhrases([(Phrase((2, 3)), Phrase((4, 3)))], NO_PARTS), [6])
    beams.costs[0, :, 1] = [-0.1, -1.5]
    log_probabilities = torch.full((1, SYMBOLS), -3.0)
    log_probabilities[0, [2, 4]] = torch.tensor([-2.0, -1.0])
    found = beams.continuations(log_probabilities, beam_size=3)
    of_phrases = found.phrases[0] != NONE
    assert found.tokens[0][of_phrases].tolist() == [2, 4]
    assert found.scores[0][of_phrases].tolist() == [-2.0, -1.0]


@given(
    st.lists(
        st.tuples(st.permutations(range(9)), st.lists(st.integers(0, 3), min_size=9, max_size=9), st.integers(0, 9)),
        min_size=1,
        max_size=3,
    )
)
def test_banks_take_turns_the_fullest_first_each_with_its_best(sentences):
    totals = np.array([[-one if one < possible else -np.inf for one in ranks] for ranks, _, possible in sentences])
    banks = np.array([banks for _, banks, _ in sentences])
    for order, total, bank in zip(in_turns(totals, banks), totals, banks, strict=True):
        best_first = [one for one in np.argsort(-total) if np.isfinite(total[one])]
        left, wanted = {number: [one for one in best_first if bank[one] == number] for number in range(4)}, []
        while any(left.values()):
            wanted += [left[number].pop(0) for number in (3, 2, 1, 0) if left[number]]
        assert [*order[: len(wanted)]] == wanted
        assert sorted(order) == [*range(9)]


def test_no_room_for_the_phrases_gives_no_hypothesis():
    required = RequiredPhrases([(Phrase((2, 3, 4)),)], NO_PARTS)
    found = beam_search(TableEngine(1), torch.zeros(1, 1), [2], beam_size=4, beams=started(required, [2]))
    assert found == [[]]
