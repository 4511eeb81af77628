"""What a step reads, against the tensors themselves and pairs counted by hand."""

import numpy as np
import pytest
import torch
from tests.ids import write_ids
from torch._dynamo.testing import CompileCounter

from headway.data.batches import MicroBatch
from headway.data.shards import ParallelIds
from headway.model import ModelConfig, Transformer
from headway.text.words import WordTokenizer
from headway.training.loss import TranslationLoss
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


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # by torch's compiler
def test_layers_compile_to_two_graphs_each_for_all_shapes_of_an_epoch(tmp_path):
    """For the first shape and for all others, by the code that accelerators run, and without a break in a graph."""
    words = WordTokenizer(list("abcdef"))
    pairs = [("a " * length, "b " * length) for length in (*range(1, 12), 45, 100) for _ in range(4)]
    write_ids(tmp_path, [pairs], words)
    batches = Batches(ParallelIds(tmp_path), torch.device("cpu"), 600, 600)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model, graphs = Transformer(ModelConfig(words.vocab_size, words.vocab_size, **sizes)), CompileCounter()
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.compile(backend=graphs, fullgraph=True)
    epoch = [one for step in batches.plan.steps(0) for one in step]
    assert len({(len(one.rows), one.source_length, one.target_length) for one in epoch}) > 2
    for one in epoch:
        TranslationLoss(model, 0.1)(*batches.tensors(one)).backward()
    assert graphs.frame_count <= 4
