"""What a step reads, against the tensors themselves and pairs counted by hand."""

import numpy as np
import pytest
import torch
from tests.ids import write_ids

from headway.data.batches import MicroBatch
from headway.data.shards import ParallelIds
from headway.text.words import WordTokenizer
from headway.training.step import Batches

PAIRS = [("a b c", "d"), ("a", "d e"), ("b c", "f"), ("a b c d e f", "a b c")]


@pytest.fixture
def batches(tmp_path):
    words = WordTokenizer(list("abcdef"))
    write_ids(tmp_path / "ids", [PAIRS], words)

    def make(tokens_per_micro_batch: int) -> Batches:
        corpus = ParallelIds(tmp_path / "ids")
        return Batches(corpus, torch.device("cpu"), 10 * tokens_per_micro_batch, tokens_per_micro_batch)

    return make


def test_lengths_are_those_of_the_texts_with_their_end(batches):
    source, target = batches(100).plan.lengths_of(np.arange(len(PAIRS)))
    assert source.tolist() == [len(one.split()) + 1 for one, _ in PAIRS]
    assert target.tolist() == [len(other.split()) + 1 for _, other in PAIRS]


def test_what_is_told_of_a_micro_batch_is_what_its_tensors_hold(batches):
    found = batches(14)
    micro_batches = [one for step in found.plan.steps(0) for one in step]
    assert len(micro_batches) > 1
    places = []
    for one in micro_batches:
        source, target, labels = found.tensors(one)
        assert found.longest(one) == (int(source.positions.max()) + 1, int(target.positions.max()) + 1)
        assert found.target_tokens([one]) == (labels != 0).sum().item()
        assert one.places == source.ids.numel() + target.ids.numel()
        places.append(one.places)
    assert places[micro_batches.index(found.largest(micro_batches))] == max(places)
    assert found.target_tokens(micro_batches) == sum(len(other.split()) + 1 for _, other in PAIRS)


def test_of_micro_batches_with_about_as_many_places_that_with_longer_rows_is_the_largest(batches):
    """4,080 places in rows of 64 need less than 3,840 in rows of 256, for attention's sake."""
    short, long = MicroBatch(64, 56, [[0]] * 34), MicroBatch(256, 224, [[2]] * 8)
    assert batches(32).largest([short, long, short]) is long
