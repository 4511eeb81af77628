"""The plan of batches: every sentence once, within the budget, a pure function of seed and epoch."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ids import write_ids

from headway.data import batches as batches_module
from headway.data.batches import CorpusShare, MicroBatch, Plan, collate, epoch_order, row_shape, share_of_step
from headway.data.packing import pack
from headway.data.shards import ParallelIds
from headway.text.words import WordTokenizer

LENGTHS = st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=200)


def planned(lengths, *, batch=400, micro=100, seed=1, shares=()):
    source, target = np.array(lengths).T
    shares = shares or [CorpusShare(len(source))]
    means = float(source.mean()), float(target.mean())
    return Plan(lambda pairs: (source[pairs], target[pairs]), means, shares, batch, micro, seed)


def plan(lengths, *, epoch=0, **options):
    source, target = np.array(lengths).T
    return source, target, list(planned(lengths, **options).steps(epoch))


def micro_batches_of(steps):
    return [micro_batch for step in steps for micro_batch in step]


def pairs_of_steps(steps):
    return [pair for one in micro_batches_of(steps) for pair in one.pairs]


@settings(max_examples=100, deadline=None)
@given(lengths=LENGTHS, micro=st.sampled_from([20, 60, 100, 150, 300, 400]))
def test_every_sentence_once_and_within_the_budget(lengths, micro):
    source, target, steps = plan(lengths, micro=micro)
    assert sorted(pairs_of_steps(steps)) == list(range(len(lengths)))
    for one in micro_batches_of(steps):
        assert one.pairs
        assert one.places <= micro or len(one.pairs) == 1
        for row in one.rows:
            assert source[row].sum() <= one.source_length
            assert target[row].sum() <= one.target_length


@settings(deadline=None)
@given(lengths=LENGTHS, micro=st.sampled_from([20, 100, 150, 400]))
def test_every_step_but_the_last_has_as_many_micro_batches(lengths, micro):
    *steps, last = plan(lengths, micro=micro)[2]
    passes = math.ceil(400 / micro)
    assert all(len(step) == passes for step in steps)
    assert 1 <= len(last) <= passes


def test_versions_take_turns():
    """Epoch e has version e mod 3 of each pair, in rows that fit its own lengths."""
    random = np.random.default_rng(5)
    source, target = random.integers(3, 40, (2, 3 * 100))
    means, shares = (float(source.mean()), float(target.mean())), [CorpusShare(60), CorpusShare(40)]
    made = Plan(lambda pairs: (source[pairs], target[pairs]), means, shares, 400, 200, seed=1, versions=3)
    for epoch in range(5):
        steps = list(made.steps(epoch))
        assert sorted(pairs_of_steps(steps)) == list(range(epoch % 3, 300, 3))
        for one in micro_batches_of(steps):
            assert all(source[row].sum() <= one.source_length for row in one.rows)
        assert list(made.steps(epoch, 2)) == steps[2:]


def random_lengths(count=2000):
    """As of real sentences: a translation is about as long as its source."""
    random = np.random.default_rng(0)
    source = random.integers(3, 30, size=count)
    return np.stack([source, np.maximum(1, source + random.integers(-2, 3, size=count))], axis=1)


def test_a_function_of_seed_and_epoch():
    lengths = random_lengths()
    first = plan(lengths)[2]
    assert plan(lengths)[2] == first
    assert plan(lengths, seed=2)[2] != first
    assert plan(lengths, epoch=1)[2] != first


@pytest.mark.parametrize("micro", [1000, 2000, 4000])
def test_all_have_one_shape_little_of_which_is_padding(micro):
    source, target, steps = plan(random_lengths(), batch=4000, micro=micro)
    shapes = {(len(one.rows), one.source_length, one.target_length) for one in micro_batches_of(steps)}
    assert len(shapes) == 1
    places = sum(one.places for one in micro_batches_of(steps))
    assert (source.sum() + target.sum()) / places > 0.9
    assert min(len(one.pairs) for one in micro_batches_of(steps)) > 0.7 * len(source) / len(micro_batches_of(steps))


def test_few_sentences_have_no_more_rows_than_they_need():
    """However large the budget is."""
    [[one]] = plan(random_lengths(20), batch=100_000, micro=100_000)[2]
    assert all(one.rows)


def test_long_sentences_share_their_rows_with_short_ones():
    lengths = random_lengths()
    lengths[::50] = 150
    source, target, steps = plan(lengths, batch=4000, micro=4000)
    by_shape = {}
    for one in micro_batches_of(steps):
        by_shape.setdefault((len(one.rows), one.source_length), []).append(one)
    assert len(by_shape) == 2
    for of_shape in by_shape.values():
        tokens = sum(source[one.pairs].sum() + target[one.pairs].sum() for one in of_shape)
        assert tokens / sum(one.places for one in of_shape) > 0.85
        assert len({one.places for one in of_shape}) == 1


@pytest.mark.parametrize("micro", [1000, 4000])
def test_every_micro_batch_has_short_and_long_sentences(micro):
    """One over a single length would teach that length."""
    _, target, steps = plan(random_lengths(), batch=4000, micro=micro)
    first, last = np.quantile(target, [0.25, 0.75])
    assert all(target[one.pairs].min() <= first < last <= target[one.pairs].max() for one in micro_batches_of(steps))
    means = [target[pairs_of_steps([step])].mean() for step in steps]
    assert np.std(means) < 0.15 * target.mean()


@pytest.mark.parametrize(
    ("source", "target", "budget", "wanted"),
    [
        (15, 15, 4096, (64, 64)),
        (20, 10, 4096, (64, 32)),
        (9, 20, 4096, (32, 64)),
        (60, 60, 4096, (128, 128)),
        (15, 15, 700, (32, 32)),
        (100, 90, 100, (8, 8)),
    ],
)
def test_the_shape_of_a_row(source, target, budget, wanted):
    """In proportion to the sentences, of which two are to fit; shorter where there would be few rows."""
    assert row_shape(source, target, budget) == wanted


def test_packing_by_hand():
    """Longest first, each where it leaves least room; what is too long for a row opens one of twice the size."""
    source, target = np.array([3, 6, 10, 2, 15]), np.array([4, 5, 9, 2, 12])
    assert pack(np.arange(5), source, target, (10, 10), 2) == {2: [[4, 3]], 1: [[2], [1, 0]]}
    assert pack(np.arange(4), source[:4], target[:4], (10, 10), 2) == {1: [[2], [1, 0], [3]]}


def test_a_row_that_nobody_needs_is_not_there():
    """Four rows of twice the size would be a batch, but only one short pair is left for two of them."""
    source, target = np.array([15, 15, 3]), np.array([15, 15, 3])
    assert pack(np.arange(3), source, target, (10, 10), 8) == {2: [[0], [1, 2]]}


def test_corpora_come_as_often_as_their_weights_say():
    shares = [CorpusShare(100, 2.0), CorpusShare(200, 0.25), CorpusShare(100, 1.5)]

    def counts(epoch):
        steps = plan(random_lengths(400), batch=500, micro=500, epoch=epoch, shares=shares)[2]
        return np.bincount(pairs_of_steps(steps), minlength=400)

    first, second = counts(0), counts(1)
    assert (first[:100] == 2).all()
    assert (first[100:300].sum(), first[100:300].max()) == (50, 1)
    assert (first[300:].sum(), first[300:].min(), first[300:].max()) == (150, 1, 2)
    assert (first[100:300] != second[100:300]).any()


def test_a_pair_over_the_budget_is_alone():
    _, _, steps = plan([(3, 3), (30, 29), (4, 3)], micro=50)
    assert MicroBatch(30, 29, [[1]]) in micro_batches_of(steps)


@pytest.mark.parametrize("runs", [10**6, 300])
def test_an_epoch_in_parts_is_made_as_it_is_needed(monkeypatch, runs):
    """Of 2,000 pairs 250 at a time, also where neighbours stay together in the order of an epoch."""
    monkeypatch.setattr(batches_module, "PART", 250)
    monkeypatch.setattr(batches_module, "RUNS", runs)
    lengths = random_lengths(2000)
    looked_up = []
    whole = planned(lengths, batch=1000, micro=500)
    lengths_of = whole.lengths_of

    def counting(pairs):
        looked_up.append(len(pairs))
        return lengths_of(pairs)

    object.__setattr__(whole, "lengths_of", counting)
    steps = whole.steps(0)
    first = next(steps)
    assert len(looked_up) == 1
    assert looked_up[0] <= 250 + 2000 // runs + 1
    rest = list(steps)
    assert len(looked_up) == 8
    assert sorted(pairs_of_steps([first, *rest])) == list(range(2000))
    everything = [first, *rest]
    for number in (0, 1, len(everything) // 2, len(everything) - 1):
        assert list(planned(lengths, batch=1000, micro=500).steps(0, number)) == everything[number:]
    assert list(whole.steps(0, len(everything))) == []
    beginning, parts = whole.beginning()
    assert (beginning, parts) == (everything[: len(beginning)], 8)


def test_parts_mix_what_lies_together():
    """Neighbours may stay together, but a part has pairs from everywhere."""
    order = epoch_order([CorpusShare(3 * 2**20)], seed=1, epoch=0)
    assert len(order) == 12
    pairs = order.pairs(5)
    assert len(np.unique(pairs)) == len(pairs)
    assert np.abs(np.histogram(pairs, bins=16, range=(0, 3 * 2**20))[0] / len(pairs) - 1 / 16).max() < 0.005
    assert sum(len(order.pairs(part)) for part in range(12)) == 3 * 2**20


@settings(deadline=None)
@given(
    lengths=LENGTHS,
    micro=st.sampled_from([100, 200, 800]),
    ranks=st.integers(1, 5),
)
def test_ranks_share_a_step(lengths, micro, ranks):
    """Every pair once, the same shapes on each, no micro-batch with more rows than those of the step have."""
    source, target, steps = plan(lengths, batch=800, micro=micro)
    for step in steps:
        shares = [share_of_step(step, rank, ranks) for rank in range(ranks)]
        assert sorted(pairs_of_steps(shares)) == sorted(pairs_of_steps([step]))
        shapes = [[(len(one.rows), one.source_length, one.target_length) for one in share] for share in shares]
        assert all(of_rank == shapes[0] for of_rank in shapes)
        most = max(one.places for one in step)
        assert all(one.places <= most for share in shares for one in share)
        for one in (one for share in shares for one in share):
            for row in one.rows:
                assert source[row].sum() <= one.source_length
                assert target[row].sum() <= one.target_length


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_ranks_add_little_padding(ranks):
    steps = plan(random_lengths(), batch=8192, micro=4096)[2][:-1]
    alone = sum(one.places for step in steps for one in step)
    together = sum(one.places for step in steps for rank in range(ranks) for one in share_of_step(step, rank, ranks))
    assert together <= 1.05 * alone


def test_the_tensors_of_ids_on_disk(tmp_path):
    corpora = [[("a b", "c")], [("d", "d c")], [("d", "d")]]
    write_ids(tmp_path / "ids", corpora, WordTokenizer(["a", "b", "c", "d"]))
    corpus = ParallelIds(tmp_path / "ids")
    assert len(corpus) == 3
    assert corpus.sizes == [1, 1, 1]
    assert [corpus.source[0].tolist(), corpus.target[0].tolist()] == [[4, 5], [6]]
    assert [corpus.source[1].tolist(), corpus.target[1].tolist()] == [[7], [7, 6]]
    sides = (side.joined(np.array([1, 0])) for side in (corpus.source, corpus.target))
    source, target, labels = collate(*sides, MicroBatch(6, 5, [[1, 0], []]))
    assert source.ids.tolist() == [[7, 3, 4, 5, 3, 0], [0] * 6]
    assert target.ids.tolist() == [[2, 7, 6, 2, 6], [0] * 5]
    assert labels.tolist() == [[7, 6, 3, 6, 3], [0] * 5]
    assert target.sentences.tolist() == [[1, 1, 1, 2, 2], [0] * 5]
    assert target.positions.tolist() == [[0, 1, 2, 0, 1], [0] * 5]
