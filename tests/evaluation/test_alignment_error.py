"""The alignment error rate, worked by hand."""

import pytest

from headway.errors import UserError
from headway.evaluation import alignment_error_rate, parse_pharaoh


def test_error_rate_by_hand():
    # A = 4 links, S = 3, A and S = 2, A and P = 3: 1 - 5 / 7
    found, sure, possible = [[(0, 0), (1, 1)], [(0, 1), (2, 2)]], [[(0, 0), (1, 1)], [(1, 0)]], [[], [(0, 1)]]
    assert alignment_error_rate(found, sure, possible) == pytest.approx(2 / 7)
    assert alignment_error_rate(found, sure) == pytest.approx(1 - 4 / 7)


def test_ends_of_the_scale():
    links = [[(0, 0), (1, 2)], []]
    assert alignment_error_rate(links, links) == 0
    assert alignment_error_rate([[], []], links) == 1
    assert alignment_error_rate([[]], [[]]) == 0
    with pytest.raises(ValueError, match="longer than"):
        alignment_error_rate([[]], links)


def test_pharaoh():
    assert parse_pharaoh(" 0-0 12-3\n") == [(0, 0), (12, 3)]
    assert parse_pharaoh("") == []
    for wrong in ("0", "0-", "-1-2", "a-b", "1-2-3"):
        with pytest.raises(UserError, match="no link"):
            parse_pharaoh(wrong)
