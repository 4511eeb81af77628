"""The plan of batches: every sentence once, within the budget, a pure function of seed and epoch."""

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


@settings(max_examples=100, deadline=None)
@given(lengths=LENGTHS, micro=st.sampled_from([20, 60, 100, 150, 300, 400]))
def test_every_sentence_once_and_within_the_budget(lengths, micro):
    source, target, steps = plan(lengths, micro=micro)
    seen = sorted(int(i) for step in steps for batch in step for i in batch)
    assert seen == list(range(len(lengths)))
    for step in steps:
        costs = [padded_tokens(batch, source, target) for batch in step]
        assert all(cost <= micro or len(batch) == 1 for cost, batch in zip(costs, step, strict=True))
        assert sum(costs) <= 400


def lists(steps):
    return [[batch.tolist() for batch in step] for step in steps]


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
    places = sum(padded_tokens(batch, source, target) for step in steps for batch in step)
    assert (source.sum() + target.sum()) / places > 0.85


@pytest.mark.parametrize("micro", [125, 200, 333, 500, 999])
def test_a_step_has_the_same_size_whatever_the_micro_batch(micro):
    source, target, steps = plan(random_lengths(), batch=1000, micro=micro)
    sizes = [sum(padded_tokens(batch, source, target) for batch in step) for step in steps]
    assert np.mean(sizes) > 800


def test_every_step_has_short_and_long_sentences():
    _, target, steps = plan(random_lengths(), batch=1000, micro=250)
    median = np.median(target)
    for step in steps[:-1]:
        lengths = np.concatenate([target[batch] for batch in step])
        assert lengths.min() < median < lengths.max()


def test_lengths_are_mixed_over_the_epoch():
    _, target, steps = plan(random_lengths(), batch=1000, micro=250)
    means = [np.mean([target[batch].mean() for batch in step]) for step in steps]
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
        return np.bincount(np.concatenate([batch for step in steps for batch in step]), minlength=400)

    first, second = counts(0), counts(1)
    assert (first[:100] == 2).all()
    assert (first[100:300].sum(), first[100:300].max()) == (50, 1)
    assert (first[300:].sum(), first[300:].min(), first[300:].max()) == (150, 1, 2)
    assert (first[100:300] != second[100:300]).any()


def test_a_pair_over_the_budget_is_alone():
    _, _, steps = plan([(3, 3), (30, 30), (4, 3)], micro=50)
    assert [1] in [batch.tolist() for step in steps for batch in step]


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
