"""Which script and which language a text is in. The language is told by its script where that decides, else by lingua
(extra `detect`) where installed."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from headway.languages import read_code, script_family

_SCRIPTS_OF = {
    "Kore": ("Hangul", "Han"),
    "Jpan": ("Hiragana", "Katakana", "Han"),
    "Hans": ("Han",),
    "Hant": ("Han",),
}
"""Unicode scripts of ISO 15924 codes that aren't one themselves."""
_OWN = {"Kore": ("Hangul",), "Jpan": ("Hiragana", "Katakana")}
"""Scripts that one language alone uses; text in that language is expected to have some."""
OWN_SHARE = 0.1
"""Least share of letters in a language's own scripts; fewer may be a foreign word."""
LEAST_SHARE = 1 / 3
"""Least share of letters in the language's script."""


@dataclass(frozen=True)
class Detected:
    """A language and how sure it is, from 0 to 100."""

    language: str
    confidence: float


def detect(words: str, candidates: Sequence[str]) -> list[Detected] | None:
    """The candidates whose language the words may be in, most likely first, with equal confidence if nothing tells them
    apart; empty if none has their script; None without letters."""
    letters = sum(map(str.isalpha, words))
    if not letters:
        return None
    shares = {code: len(_pattern(code).findall(words)) / letters for code in candidates}
    possible = [code for code, share in shares.items() if share >= LEAST_SHARE]
    own = {code: _pattern_of(scripts) for code in possible if (scripts := _OWN.get(script_family(code)))}
    possible = [code for code, one in own.items() if len(one.findall(words)) >= OWN_SHARE * letters] or possible
    found: list[Detected] = []
    for share in dict.fromkeys(shares[code] for code in possible):  # the same where the script is
        told = _told_apart(words, tuple(code for code in possible if shares[code] == share))
        found += [Detected(code, round(100 * share * confidence, 1)) for code, confidence in told]
    return sorted(found, key=lambda one: -one.confidence)


def _told_apart(words: str, codes: tuple[str, ...]) -> list[tuple[str, float]]:
    """The languages of a script, each with its confidence."""
    detector = _lingua(codes) if len(codes) > 1 else None
    if detector is None:
        return [(code, 1 / len(codes)) for code in codes]
    return [(code, detector.compute_language_confidence(words, lingua_language(code))) for code in codes]


@lru_cache
def _pattern(code: str):
    """Letters of the language's script; where Unicode has no such script, of the one that the language is usually in,
    or of Latin script."""
    import regex

    for script in filter(None, (script_family(code), script_family(read_code(code).language))):
        with suppress(regex.error):
            return _pattern_of(_SCRIPTS_OF.get(script, (script,)))
    return _pattern_of(("Latn",))


@lru_cache
def _pattern_of(scripts: tuple[str, ...]):
    import regex  # of the extra `documents`; training needs none of it

    return regex.compile("|".join(rf"[\p{{Script={one}}}&&\p{{L}}]" for one in scripts), regex.V1)


def _lingua(codes: tuple[str, ...]):
    """A detector of these languages; None without lingua, or where it doesn't know each, or can't tell them apart."""
    with suppress(ImportError):
        languages = {lingua_language(code) for code in codes}
        if None not in languages and len(languages) > 1:  # there may be two variants of one
            return lingua_detector(codes)
    return None


@lru_cache
def lingua_detector(codes: tuple[str, ...], *, fast: bool = False) -> Any:
    """lingua's detector of languages that it knows. fast: less accurate, but 12 times as fast, and with 60 MB instead
    of 900 for the languages in Latin script. Raises ImportError without lingua."""
    from lingua import LanguageDetectorBuilder

    builder = LanguageDetectorBuilder.from_languages(*{lingua_language(code) for code in codes})
    return (builder.with_low_accuracy_mode() if fast else builder).build()


@lru_cache
def lingua_language(code: str) -> Any:
    """lingua's name for the language; None where it doesn't know it. Raises ImportError without lingua."""
    from lingua import IsoCode639_1, Language

    iso = getattr(IsoCode639_1, read_code(code).language.upper(), None)
    return None if iso is None else Language.from_iso_code_639_1(iso)


_TOGETHER = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "FULLWIDTH": "LATIN"}
"""Scripts that one text mixes; Japanese would be in two of them otherwise."""


@cache
def script_of_character(char: str) -> str:
    """As `script_of`; empty for what is no letter."""
    name = unicodedata.name(char, "") if char.isalpha() else ""
    script = name.split(" ")[0].split("-")[0]
    return _TOGETHER.get(script, script)


def script_of(text: str) -> str:
    """The script that most letters of the text are in, by the first word of their Unicode names; "" without letters."""
    if text.isascii():  # whose letters are all of one script
        return "LATIN" if any(map(str.isalpha, text)) else ""
    counts: Counter[str] = Counter()
    for char, count in Counter(text).items():
        counts[script_of_character(char)] += count
    del counts[""]
    return max(counts, key=counts.__getitem__, default="")
