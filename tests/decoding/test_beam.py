"""Beam search: exhaustive search on tiny tables, greedy search, and the length penalty's published figures."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.decoding import greedy
from headway.decoding.beam import beam_search
from headway.decoding.searcher import length_penalty
from tests.decoding.tables import STEPS, SYMBOLS, TableEngine, exhaustive


@given(seed=st.integers(0, 2**31), cap=st.integers(1, STEPS - 1), alpha=st.sampled_from([0.0, 0.6, 1.0, 10.0]))
def test_a_beam_as_wide_as_the_tree_finds_every_translation_best_first(seed, cap, alpha):
    engine, wide = TableEngine(seed), SYMBOLS**STEPS
    [found] = beam_search(engine, torch.zeros(1, 1), [cap], beam_size=wide, n_best=wide, alpha=alpha)
    scores = exhaustive(engine, cap)
    ranked = sorted(scores, key=lambda ids: -scores[ids] / length_penalty(len(ids) + 1, alpha))
    assert [tuple(hypothesis.ids) for hypothesis in found] == ranked
    assert [hypothesis.score for hypothesis in found] == pytest.approx([scores[ids] for ids in ranked], abs=1e-5)
    [[best]] = beam_search(engine, torch.zeros(1, 1), [cap], beam_size=wide, alpha=alpha)
    assert best == found[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_cap_that_the_best_just_reaches_changes_nothing(seed):
    free = beam_search(TableEngine(seed), torch.zeros(1, 1), [STEPS], beam_size=8, n_best=8)[0][0]
    assert free.stopped == "eos"
    [capped, *others] = beam_search(
        TableEngine(seed), torch.zeros(1, 1), [max(1, len(free.ids))], beam_size=8, n_best=8
    )[0]
    assert capped == free
    assert free.ids not in [other.ids for other in others]
    [alone] = greedy(TableEngine(seed), torch.zeros(1, 1), [STEPS])
    if alone.stopped == "eos" and alone.ids:
        assert greedy(TableEngine(seed), torch.zeros(1, 1), [len(alone.ids)]) == [alone]


def test_hypotheses_are_distinct_and_ranked():
    [found] = beam_search(TableEngine(3), torch.zeros(1, 1), [STEPS], beam_size=6, n_best=6, alpha=0.6)
    assert len({tuple(hypothesis.ids) for hypothesis in found}) == len(found) == 6
    worths = [
        hypothesis.score / length_penalty(len(hypothesis.ids) + 1, 0.6)
        for hypothesis in found
        if hypothesis.stopped == "eos"
    ]
    assert worths == sorted(worths, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_stopping_where_nothing_better_can_come_changes_nothing(alpha):
    steps, best = Counter(), {}
    for n_best in (1, 2, 6):
        engines = [TableEngine(seed) for seed in range(30)]
        options = {"beam_size": 6, "n_best": n_best, "alpha": alpha}
        best[n_best] = [beam_search(engine, torch.zeros(1, 1), [12], **options)[0] for engine in engines]
        steps[n_best] = sum(engine.steps for engine in engines)
    for n_best in (1, 2):
        assert best[n_best] == [found[:n_best] for found in best[6]]
    assert steps[1] <= steps[2] <= steps[6]
    if alpha == 0.0:
        assert steps[1] < 0.8 * steps[6]


@pytest.mark.parametrize(("length", "penalty"), [(5, 1.358655), (10, 1.732862), (20, 2.354362), (50, 3.778565)])
def test_length_penalty(length, penalty):
    assert length_penalty(length, 0.6) == pytest.approx(penalty, abs=1e-6)
    assert length_penalty(length, 0.0) == 1.0
