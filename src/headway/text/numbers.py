"""The numbers of a text, and which of them a translation lacks or invents.

Numbers are digits of any script. Marks between them group thousands (`244,890`, `244.890`, `244 890`) or begin
decimals. Where both are possible (`1.234`), a number has both readings, because texts of every language have both. Two
numbers are the same if they share a reading. Digits with other marks are several numbers, such as the three of
`12.05.2020` and `1.2.3`, and so may be a time or a date (`12.30`, `3.5.`); those between letters are none (`HEX2DEC`);
`3 million` and 300만 are one each. A number may be a word on the other side: `2 men`, `zwei Männer`; `05`, `Mai`;
`15분`, `fifteen minutes`.

A false mark is worse than none. So what good translations do is not marked: numbers up to 12 that only the translation
has (2차, `secondary`), and numbers that are left out in a language without an entry in `WORDS`. Placeholders, markup,
code and addresses (`headway.text.protected`) are left out.
"""

import itertools
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from headway.languages import read_code
from headway.text.protected import Atom, split_protected

WORDS = {
    "de": r"null|kein\w* ein(e[nmrs]?)?|erst\w*|Jan\w* zwei\w*|beide\w*|Feb\w* drei\w*|dritt\w*|März|Mrz "
    r"vier\w*|Apr\w* fünf\w*|Mai sechs\w*|Juni? sieb\w*|Juli? acht\w*|Aug\w* neun\w*|Sep\w* zehn\w*|Okt\w* "
    r"elf\w*|Nov\w* zwölf\w*|Dez\w* \w*(zehn|[zß]ig|hundert|tausend|milli|dutzend|viertel|hälfte|halb)\w*",
    "en": r"zero|no one|an?|once|first|single|primary|Jan\w* two|II|twice|second\w*|both|pair|couple|double|Feb\w* "
    r"three|III|third|triple|Mar|March four\w*|quad\w*|Apr\w* five|fifth|May six\w*|June? seven\w*|July? "
    r"eight\w*|Aug\w* nin\w*|Sep\w* ten\w*|deci\w*|Oct\w* eleven\w*|Nov\w* twel\w*|dozen|Dec\w* "
    r"(\w+-)?((thir|four|fif|six|seven|eigh|nine)teen|(twen|thir|for|fif|six|seven|eigh|nine)t(y|ie)|dozen|half|hex|"
    r"hundred|thousand|million|billion|cent|full\b)\w*",
    "fr": r"zéro|aucun\w* une?|premi\w+|janv\w* deux|deuxième|second\w*|févr\w* trois\w*|tiers|mars quat\w*|avr\w* "
    r"cinq\w*|mai six\w*|juin sept|septième|juil\w* huit\w*|août neu\w*|sept\w* dix|dixième|oct\w* onz\w+|nov\w* "
    r"douz\w+|déc\w* (treiz|quator|quinz|seiz|dix-|vingt|trent|quarant|cinquant|soixant|cent|mill|demi|moitié)\w*",
    "ko": "영 한|하나|첫|단일 두|둘|양쪽 세|셋 네|넷 다섯 여섯 일곱 여덟 아홉 열 열한 열두 "
    "(열|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔)[가-힣]{,2}|[이삼사오육칠팔구십백천만억]*[십백천만억]|반",
}
"""Patterns of words for 0 to 12, cardinal, ordinal and months, and of those for some number above."""
SCALES = {
    "de": r"[ -](?:(?P<p3>tausend)|(?P<p6>million(en)?|mio)|(?P<p9>milliarden?|mrd)|(?P<p12>billion(en)?))\b",
    "en": r"[ -](?:(?P<p2>hundred)|(?P<p3>thousand)|(?P<p6>million)|(?P<p9>billion)|(?P<p12>trillion))\b",
    "fr": r"[ -](?:(?P<p3>mille)|(?P<p6>millions?)|(?P<p9>milliards?)|(?P<p12>billions?))\b",
    "ko": r"(?:(?P<p6>백만)|(?P<p7>천만)|(?P<p2>백)|(?P<p3>천)|(?P<p4>만)|(?P<p8>억)|(?P<p12>조))(?!\d)",
}
"""Words that multiply the number before them by a power of ten, which the group's name has."""
MOST_IN_WORDS = 12
_COUNTERS = "(?:번째?|개|가지|명|배|줄|살|시|차)?[가-힣]?"
"""A counter and a particle, which may follow a Korean number in the same word."""
_SPACES = "'’\u00a0\u202f "
_RUN = re.compile(
    rf"(?<![\d.,])[1-9]\d{{,2}}([{_SPACES}])\d{{3}}(?:\1\d{{3}})*(?!\d|[{_SPACES}]\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*"
)
_GROUPED = re.compile(rf"([1-9]\d{{,2}}([.,{_SPACES}])\d{{3}}(?:\2\d{{3}})*)(?:(?!\2)[.,](\d+))?")
_IN_NAME = re.compile(r"(?<=[A-Za-z])\d+(?=[A-Za-z])")
_TIME = re.compile(r"(\d{1,2})\.(\d{1,2})")
_WITH_DECIMALS = re.compile(r"(\d+)[.,](\d+)")


class Number(NamedTuple):
    """A number in a text."""

    text: str
    values: frozenset[Decimal]
    """Its readings."""


