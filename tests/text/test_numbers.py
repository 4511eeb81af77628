"""Which numbers are the same, which are missing and which are invented. The values are those of the numerals' words."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.numbers import NumberCheck, check_numbers, numbers_of


@pytest.mark.parametrize(
    ("text", "language", "values"),
    [
        ("244890", "", [{244890}]),
        ("244,890; 244.890; 244 890; 244'890", "", [{244890, Decimal("244.890")}] * 2 + [{244890}] * 2),
        ("1.234.567,80 and 1,234,567.8", "", [{Decimal("1234567.8")}] * 2),
        ("0.50 0,5", "", [{Decimal("0.5")}] * 2),
        ("12.05.2020", "", [{12}, {5}, {2020}]),
        ("1.2.3, 10:30, 1/2", "", [{1}, {2}, {3}, {10}, {30}, {1}, {2}]),
        ("f(-45.67,2.5)", "", [{Decimal("45.67")}, {Decimal("2.5")}]),
        ("February 15 1999", "", [{15}, {1999}]),
        ("１２ ٣", "", [{12}, {3}]),
        ("3 million, 2.5 thousand", "en", [{3_000_000}, {2500}]),
        ("3 millionaires", "en", [{3}]),
        ("1억 2천만 명, 300만", "ko", [{120_000_000, 1}, {3_000_000, 300}]),
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
        ("en-ko", "3 million people", "3만 명", ("3 million",), ()),
        ("de-en", "2 Männer am 3. Mai", "two men on 05/03", (), ()),
        ("en-ko", "the 3rd of two rows", "두 줄 가운데 세 번째", (), ()),
        ("en-ko", "November 27, 2026", "2026년 11월 27일", (), ()),
        ("ko-en", "15분 뒤 5월 3일", "fifteen minutes later, May 3", (), ()),
        ("ko-en", "60억 이상", "more than six billion", (), ()),
        ("en-ko", "Secondary hexadecimal", "2차 16진수", (), ()),
        ("en-ko", "version 3 only", "버전 3만", (), ()),
        ("en-ko", "244,890 in the title", "제목", ("244,890",), ()),
        ("en-ko", "the title", "제목 244,890", (), ("244,890",)),
        ("en-de", "R² is ¾", "R2 ist 3/4", (), ()),
        ("en-de", "HEX2DEC", "HEXINDEZ", (), ()),
        ("cs-en", "Dva muži, 40 lidí", "2 men, 50 people", ("40",), ("50",)),
        ("cs-tr", "Dva muži, 40 lidí", "2 kişi", (), ()),
        ("cs-tr", "244890", "24,490", ("244890",), ("24,490",)),
        ("cs-en", "49 a 80", "people of the forty-nine and eighty", (), ()),
        ("en-de", "Copy %1$s to {2} at 7", "Kopiere es nach 7", (), ()),
        ("en-ko", "%1 copies", "1개의 사본", (), ()),
        ("de-en", "um 12.30 Uhr", "at 12:30", (), ()),
        ("en-de", "at 12:30 or 9:05", "um 12.30 Uhr oder 9.05 Uhr", (), ()),
        ("de-en", "am 3.5. um 14.15 Uhr, 14.15 Uhr", "on May 3 at 14:15, 14:15", (), ()),
        ("de-en", "um 12.30 Uhr", "at 12:40", ("12.30",), ("12", "40")),
        ("de-en", "3.5 Meter", "3 meters and 5 men", ("3.5",), ("3", "5")),
        ("en-de", "no digits", "keine", (), ()),
        ("en-de", f"key {'7' * 30}1", f"Schlüssel {'7' * 30}2", (f"{'7' * 30}1",), (f"{'7' * 30}2",)),
    ],
)
def test_numbers_are_missing_or_invented(languages, source, translation, missing, invented):
    check = check_numbers(source, translation, tuple(languages.split("-")))
    assert (check.missing, check.invented) == (missing, invented)


@given(st.text(alphabet="0123456789.,' ab%{}만억", max_size=40))
def test_a_text_has_its_own_numbers(text):
    for languages in (("en", "en"), ("ko", "ko"), ("cs", "cs")):
        assert check_numbers(text, text, languages) == NumberCheck()


@given(st.integers(13, 10**12))
def test_groups_change_no_number(number):
    grouped = f"{number:,}"
    for form in (grouped, grouped.replace(",", "."), grouped.replace(",", "\u202f"), grouped.replace(",", "'")):
        assert check_numbers(f"x {number} y", f"x {form} y", ("en", "cs")) == NumberCheck()
        assert check_numbers(f"x {number} y", f"x {form}7 y", ("en", "cs")).missing


@pytest.mark.parametrize(
    ("translation", "missing"),
    [("`15` Dateien", ()), ("https://a.b/15 Dateien", ()), ('<b id="15">Dateien</b>', ("15",))],
)
def test_a_number_may_be_in_code_but_not_in_markup(translation, missing):
    assert check_numbers("Keep 15 files", translation, ("en", "de")).missing == missing
