"""The beam as a tree: what the search reports fits what it returns, and reporting changes nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.decoding.tables import BOS, EOS, SYMBOLS, TableEngine

from headway.decoding import beam_search
from headway.decoding.searcher import length_penalty
from headway.insight.beams import BeamTree

STEPS = st.integers(1, 5)


def total(engine: TableEngine, ids: tuple[int, ...]) -> float:
    return sum(engine.log_probabilities((BOS, *ids[:at]))[token].item() for at, token in enumerate(ids))


@given(seed=st.integers(0, 2**31), cap=STEPS, width=st.integers(1, 7), alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_the_tree_by_its_definition(seed, cap, width, alpha):
    engine, tree = TableEngine(seed), BeamTree(width, alpha)
    options = {"beam_size": width, "alpha": alpha}
    [[best]] = beam_search(engine, torch.zeros(1, 1), [cap], watch=tree.watch, **options)
    assert [[best]] == beam_search(TableEngine(seed), torch.zeros(1, 1), [cap], **options)
    beam = [()]
    for number, candidates in enumerate(tree.steps):
        paths = [tuple(tree.ids(number, one)) for one in range(len(candidates))]
        every = {}
        for history in beam:
            after = engine.log_probabilities((BOS, *history)).tolist()
            may_come = [token for token in range(SYMBOLS) if history or token != EOS]
            likeliest = sorted(may_come, key=after.__getitem__, reverse=True)[: width + 1]
            every |= {(*history, token): total(engine, (*history, token)) for token in likeliest}
        assert paths == sorted(every, key=every.__getitem__, reverse=True)[: 2 * width]
        assert [one.score for one in candidates] == pytest.approx([every[path] for path in paths], abs=1e-5)
        going_on = [path for path in paths if path[-1] != EOS][:width]
        ended = [path for path in paths[:width] if path[-1] == EOS]
        assert [path for path, one in zip(paths, candidates, strict=True) if one.fate == "kept"] == going_on
        assert [path for path, one in zip(paths, candidates, strict=True) if one.fate == "finished"] == ended
        beam = going_on
    tree.end(best, EOS, str)
    assert tree.result is not None
    ids = tree.ids(*tree.result)
    assert (ids[:-1] if best.stopped == "eos" else ids) == best.ids
    ended = {
        (step, number): one.score
        for step, candidates in enumerate(tree.steps)
        for number, one in enumerate(candidates)
        if one.fate == "finished"
    }
    assert {(one.step, one.number): one.score for one in tree.finished} == ended
    for one in tree.finished:
        *words, end = tree.ids(one.step, one.number)
        assert (one.text, end) == (str(words), EOS)
        assert one.ranking == pytest.approx(one.score / length_penalty(len(words) + 1, alpha))
    rankings = [one.ranking for one in tree.finished[:width]]
    assert rankings == sorted(rankings, reverse=True)
    assert [one.score for one in tree.finished[width:]] == sorted(ended.values(), reverse=True)[width:]
    if best.stopped == "eos":
        assert (tree.finished[0].text, tree.finished[0].score) == (str(best.ids), pytest.approx(best.score))
