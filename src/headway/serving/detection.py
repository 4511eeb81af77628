"""Which language a text is in: by its script where that decides, else by lingua (extra `detect`) where installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex
from babel.core import get_global

from headway.documents.elements import elements_of
from headway.text.protected import Atom

_SCRIPTS_OF = {
    "Kore": ("Hangul", "Han"),
    "Jpan": ("Hiragana", "Katakana", "Han"),
    "Hans": ("Han",),
    "Hant": ("Han",),
}
"""Unicode's scripts of what languages call their script; others are one and the same."""
_OWN = {"Kore": ("Hangul",), "Jpan": ("Hiragana", "Katakana")}
"""Of these a text in the language has some, if it has any script that others have, too."""
OWN_SHARE = 0.1
"""Of a text's letters: fewer may be a foreign word."""


@dataclass(frozen=True)
class Detected:
    """A language and how sure it is, from 0 to 100."""

    language: str
    confidence: float


def detect(text: str, candidates: Sequence[str]) -> list[Detected]:
    """The candidates that the text may be in, likeliest first, equal where nothing tells them apart; none where its
    script is that of none."""
    words = "".join(" " if isinstance(one, Atom) else one for one in elements_of(text))
    letters = len(regex.findall(r"\p{L}", words))
    if not letters:
        return []
    shares = {code: len(_pattern(code).findall(words)) / letters for code in candidates}
    possible = [code for code, share in shares.items() if share >= 0.5]
    possible = [code for code in possible if _own_letters(code, words) >= OWN_SHARE * letters] or possible
    detector = _lingua(tuple(possible)) if len(possible) > 1 else None
    if detector is None:
        return [Detected(code, round(100 * shares[code] / len(possible), 1)) for code in possible]
    found = [
        Detected(code, round(100 * detector.compute_language_confidence(words, language), 1))
        for code, language in ((code, _language(code)) for code in possible)
        if language is not None
    ]
    return sorted(found, key=lambda one: -one.confidence)


def _own_letters(code: str, words: str) -> float:
    """How many letters are the language's alone; -1 where no letters are known that are."""
    own = _OWN.get(_script(code))
    return -1.0 if own is None else len(_pattern_of(own).findall(words))


def _pattern(code: str) -> regex.Pattern[str]:
    """Letters of the language's script."""
    script = _script(code)
    return _pattern_of(_SCRIPTS_OF.get(script, (script,)))


@lru_cache
def _pattern_of(scripts: tuple[str, ...]) -> regex.Pattern[str]:
    return regex.compile("|".join(rf"[\p{{Script={one}}}&&\p{{L}}]" for one in scripts), regex.V1)


@lru_cache
def _script(code: str) -> str:
    """The language's script as Unicode's data calls it, such as Latn; Latn where the code is unknown."""
    parts = code.split("-")
    for part in parts[1:]:
        if len(part) == 4:
            return part.title()
    likely = get_global("likely_subtags").get(parts[0].lower(), "")
    return next((part for part in likely.split("_") if len(part) == 4), "Latn")


@lru_cache
def _lingua(candidates: tuple[str, ...]):
    """A detector of these languages; None without lingua, or where it doesn't know each, or can't tell them apart."""
    try:
        from lingua import LanguageDetectorBuilder
    except ImportError:
        return None
    languages = {language for language in map(_language, candidates) if language is not None}
    if None in map(_language, candidates) or len(languages) < 2:  # there may be two variants of one
        return None
    return LanguageDetectorBuilder.from_languages(*languages).build()


@lru_cache
def _language(code: str):
    """lingua's name for the language; None where it doesn't know it."""
    from lingua import IsoCode639_1, Language

    iso = getattr(IsoCode639_1, code.split("-", maxsplit=1)[0].upper(), None)
    return None if iso is None else Language.from_iso_code_639_1(iso)
