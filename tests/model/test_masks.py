"""Masks, by hand."""

import torch

from headway.model import causal_mask, cross_mask, padding_mask, target_mask

T, F = True, False


def test_padding_mask_hides_padding_keys():
    ids = torch.tensor([[5, 6, 0], [7, 0, 0]])
    assert padding_mask(ids, 0).tolist() == [[[[T, T, F]]], [[[T, F, F]]]]


def test_causal_mask_hides_the_future():
    assert causal_mask(3)[0, 0].tolist() == [[T, F, F], [T, T, F], [T, T, T]]


def test_target_mask_is_both():
    ids = torch.tensor([[2, 5, 0]])
    assert target_mask(ids, 0)[0, 0].tolist() == [[T, F, F], [T, T, F], [T, T, F]]


def test_a_start_symbol_that_is_the_pad_id_is_seen():
    ids = torch.tensor([[0, 5, 6, 0]])
    assert target_mask(ids, 0)[0, 0].tolist() == [[T, F, F, F], [T, T, F, F], [T, T, T, F], [T, T, T, F]]


def test_cross_mask_hides_source_padding_and_where_asked_rows_of_target_padding():
    source_mask = padding_mask(torch.tensor([[5, 6, 0]]), 0)
    assert cross_mask(source_mask)[0, 0].tolist() == [[T, T, F]]
    rows = cross_mask(source_mask, torch.tensor([[2, 5, 0]]), 0)
    assert rows[0, 0].tolist() == [[T, T, F], [T, T, F], [F, F, F]]
