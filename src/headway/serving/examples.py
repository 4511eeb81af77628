"""Examples of requests, in the languages that the server translates."""

from __future__ import annotations

from datetime import date

from babel import Locale, UnknownLocaleError
from babel.dates import format_date

from headway.serving.pairs import Pair

_SENTENCES = {
    "de": "Ein Hund läuft.",
    "en": "A dog is running.",
    "es": "Un perro corre.",
    "fr": "Un chien court.",
    "ko": "개가 달립니다.",
}
_DAY = date(2017, 6, 12)
"""Of "Attention Is All You Need"."""


def example_request(pair: Pair) -> dict[str, str]:
    """The fields of a request to translate; those of another request are among them."""
    return {"q": example_text(pair.source), "source": pair.source, "target": pair.target}


def example_text(code: str) -> str:
    """A text in a language: a sentence, or a day as its people write it; English where the code is unknown."""
    language = code.partition("-")[0]
    if language in _SENTENCES:
        return _SENTENCES[language]
    try:
        return format_date(_DAY, "full", Locale.parse(code, sep="-"))
    except (UnknownLocaleError, ValueError):
        return _SENTENCES["en"]
