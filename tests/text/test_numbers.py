"""Which numbers are the same, which are missing and which are invented. The values are those of the numerals' words."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.numbers import check_numbers, numbers_of


@pytest.mark.parametrize(
    ("text", "language", "values"),
    [
        ("244890", "", [{244890}]),
        ("244,890; 244.890; 244 890; 244'890", "", [{244890, Decimal("244.890")}] * 2 + [{244890}] * 2),
        ("1.234.567,80 and 1,234,567.8", "", [{Decimal("1234567.8")}] * 2),
        ("0.50 0,5", "", [{Decimal("0.5")}] * 2),
        ("12.05.2020", "", [{12}, {5}, {2020}]),
        ("1.2.3, 10:30, 1/2", "", [{1}, {2}, {3}, {10}, {30}, {1}, {2}]),
        ("February 15 1999", "", [{15}, {1999}]),
        ("１２ ٣", "", [{12}, {3}]),
        ("3 million, 2.5 thousand", "en", [{3_000_000}, {2500}]),
        ("3 millionaires", "en", [{3}]),
        ("1억 2천만 명, 300만", "ko", [{120_000_000}, {3_000_000}]),
        ("2 Billionen", "de", [{2 * 10**12}]),
    ],
)
def test_a_number_has_its_readings(text, language, values):
    assert [one.values for one in numbers_of(text, language)] == [frozenset(map(Decimal, one)) for one in values]


@pytest.mark.parametrize(
    ("languages", "source", "translation", "missing", "invented"),
    [
        ("en-de", "It has 244890 points.", "Es hat 24,490 Punkte.", ("244890",), ("24,490",)),
        ("en-de", "It has 244,890 points.", "Es hat 244.890 Punkte.", (), ()),
        ("en-de", "5.9 of 10", "5,9 von 10", (), ()),
        ("en-de", "10 of 10", "10", ("10",), ()),
        ("en-ko", "3 million people", "300만 명", (), ()),
        ("en-ko", "3 million people", "3만 명", ("3 million",), ("3만",)),
        ("de-en", "2 Männer am 3. Mai", "two men on 05/03", (), ()),
        ("en-ko", "the 3rd of two rows", "두 줄 가운데 세 번째", (), ()),
        ("en-ko", "November 27, 2026", "2026년 11월 27일", (), ()),
        ("cs-en", "Dva muži, 40 lidí", "2 men, 50 people", ("40",), ("50",)),
        ("en-de", "Copy %1$s to {2} at 7", "Kopiere es nach 7", (), ()),
        ("en-de", "no digits", "keine", (), ()),
    ],
)
def test_numbers_are_missing_or_invented(languages, source, translation, missing, invented):
    check = check_numbers(source, translation, tuple(languages.split("-")))
    assert (check.missing, check.invented) == (missing, invented)


@pytest.mark.parametrize(
    ("languages", "source", "wanted"),
    [
        ("en-de", "from 244,890.5 (1,234)", [("244.890,5", False), ("1.234", True)]),
        ("de-en", "von 0,5 bis 1.234", [("0.5", False), ("1,234", False)]),
        ("en-de", "at 5.9 in SVG 1.1", [("5,9", False), ("1.1", False)]),
        ("en-ko", "244,890 of H264", [("244,890", False)]),
    ],
)
def test_missing_numbers_are_wanted_as_the_language_writes_them(languages, source, wanted):
    assert list(check_numbers(source, "", tuple(languages.split("-"))).wanted) == wanted


@given(st.text(alphabet="0123456789.,' ab%{}만억", max_size=40))
def test_a_text_has_its_own_numbers(text):
    for languages in (("en", "en"), ("ko", "ko"), ("cs", "cs")):
        assert check_numbers(text, text, languages).wrong == 0


@given(st.integers(13, 10**12))
def test_groups_change_no_number(number):
    grouped = f"{number:,}"
    for form in (grouped, grouped.replace(",", "."), grouped.replace(",", "\u202f"), grouped.replace(",", "'")):
        assert check_numbers(f"x {number} y", f"x {form} y", ("en", "cs")).wrong == 0
        assert check_numbers(f"x {number} y", f"x {form}7 y", ("en", "cs")).missing
