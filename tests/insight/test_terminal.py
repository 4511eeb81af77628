"""Maps for the terminal."""

import torch
from rich.cells import cell_len

from headway.insight.terminal import (
    PLOT_HEIGHT,
    PLOT_WIDTH,
    draw_bars,
    draw_map,
    draw_numbers,
    draw_plot,
    draw_shades,
    shade,
)


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


def plot_of(curves, form=".1f"):
    """Lines between the axis on the left and the one below, and the labels."""
    *rows, _, below = draw_plot(curves, form).split("\n")
    assert len(rows) == PLOT_HEIGHT
    left = [row.partition("│")[0].strip() for row in rows]
    return [row.partition("│")[2].ljust(PLOT_WIDTH) for row in rows], [one for one in left if one], below.split()


def test_a_plot_has_its_ends_where_they_belong():
    rows, left, below = plot_of({"A": {100: 1.0, 2_300: 3.0}})
    assert (rows[-1][0], rows[0][-1]) == ("A", "A")
    assert (left, below) == (["3.0", "1.0"], ["100", "2,300"])
    heights = [next(number for number, row in enumerate(rows) if row[column] == "A") for column in range(PLOT_WIDTH)]
    assert heights == sorted(heights, reverse=True)


def test_curves_of_one_plot_share_its_scale_and_show_where_they_meet():
    rows, *_ = plot_of({"A": {0: 0.0, 10: 10.0}, "B": {0: 4.0, 6: 4.0}})
    assert (rows[-1][0], rows[0][-1]) == ("A", "A")
    assert [row[0] for row in rows].count("B") == 1
    text = "".join(rows)
    assert 1 <= text.count("*") < 12
    assert all("B" not in row[PLOT_WIDTH * 2 // 3 :] for row in rows)  # it ends there
    same = "".join(plot_of({"A": {0: 1.0, 9: 2.0}, "B": {0: 1.0, 9: 2.0}})[0])
    assert set(same) == {" ", "*"}


def test_a_plot_of_a_point_and_of_one_height():
    rows, _, below = plot_of({"A": {7: 2.0}})
    assert "".join(rows).split() == ["A"]
    assert below == ["7", "7"]
    assert sum("A" * PLOT_WIDTH in row for row in plot_of({"A": {1: 2.0, 9: 2.0}})[0]) == 1