@dataclass(frozen=True)
class NumberCheck:
    """The numbers of a source that its translation lacks, and those of the translation that its source lacks."""

    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.invented)

    def to_dict(self) -> dict[str, list[str]]:
        return {"missing": [*self.missing], "invented": [*self.invented]}


def check_numbers(source: str, translation: str, languages: tuple[str, str]) -> NumberCheck:
    """Compares the numbers of both sides, each as often as it occurs. languages: their codes."""
    if not any(map(str.isdecimal, source + translation)):
        return NumberCheck()
    language, other_language = (read_code(one).language for one in languages)
    (text, code), (other_text, other_code) = _parts(source), _parts(translation)
    missing, invented = list[Number](), numbers_of(other_text, other_language)
    for number in numbers_of(text, language):
        same = next((one for one in invented if one.values & number.values), None)
        if same is None:
            missing.append(number)
        else:
            invented.remove(same)
    missing = _without_times(missing, text, invented, other_text, other_language)
    invented = _without_times(invented, other_text, missing, text, language)
    missing = [one for one in missing if one.text not in other_code and not _has_word(other_text, other_language, one)]
    invented = [one for one in invented if one.text not in code and not _has_word(text, language, one)]
    if not missing or language not in WORDS:
        invented = [one for one in invented if min(one.values) > MOST_IN_WORDS and (missing or language in WORDS)]
    if not invented and other_language not in WORDS:
        missing = []
    return NumberCheck(tuple(one.text for one in missing), tuple(one.text for one in invented))


def _without_times(
    numbers: list[Number], text: str, others: list[Number], other_text: str, other_language: str
) -> list[Number]:
    """The numbers of a text without times (12.30) and dates (3.5.) whose two parts the other text has. Takes these
    from `others`."""
    left = list[Number]()
    for number in numbers:
        time = _TIME.fullmatch(number.text)
        parts = [Number(one, _values(one)) for one in time.groups()] if time else []
        same = [next((other for other in others if other.values & one.values), None) for one in parts]
        found = (other or _has_word(other_text, other_language, one) for other, one in zip(same, parts, strict=True))
        if time and (len(time[2]) == 2 or f"{number.text}." in text) and all(found):
            for one in filter(None, same):
                if one in others:
                    others.remove(one)
        else:
            left.append(number)
    return left


def _parts(text: str) -> tuple[str, str]:
    """The words of a text, and its protected parts but markup."""
    elements = split_protected(unicodedata.normalize("NFKC", text))
    words = " ".join(_IN_NAME.sub(" ", one) for one in elements if isinstance(one, str))
    return words, " ".join(one.raw for one in elements if isinstance(one, Atom) and not one.is_syntax)


def numbers_of(text: str, language: str = "") -> list[Number]:
    """The numbers of a text in order, each with the words of `SCALES` after it, if the language has some there."""
    found, end = list[Number](), 0
    for run in _RUN.finditer(text):
        if run.start() < end:  # of 1억 2천만
            continue
        values, end = _scaled(text, run, language)
        if values:
            found.append(Number(text[run.start() : end], values))
        else:  # 1.2.3, or 4.5,6.7 of a formula
            parts = itertools.chain.from_iterable(
                [one] if _values(one) else re.findall(r"\d+", one) for one in run[0].split(",")
            )
            found += [Number(one, _values(one)) for one in parts]
    return found


def _values(text: str) -> frozenset[Decimal]:
    """The readings of digits with marks; none if they are several numbers."""
    grouped, plain = _GROUPED.fullmatch(text), _WITH_DECIMALS.fullmatch(text)
    found = [(re.sub(r"\D", "", grouped[1]), grouped[3])] if grouped else []
    found += [(plain[1], plain[2])] if plain else [(text, None)] if text.isdecimal() else []
    return frozenset(Decimal(f"{whole}.{decimals or 0}") for whole, decimals in found)


def _scaled(text: str, run: re.Match[str], language: str) -> tuple[frozenset[Decimal], int]:
    """The readings of a number with its words for powers of ten, and its end."""
    values, end = _values(run[0]), run.end()
    plain, total, least = values, Decimal(0), 99
    scales = re.compile(SCALES.get(language, "(?!)"), re.IGNORECASE)
    match = scales.match(text, end)
    while values and match and (power := int((match.lastgroup or "")[1:])) < least:
        total, least, end = total + max(values).scaleb(power), power, match.end()
        following = _RUN.match(text, end + (text[end : end + 1] == " ")) if language == "ko" else None
        values = _values(following[0]) if following else frozenset[Decimal]()
        match = scales.match(text, following.end()) if following else None
    if not total:
        return plain, end
    return frozenset({total, *(plain if language == "ko" else ())}), end  # 만 may also be a particle


def _has_word(text: str, language: str, number: Number) -> bool:
    """Whether the text has a word that may stand for the number."""
    words = _words(language)
    places = {int(one) if one in range(MOST_IN_WORDS + 1) else -1 for one in number.values}
    return any(words[place].search(text) for place in places if words)


@cache
def _words(language: str) -> list[re.Pattern[str]]:
    start, end = (r"(?<![가-힣\d])", rf"{_COUNTERS}(?![가-힣])") if language == "ko" else (r"\b", r"\b")
    words = WORDS.get(language, "").split()
    return [re.compile(f"{start}(?:{word}){end}", re.IGNORECASE) for word in words]
