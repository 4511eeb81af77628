"""Positions against the formula and its properties."""

import math

import pytest
import torch

from headway.model import LearnedPositions, SinusoidalPositions


def test_first_rows():
    table = SinusoidalPositions(8)(4)
    assert table.shape == (4, 8)
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    torch.testing.assert_close(table[1, :4], torch.tensor([0.84147, 0.54030, 0.09983, 0.99500]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("d_model", [8, 7])
def test_formula(d_model):
    table = SinusoidalPositions(d_model)(600)  # beyond the first table
    for position in (0, 1, 99, 599):
        for dimension in range(d_model):
            angle = position / 10000 ** (2 * (dimension // 2) / d_model)
            expected = math.cos(angle) if dimension % 2 else math.sin(angle)
            assert table[position, dimension].item() == pytest.approx(expected, abs=1e-5)


def test_norm_and_relative_products():
    table = SinusoidalPositions(64)(200)
    torch.testing.assert_close(table.square().sum(-1), torch.full((200,), 32.0), atol=1e-4, rtol=0)
    products = (table[:150] * table[7:157]).sum(-1)
    torch.testing.assert_close(products, products[0].expand(150), atol=1e-4, rtol=0)


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
