"""The numbers of a text, and which of them a translation lacks or invents.

Numbers are digits of any script. Marks between them group thousands (`244,890`, `244.890`, `244 890`) or begin
decimals. Where both are possible (`1.234`), a number has both readings, because texts of every language have both. Two
numbers are the same if they share a reading. Zeros before a number and at the end of decimals don't count. Digits with
other marks are several numbers, such as the three of `12.05.2020` and `1.2.3`. `3 million` and 300만 are one number
each. A number may be a word on the other side: `2 men`, `zwei Männer`; `05`, `Mai`; `1st`, `erste`. For languages that
`WORDS` lacks, numbers up to 12 aren't judged.

Placeholders, markup, code and addresses are left out (`headway.text.protected`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from headway.languages import read_code
from headway.text.protected import split_protected

WORDS = {
    "de": "null|keine? ein(e[nmrs]?)?|erst\\w* zwei\\w*|beide\\w* drei|dritt\\w* vier\\w* fünf\\w* sechs\\w* sieb\\w* "
    "acht\\w* neun\\w* zehn\\w* elf\\w* zwölf\\w*",
    "en": "zero|no one|an?|once|first|single two|twice|second|both|pair|couple three|third four|fourth five|fifth "
    "six|sixth seven|seventh eight|eighth nine|ninth ten|tenth eleven|eleventh twelve|twelfth",
    "fr": "zéro|aucune? une?|premi\\w+ deux|deuxième|seconde? trois\\w* quatr\\w* cinq\\w* six\\w* sept\\w* huit\\w* "
    "neuf|neuvième dix|dixième onz\\w+ douz\\w+",
    "ko": "영 한|하나|첫|단일 두|둘|양쪽 세|셋 네|넷 다섯 여섯 일곱 여덟 아홉 열 열한 열두",
}
"""Patterns of words for 0 to 12, cardinal and ordinal."""
MOST_IN_WORDS, NEARBY = 12, 20
MONTHS = {
    "de": "Jan\\w* Feb\\w* März|Mrz Apr\\w* Mai Juni? Juli? Aug\\w* Sep\\w* Okt\\w* Nov\\w* Dez\\w*",
    "en": "Jan\\w* Feb\\w* Mar|March Apr\\w* May June? July? Aug\\w* Sep\\w* Oct\\w* Nov\\w* Dec\\w*",
    "fr": "janv\\w* févr\\w* mars avr\\w* mai juin juil\\w* août sept\\w* oct\\w* nov\\w* déc\\w*",
}
SCALES = {
    "de": {"tausend": 3, "million(?:en)?|mio": 6, "milliarden?|mrd": 9, "billion(?:en)?": 12},
    "en": {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12},
    "fr": {"mille": 3, "millions?": 6, "milliards?": 9, "billions?": 12},
    "ko": {"백만": 6, "천만": 7, "백": 2, "천": 3, "만": 4, "억": 8, "조": 12},
}
"""Patterns of words that multiply the number before them by a power of ten."""
DECIMAL_COMMA = frozenset(
    """af az be bg bs ca cs da de el es et eu fi fr gl hr hu hy id is it ka kk ky lt lv mk nb nl nn pl pt ro ru sk sl sq
    sr sv tr uk uz vi""".split()  # noqa: SIM905
)
"""Languages with a comma before decimals, by CLDR."""
_COUNTERS = "(?:번째?|개|가지|명|배|줄)?[가-힣]?"
"""What follows a Korean number in the same word: a counter and a particle."""
_SPACES = "'’\u00a0\u202f "
_RUN = re.compile(
    rf"(?<![\d.,])[1-9]\d{{,2}}([{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?!\d|[{_SPACES}]\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*"
)
_GROUPED = re.compile(rf"([1-9]\d{{,2}}([.,{_SPACES}])\d{{3}}(?:\2\d{{3}})*)(?:(?!\2)[.,](\d+))?")
_WITH_DECIMALS = re.compile(r"(\d+)[.,](\d+)")
_AFTER_NAME = re.compile(r"(?:\b[A-Z]\w*|\bv|[Vv]ersion)[ \-]?\Z")


@dataclass(frozen=True)
class Number:
    """A number in a text."""

    text: str
    values: frozenset[Decimal]
    """Its readings."""
    before: str = ""
    """Some of the text before it."""
    after: str = ""
    """The character after it."""

    @property
    def is_whole_word(self) -> bool:
        """Whether it is no part of a name such as H264."""
        return not (self.before[-1:].isalpha() and self.before[-1:].isascii()) and not self.after.isalnum()


@dataclass(frozen=True)
class NumberCheck:
    """The numbers of a source that its translation lacks, and those of the translation that its source lacks."""

    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    wanted: tuple[tuple[str, bool], ...] = ()
    """The numbers that the translation should have, as it has them, or else as its language writes them; and whether
    they follow another character without a space."""

    @property
    def wrong(self) -> int:
        return len(self.missing) + len(self.invented)

    def to_dict(self) -> dict[str, list[str]]:
        return {"missing": [*self.missing], "invented": [*self.invented]}


GOOD = NumberCheck()


def check_numbers(source: str, translation: str, languages: tuple[str, str]) -> NumberCheck:
    """Compares the numbers of both sides, each as often as it occurs. languages: their codes."""
    if not any(map(str.isdecimal, source + translation)):
        return GOOD
    ours, theirs = (read_code(one).language for one in languages)
    known = ours in WORDS and theirs in WORDS
    texts = [" ".join(one for one in split_protected(text) if isinstance(one, str)) for text in (source, translation)]
    numbers, left = (numbers_of(text, code if known else "") for text, code in zip(texts, (ours, theirs), strict=True))
    found: dict[int, Number] = {}
    for same in (lambda one, other: one.text == other.text, lambda one, other: one.values & other.values):
        for place, number in enumerate(numbers):
            partner = None if place in found else next((one for one in left if same(number, one)), None)
            if partner is not None:
                found[place] = partner
                left.remove(partner)
    missing, wanted = list[str](), list[tuple[str, bool]]()
    for place, number in enumerate(numbers):
        one, text = number, written(number, ours, theirs)
        if place in found:
            one, text = found[place], found[place].text
        elif _has_word(texts[1], theirs, number):
            continue
        else:
            missing.append(number.text)
        if one.is_whole_word and text[-1].isdecimal():
            wanted.append((text, bool(one.before[-1:].strip())))
    invented = [one.text for one in left if not _has_word(texts[0], ours, one)]
    return NumberCheck(tuple(missing), tuple(invented), tuple(wanted))


def numbers_of(text: str, language: str = "") -> list[Number]:
    """The numbers of a text in order, each with the words of `SCALES` after it, if the language has some there."""
    found, end = list[Number](), 0
    for run in _RUN.finditer(text):
        if run.start() < end:  # of 1억 2천만
            continue
        values, end = _scaled(text, run, language)
        if values:
            before = text[max(0, run.start() - NEARBY) : run.start()]
            found.append(Number(text[run.start() : end], values, before, text[end : end + 1]))
        else:
            found += [Number(one, _values(one)) for one in re.findall(r"\d+", run[0])]
    return found


def written(number: Number, source_language: str, language: str) -> str:
    """A number as the language writes it: with its marks for groups and decimals, unless it is a version's."""
    point = "," if language in DECIMAL_COMMA else "."
    if match := _GROUPED.fullmatch(number.text):
        is_decimal = not match[3] and match[2] == ("," if source_language in DECIMAL_COMMA else ".")
        if not is_decimal and match[2] in ".,":
            whole = match[1].replace(match[2], "." if point == "," else ",")
            return whole + (f"{point}{match[3]}" if match[3] else "")
    if (match := _WITH_DECIMALS.fullmatch(number.text)) and not _AFTER_NAME.search(number.before):
        return f"{match[1]}{point}{match[2]}"
    return number.text


