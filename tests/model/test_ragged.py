"""Ragged batches: buckets of sentences end to end are the padded form, place by place, with any core of attention."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.models import (
    BODIES,
    EXACT,
    LENGTHS,
    PAD,
    SEEDS,
    attention_by,
    configs,
    random_batch,
    random_model,
)
from torch import Tensor

from headway.model import ModelConfig, MultiHeadAttention, ScaledDotProductAttention, Transformer
from headway.model.masks import padding_mask
from headway.model.ragged import ROWS, Layout, RaggedMask

SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40)), min_size=1, max_size=4)
BUCKETS = st.lists(LENGTHS, min_size=1, max_size=3)


def one_config():
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 9, "encoder_layers": 1, "decoder_layers": 1}
    return ModelConfig(12, 12, dropout=0.0, share_embeddings="none", **sizes)


@given(SHAPES)
def test_the_rows_are_those_of_the_buckets_in_their_order(shapes):
    buckets = [torch.rand(*shape, 2) for shape in shapes]
    layout = Layout.of([bucket[..., 0] for bucket in buckets])
    rows = layout.join(buckets, unused=7)
    used = sum(sequences * length for sequences, length in shapes)
    assert torch.equal(rows[:used], torch.cat([bucket.reshape(-1, 2) for bucket in buckets]))
    assert (rows[used:] == 7).all()
    assert len(rows) % ROWS == 0
    assert len(rows) - used < ROWS
    assert all(torch.equal(one, other) for one, other in zip(layout.split(rows), buckets, strict=True))


@given(configs(), SEEDS, BUCKETS, BODIES)
def test_a_ragged_batch_is_its_buckets_one_by_one(config, seed, buckets, body):
    """Hidden states of every real place, and the gradients of every weight."""
    model = random_model(config, seed)
    pairs = [random_batch(lengths, config.bos_id) for lengths in buckets]
    real = [
        torch.arange(read.size(1)) <= torch.tensor(lengths)[:, 1:]
        for lengths, (_, read) in zip(buckets, pairs, strict=True)
    ]

    def padded() -> Tensor:
        hidden = [model.hidden_states(*pair) for pair in pairs]
        return torch.cat([one[places] for one, places in zip(hidden, real, strict=True)])

    def ragged() -> Tensor:
        rows, layout = model.ragged_hidden_states([source for source, _ in pairs], [read for _, read in pairs])
        return torch.cat([one[places] for one, places in zip(layout.split(rows), real, strict=True)])

    found = []
    with attention_by(body):
        for way in (padded, ragged):
            model.zero_grad()
            hidden = way()
            hidden.sin().sum().backward()
            found.append([hidden, *(parameter.grad for parameter in model.parameters())])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, **EXACT)


class NearestFirst(ScaledDotProductAttention):
    """A core of another kind: its mask hides all keys but the query's own and its neighbours."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        places = torch.arange(queries.size(1))
        near = (places[:, None] - places).abs() <= 1
        return super().forward(queries, keys, values, near if mask is None else mask & near)


def test_another_core_sees_padded_sentences():
    """And needs to know nothing of rows."""
    torch.manual_seed(1)
    attention = MultiHeadAttention(8, 2).double()
    attention.core = NearestFirst(2)
    ids = [torch.tensor([[4, 5, 6, PAD], [4, 5, 6, 7]]), torch.tensor([[4, 5]])]
    layout, masks = Layout.of(ids), [padding_mask(one, PAD) for one in ids]
    x = [torch.randn(*one.shape, 8, dtype=torch.float64) for one in ids]
    rows = layout.join(x)
    found, weights = attention(rows, rows, rows, RaggedMask(layout, layout, masks))
    assert weights is None
    for one, bucket, mask in zip(layout.split(found), x, masks, strict=True):
        torch.testing.assert_close(one, attention(bucket, bucket, bucket, mask)[0], **EXACT)


def test_unused_rows_and_padding_teach_nothing():
    """Gradients of the embeddings reach only the ids that are there."""
    torch.manual_seed(1)
    model = random_model(one_config(), 1)
    source, read = torch.tensor([[4, 3, PAD]]), torch.tensor([[2, 5, PAD]])
    rows, layout = model.ragged_hidden_states([source], [read])
    layout.split(rows)[0][:, :2].sum().backward()
    assert model.source_embedding.weight.grad.abs().sum(dim=1).nonzero()[:, 0].tolist() == [3, 4]
    assert model.target_embedding.weight.grad.abs().sum(dim=1).nonzero()[:, 0].tolist() == [2, 5]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_sentence_is_the_same_whichever_bucket_stands_before_it(positions):
    """Its positions are counted from its own beginning."""
    model: Transformer = random_model(dataclasses.replace(one_config(), positions=positions), 2)
    source, read = torch.tensor([[4, 5, 3]]), torch.tensor([[2, 6]])
    other = torch.tensor([[7, 8, 9, 10, 3], [6, 3, PAD, PAD, PAD]]), torch.tensor([[2, 9, 8], [2, PAD, PAD]])
    alone, layout = model.ragged_hidden_states([source], [read])
    beside, after = model.ragged_hidden_states([other[0], source], [other[1], read])
    torch.testing.assert_close(layout.split(alone)[0], after.split(beside)[1], **EXACT)
