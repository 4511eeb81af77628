"""Examples of translations: pairs that a model was validated on, or one in its languages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from babel import Locale, UnknownLocaleError
from babel.dates import format_date

from headway.languages import read_code

EXAMPLES, LONGEST_EXAMPLE = 5, 80
"""Sentences that a page offers, and their characters at most."""
_SENTENCES = {
    "de": "Ein Hund läuft.",
    "en": "A dog is running.",
    "es": "Un perro corre.",
    "fr": "Un chien court.",
    "ko": "개가 달립니다.",
}
_DAY = date(2017, 6, 12)
"""Of "Attention Is All You Need"."""


def examples_among(pairs: Iterable[tuple[str, str]], source: str, target: str) -> list[tuple[str, str]]:
    """The first few short ones, each source once; where there are none, one in the two languages."""
    short: dict[str, str] = {}
    for text, translation in pairs:
        if 0 < len(text.strip()) <= LONGEST_EXAMPLE:
            short.setdefault(text, translation)
        if len(short) == EXAMPLES:
            break
    return list(short.items()) or [(example_text(source), example_text(target))]


def example_text(code: str) -> str:
    """A text in a language: a sentence, or a day as its people write it; English where the code is unknown."""
    if sentence := _SENTENCES.get(read_code(code).language):
        return sentence
    try:
        return format_date(_DAY, "full", Locale.parse(code.replace("-", "_")))
    except (UnknownLocaleError, ValueError):
        return _SENTENCES["en"]