def _values(text: str) -> frozenset[Decimal]:
    """The readings of digits with marks; none if they are several numbers."""
    grouped, plain = _GROUPED.fullmatch(text), _WITH_DECIMALS.fullmatch(text)
    found = [(re.sub(r"\D", "", grouped[1]), grouped[3])] if grouped else []
    found += [(plain[1], plain[2])] if plain else [(text, None)] if text.isdecimal() else []
    return frozenset(Decimal(f"{whole}.{decimals or 0}").normalize() for whole, decimals in found)


def _scaled(text: str, run: re.Match[str], language: str) -> tuple[frozenset[Decimal], int]:
    """The readings of a number with its words for powers of ten, and its end."""
    values, end = _values(run[0]), run.end()
    scales = _scales(language)
    if scales is None or not values or not (match := scales.match(text, end)):
        return values, end
    total, least = Decimal(0), 99
    while match and (power := int((match.lastgroup or "")[1:])) < least:
        total, least, end = total + max(values).scaleb(power), power, match.end()
        following = _RUN.match(text, end + (text[end : end + 1] == " ")) if language == "ko" else None
        values = _values(following[0]) if following else frozenset[Decimal]()
        match = scales.match(text, following.end()) if following and values else None
    return frozenset({total.normalize()}), end


@cache
def _scales(language: str) -> re.Pattern[str] | None:
    """Matches a word of `SCALES`; the group's name has the power of ten."""
    known = SCALES.get(language)
    if known is None:
        return None
    words = "|".join(f"(?P<p{power}>{word})" for word, power in known.items())
    return re.compile(rf"(?:{words})(?![0-9])" if language == "ko" else rf"[ \-]?(?:{words})\b", re.IGNORECASE)


def _has_word(text: str, language: str, number: Number) -> bool:
    """Whether the text has, or may have, a word for the number, or for the month."""
    if language not in WORDS:
        return any(value == int(value) <= MOST_IN_WORDS for value in number.values)
    return any((pattern := _words(language).get(value)) and pattern.search(text) for value in number.values)


@cache
def _words(language: str) -> dict[Decimal, re.Pattern[str]]:
    words = dict(enumerate(WORDS[language].split()))
    for month, names in enumerate(MONTHS.get(language, "").split(), start=1):
        words[month] += f"|{names}"
    start, end = ("(?<![가-힣])", rf"{_COUNTERS}(?![가-힣])") if language == "ko" else (r"\b", r"\b")
    return {Decimal(one): re.compile(f"{start}(?:{word}){end}", re.IGNORECASE) for one, word in words.items()}
