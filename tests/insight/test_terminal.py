"""Maps for the terminal."""

import torch
from rich.cells import cell_len

from headway.insight import draw_map
from headway.insight.terminal import draw_bars, draw_numbers, draw_shades, shade


def test_columns_stand_under_each_other_also_for_wide_characters():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    lines = draw_map(weights, ["년", "day"], ["May", "년", "3"]).split("\n")
    assert lines[0] == "     May 년 3"
    assert lines[1] == " 년  ███"
    assert lines[2] == "day         █"
    assert cell_len(lines[2]) == cell_len(lines[0])


def test_darker_is_more():
    assert [shade(weight) for weight in (0.0, 0.3, 0.5, 0.7, 1.0)] == [" ", "░", "▒", "▓", "█"]


def test_control_characters_are_not_shown():
    assert "\n" not in draw_map(torch.ones(1, 1), ["\n"], ["\x1b[2J"]).split("\n", 1)[1]


def test_numbers_shades_and_bars_by_hand():
    values = torch.tensor([[0.0, 1.0], [0.25, -1.0]])
    assert draw_numbers(values, ["0", "1"], ["a", "b"]).split("\n")[2] == "1   0.25000  -1.00000"
    assert draw_shades(values.abs(), ["x", "yy"]) == " x   █\nyy  ░█"
    assert draw_bars([1.0, 0.5], ["a", "bb"], ".1f") == f" a  1.0  {'█' * 60}\nbb  0.5  {'█' * 30}"
