"""Packed batches: sentences that share a row are what each is alone, with any core of attention."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.packed import packed
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

from headway.data.batches import PackedIds
from headway.data.packing import Joined
from headway.model import ModelConfig, ScaledDotProductAttention, Transformer
from headway.model.packing import Packed


def one_config():
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 9, "encoder_layers": 1, "decoder_layers": 1}
    return ModelConfig(12, 12, dropout=0.0, share_embeddings="none", **sizes)


def into_rows(sentences: list[list[int]], ends: list[int], room: int) -> Packed:
    """The sentences in their order, a new row after each of the ends; so many places of each row are left at least."""
    rows = [sentences[start:end] for start, end in itertools.pairwise([0, *ends, len(sentences)])]
    return packed(rows, max(sum(map(len, row)) for row in rows) + room)


def sentences_of(ids: Tensor, lengths: list[int]) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)]


def test_rows_by_hand():
    side = PackedIds.of(Joined.of([np.array([7, 8, 3]), np.array([9, 3])]), [2, 0], 6)
    assert side.ids.tolist() == [[7, 8, 3, 9, 3, PAD], [PAD] * 6]
    assert side.sentences.tolist() == [[1, 1, 1, 2, 2, 0], [0] * 6]
    assert side.positions.tolist() == [[0, 1, 2, 0, 1, 0], [0] * 6]
    assert side.longest == 3


def test_who_sees_whom_by_hand():
    source, target = packed([[[4, 3], [5, 3]]], 5), packed([[[2], [2, 6]]], 4)
    assert source.visible_to(target)[0, 0].int().tolist() == [
        [1, 1, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]


@given(configs(), SEEDS, LENGTHS, st.sets(st.integers(1, 4)), st.integers(0, 20), BODIES)
def test_a_packed_sentence_is_the_padded_one(config, seed, lengths, ends, room, body):
    """Hidden states of every real place, and the gradients of every weight, however they are packed."""
    model = random_model(config, seed)
    source, read = random_batch(lengths, config.bos_id)
    real = torch.arange(read.size(1)) <= torch.tensor(lengths)[:, 1:]
    cuts = [end for end in sorted(ends) if end < len(lengths)]
    sources = into_rows(sentences_of(source, [one + 1 for one, _ in lengths]), cuts, room)
    targets = into_rows(sentences_of(read, [other + 1 for _, other in lengths]), cuts, room)

    found = []
    with attention_by(body):
        for way in ("padded", "packed"):
            model.zero_grad()
            if way == "padded":
                hidden = model.hidden_states(source, read)[real]
            else:
                hidden = model.packed_hidden_states(sources, targets)[targets.sentences > 0]
            hidden.sin().sum().backward()
            found.append([hidden, *(parameter.grad for parameter in model.parameters())])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, **EXACT)


class NearestFirst(ScaledDotProductAttention):
    """A core of another kind: its mask hides all keys but the query's own place and its neighbours."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        places = torch.arange(queries.size(1))[:, None] - torch.arange(keys.size(1))
        near = places.abs() <= 1
        return super().forward(queries, keys, values, near if mask is None else mask & near)


def test_another_core_needs_to_know_nothing_of_rows():
    """Self-attention by distance finds the distances of a sentence alone."""
    model = random_model(one_config(), 1)
    for layer in model.encoder.layers:
        layer.self_attention.core = NearestFirst(2)
    model.decoder.layers[0].self_attention.core = NearestFirst(2)
    source, read = [[4, 5, 6, 3], [7, 8, 3]], [[2, 6, 7], [2, 8]]
    found = model.packed_hidden_states(packed([source], 9), packed([read], 6))[0]
    alone = [
        model.hidden_states(torch.tensor([ids]), torch.tensor([words]))[0]
        for ids, words in zip(source, read, strict=True)
    ]
    torch.testing.assert_close(found[:5], torch.cat(alone), **EXACT)


def test_padding_teaches_nothing():
    """Gradients of the embeddings reach only the ids that are there."""
    model = random_model(one_config(), 1)
    source, target = packed([[[4, 3]], []], 4), packed([[[2, 5]], []], 3)
    model.packed_hidden_states(source, target)[target.sentences > 0].sum().backward()
    assert model.source_embedding.weight.grad.abs().sum(dim=1).nonzero()[:, 0].tolist() == [3, 4]
    assert model.target_embedding.weight.grad.abs().sum(dim=1).nonzero()[:, 0].tolist() == [2, 5]


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_row_may_be_longer_than_any_sentence(positions):
    """Positions are counted within a sentence, so learned ones need no more than the longest has."""
    model: Transformer = random_model(dataclasses.replace(one_config(), positions=positions, max_length=4), 2)
    row = [[4, 5, 3]] * 100
    found = model.packed_hidden_states(packed([row], 300), packed([[[2, 6]] * 100], 200))[0]
    torch.testing.assert_close(found[:2], found[-2:], **EXACT)
