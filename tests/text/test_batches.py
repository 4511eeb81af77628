"""The plan of batches: every sentence once, within the budget, a pure function of seed and epoch."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway.text.batches import CorpusShare, collate, pad, padded_tokens, plan_epoch
from headway.text.corpus import Pair
from headway.text.shards import ParallelIds, write_ids
from headway.text.words import WordTokenizer

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=200)


def plan(lengths, *, batch=400, micro=100, seed=1, epoch=0):
    source, target = np.array(lengths).T
    return (
        source,
        target,
        plan_epoch(source, target, tokens_per_batch=batch, tokens_per_micro_batch=micro, seed=seed, epoch=epoch),
    )


def buckets_of(steps):
    return [bucket for step in steps for micro_batch in step for bucket in micro_batch]


def tokens_of(buckets, source, target):
    return sum(padded_tokens(bucket, source, target) for bucket in buckets)


@settings(max_examples=100, deadline=None)
@given(lengths=LENGTHS, micro=st.sampled_from([20, 60, 100, 150, 300, 400]))
def test_every_sentence_once_and_within_the_budget(lengths, micro):
    source, target, steps = plan(lengths, micro=micro)
    assert sorted(np.concatenate(buckets_of(steps)).tolist()) == list(range(len(lengths)))
    for step in steps:
        assert all(tokens_of(one, source, target) <= micro or [len(bucket) for bucket in one] == [1] for one in step)
        assert sum(tokens_of(one, source, target) for one in step) <= 400


@settings(deadline=None)
@given(lengths=LENGTHS, micro=st.sampled_from([20, 100, 400]))
def test_a_step_is_cut_into_as_few_micro_batches_as_it_can(lengths, micro):
    """Two that follow one another would be over the budget together."""
    source, target, steps = plan(lengths, micro=micro)
    for step in steps:
        for first, second in itertools.pairwise(step):
            assert tokens_of([*first, second[0]], source, target) > micro


def lists(steps):
    return [[[bucket.tolist() for bucket in one] for one in step] for step in steps]


def random_lengths(count=2000):
    """As of real sentences: a translation is about as long as its source."""
    random = np.random.default_rng(0)
    source = random.integers(3, 30, size=count)
    return np.stack([source, np.maximum(1, source + random.integers(-2, 3, size=count))], axis=1)


def test_a_function_of_seed_and_epoch():
    lengths = random_lengths()
    first = lists(plan(lengths)[2])
    assert lists(plan(lengths)[2]) == first
    assert lists(plan(lengths, seed=2)[2]) != first
    assert lists(plan(lengths, epoch=1)[2]) != first


def test_little_is_padding():
    source, target, steps = plan(random_lengths(), batch=1000, micro=1000)
    places = tokens_of(buckets_of(steps), source, target)
    assert (source.sum() + target.sum()) / places > 0.85


@pytest.mark.parametrize("micro", [125, 200, 333, 500, 999])
def test_a_step_has_the_same_size_whatever_the_micro_batch(micro):
    source, target, steps = plan(random_lengths(), batch=1000, micro=micro)
    sizes = [tokens_of(buckets_of([step]), source, target) for step in steps]
    assert np.mean(sizes) > 800


@pytest.mark.parametrize("micro", [250, 400, 1000])
def test_every_step_has_four_lengths_from_the_first_quarter_of_the_tokens_to_the_last(micro):
    """Also where it goes through the model at once."""
    _, target, steps = plan(random_lengths(), batch=1000, micro=micro)
    by_length = np.sort(target)
    tokens = np.cumsum(by_length) / by_length.sum()
    first, last = by_length[np.searchsorted(tokens, [0.25, 0.75])]
    steps_lengths = [[target[bucket].mean() for bucket in buckets_of([step])] for step in steps]
    assert np.mean([len(lengths) >= 4 for lengths in steps_lengths]) > 0.9  # the longest range has some buckets less
    assert np.mean([min(lengths) <= first < last <= max(lengths) for lengths in steps_lengths]) > 0.9


def test_lengths_are_mixed_over_the_epoch():
    _, target, steps = plan(random_lengths(), batch=1000, micro=250)
    means = [np.mean([target[bucket].mean() for bucket in buckets_of([step])]) for step in steps]
    half = len(means) // 2
    assert abs(np.mean(means[:half]) - np.mean(means[half:])) < 2


def test_corpora_come_as_often_as_their_weights_say():
    lengths = random_lengths(400)
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    shares = [CorpusShare(100, 2.0), CorpusShare(200, 0.25), CorpusShare(100, 1.5)]

    def counts(epoch):
        steps = plan_epoch(
            source, target, tokens_per_batch=500, tokens_per_micro_batch=500, seed=1, epoch=epoch, shares=shares
        )
        return np.bincount(np.concatenate(buckets_of(steps)), minlength=400)

    first, second = counts(0), counts(1)
    assert (first[:100] == 2).all()
    assert (first[100:300].sum(), first[100:300].max()) == (50, 1)
    assert (first[300:].sum(), first[300:].min(), first[300:].max()) == (150, 1, 2)
    assert (first[100:300] != second[100:300]).any()


def test_a_pair_over_the_budget_is_alone():
    _, _, steps = plan([(3, 3), (30, 30), (4, 3)], micro=50)
    assert [[1]] in [one for step in lists(steps) for one in step]


def test_pad_by_hand():
    assert pad([[7, 8], [9]]).tolist() == [[7, 8], [9, 0]]


def pairs_of(tmp_path, *texts):
    return [Pair(source, target, tmp_path / "a.de", line) for line, (source, target) in enumerate(texts, 1)]


def test_ids_on_disk_are_those_of_the_pairs(tmp_path):
    words = WordTokenizer(["a", "b", "c", "d"])
    pairs = pairs_of(
        tmp_path, ("a b", "c"), ("", "d"), ("a", " \t"), ("a b c d", "a"), ("d", "d c"), ("a b c d e", "a")
    )
    more = pairs_of(tmp_path, ("d", "d"))
    counts = write_ids(tmp_path / "ids", [pairs[:4], pairs[4:], more], words, words, max_length=5, max_tokens=6)
    assert (counts.kept, counts.blank, counts.too_long) == (3, 2, 2)
    assert "a.de:4" in counts.summary()
    corpus = ParallelIds(tmp_path / "ids")
    assert len(corpus) == 3
    assert corpus.sizes == [1, 1, 1]
    assert [corpus.source[0].tolist(), corpus.target[0].tolist()] == [[4, 5], [6]]
    assert [corpus.source[1].tolist(), corpus.target[1].tolist()] == [[7], [7, 6]]
    source, target = collate(corpus, np.array([1, 0]))
    assert source.tolist() == [[7, 3, 0], [4, 5, 3]]
    assert target.tolist() == [[2, 7, 6, 3], [2, 6, 3, 0]]


def test_a_line_without_end_is_counted_and_not_tokenised(tmp_path, monkeypatch):
    words = WordTokenizer(["a"])
    pairs = pairs_of(tmp_path, ("a", "a"), ("a" * 1000, "a"), ("a", "a" * 1000))
    tokenised = []
    monkeypatch.setattr("headway.text.words.split_words", lambda text, lowercase: tokenised.append(len(text)) or ["a"])
    folder = tmp_path / "folders" / "are" / "made"
    counts = write_ids(folder, [pairs], words, words, max_length=5, max_tokens=6)
    assert (counts.kept, counts.too_long, max(tokenised)) == (1, 2, 1)
    assert "a.de:2" in counts.summary()


def test_nothing_usable_is_an_error(tmp_path):
    words, corpus = WordTokenizer(["a"]), pairs_of(tmp_path, ("", "a"), ("a a a", "a"))
    with pytest.raises(UserError, match=r"a\.de: holds no usable pair \(1 blank, 1 longer"):
        write_ids(tmp_path / "ids", [corpus], words, words, max_length=3, max_tokens=99)
