"""Positions against the formula and its properties."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.model import LearnedPositions, SinusoidalPositions


def test_first_rows():
    table = SinusoidalPositions(8)(4)
    assert table.shape == (4, 8)
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    torch.testing.assert_close(table[1, :4], torch.tensor([0.84147, 0.54030, 0.09983, 0.99500]), atol=1e-5, rtol=0)


@given(d_model=st.integers(1, 40), start=st.integers(0, 3000), length=st.integers(1, 300))
def test_formula(d_model, start, length):
    """Also beyond the first table, wherever the sequence starts, and where the width is odd."""
    table = SinusoidalPositions(d_model)(length, start)
    assert table.shape == (length, d_model)
    for position in (start, start + length // 2, start + length - 1):
        angles = [position / 10000 ** (2 * (dimension // 2) / d_model) for dimension in range(d_model)]
        expected = [math.cos(angle) if place % 2 else math.sin(angle) for place, angle in enumerate(angles)]
        assert table[position - start].tolist() == pytest.approx(expected, abs=1e-6)


@given(half=st.integers(1, 64), distance=st.integers(0, 300))
def test_norm_and_relative_products(half, distance):
    """The squared norm is d / 2, and PE(p) . PE(p + k) doesn't depend on p."""
    table = SinusoidalPositions(2 * half)(600)
    torch.testing.assert_close(table.square().sum(-1), torch.full((600,), float(half)), atol=1e-4, rtol=0)
    products = (table[: 600 - distance] * table[distance:]).sum(-1)
    torch.testing.assert_close(products, products[0].expand(600 - distance), atol=1e-4, rtol=0)


@pytest.mark.parametrize("positions", [SinusoidalPositions(6), LearnedPositions(400, 6)])
def test_start_continues_the_sequence(positions):
    assert torch.equal(positions(5, start=290), positions(295)[290:])


def test_learned_positions_say_when_they_end():
    with pytest.raises(ValueError, match="101 positions is longer than max_length=100"):
        LearnedPositions(100, 8)(1, start=100)


def test_sinusoids_are_not_saved():
    assert not SinusoidalPositions(8).state_dict()


class MeanwhileReplaced(SinusoidalPositions):
    """Another thread, which needs less, always puts its own table in the place of a new one."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value[:300] if name == "table" else value)


def test_threads_do_not_take_each_others_table():
    assert MeanwhileReplaced(8)(1000).shape == (1000, 8)
