"""Calibration error and area under the curve, against their definitions."""

from itertools import product

import pytest
from benchmarks.confidence import area_under_curve, expected_calibration_error
from hypothesis import assume, given
from hypothesis import strategies as st

CASES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.31, 0.5, 0.55, 0.99, 1.0]), st.booleans()), min_size=1
)


@given(CASES)
def test_the_error_is_that_of_its_bins(cases):
    bins: dict[int, list[tuple[float, bool]]] = {}
    for chance, came in cases:
        bins.setdefault(min(int(chance * 10), 9), []).append((chance, came))
    expected = 0.0
    for some in bins.values():
        mean, share = (sum(column) / len(some) for column in zip(*some, strict=True))
        expected += len(some) / len(cases) * abs(mean - share)
    assert expected_calibration_error(*zip(*cases, strict=True)) == pytest.approx(expected)


@given(CASES)
def test_the_area_counts_pairs(cases):
    came, others = ([score for score, happened in cases if happened is kind] for kind in (True, False))
    assume(came and others)
    pairs = [1.0 if one > other else 0.5 if one == other else 0.0 for one, other in product(came, others)]
    assert area_under_curve(*zip(*cases, strict=True)) == pytest.approx(sum(pairs) / len(pairs))


def test_by_hand():
    assert expected_calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False]) == pytest.approx(0)
    assert expected_calibration_error([0.9, 0.1], [False, True]) == pytest.approx(0.9)
    assert area_under_curve([0.1, 0.4, 0.35, 0.8], [False, False, True, True]) == 0.75
