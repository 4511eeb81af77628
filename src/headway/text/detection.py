"""The script and the language of a text. If the script doesn't decide, lingua tells the language (extra `detect`)."""

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
"""Scripts of a single language; text in that language is expected to have some."""
OWN_SHARE = 0.1
"""Minimum share of letters in a language's own scripts; fewer may be a foreign word."""
LEAST_SHARE = 1 / 3
"""Minimum share of letters in the language's script."""
SURE = 0.99
"""Minimum probability by which `recognize` knows a language."""
_MIXED = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "FULLWIDTH": "LATIN"}
"""Scripts that a text mixes, by the first words of their Unicode names; Japanese would be in two of them otherwise."""


@dataclass(frozen=True)
class Detected:
    """A language, and the confidence in it from 0 to 100."""

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
    for share in dict.fromkeys(shares[code] for code in possible):  # equal shares mean the same script
        codes = tuple(code for code in possible if shares[code] == share)
        detector = _lingua(codes)
        for code in codes:
            sure = detector.compute_language_confidence(words, lingua_language(code)) if detector else 1 / len(codes)
            found.append(Detected(code, round(100 * share * sure, 1)))
    return sorted(found, key=lambda one: -one.confidence)


def among_all(words: str, found: Sequence[Detected]) -> list[Detected]:
    """The languages that `detect` found, each with its confidence among all of its script that lingua knows: 0 where
    lingua is sure of another one. Without lingua they stay as they are."""
    with suppress(ImportError):
        shares = {family: _share(words, family, found) for family in {script_family(one.language) for one in found}}
        return [Detected(o.language, round(o.confidence * shares[script_family(o.language)], 1)) for o in found]
    return list(found)


def recognize(words: str) -> str | None:
    """The language of the words, among all that lingua knows; None if it isn't sure, or not installed."""
    with suppress(ImportError):
        first, *_ = lingua_detector(_lingua_codes(), fast=True).compute_language_confidence_values(words)
        if first.value >= SURE:
            return first.language.iso_code_639_1.name.lower()
    return None


def _share(words: str, family: str, found: Sequence[Detected]) -> float:
    """The part of the script's languages that those found have. Raises ImportError without lingua."""
    known = {lingua_language(other.language) for other in found if script_family(other.language) == family}
    every = _lingua_codes(family)
    if None in known or len(every) == 1:
        return 1.0
    values = lingua_detector(every, fast=True).compute_language_confidence_values(words)
    share = sum(value.value for value in values if value.language in known)
    other = max((value.value for value in values if value.language not in known), default=0.0)
    return share if share >= other or other < SURE else 0.0


@lru_cache
def _lingua_codes(family: str | None = None) -> tuple[str, ...]:
    """All codes that lingua knows, or those of a script. Raises ImportError without lingua."""
    from lingua import Language

    codes = (language.iso_code_639_1.name.lower() for language in Language.all())
    return tuple(sorted(code for code in codes if family in (None, script_family(code))))


@lru_cache
def _pattern(code: str):
    """Letters of the language's script; if Unicode lacks it, of the language's usual script, or of Latin script."""
    import regex  # of the extra `documents`; training needs none of it

    for script in filter(None, (script_family(code), script_family(read_code(code).language))):
        with suppress(regex.error):
            return _pattern_of(_SCRIPTS_OF.get(script, (script,)))
    return _pattern_of(("Latn",))


@lru_cache
def _pattern_of(scripts: tuple[str, ...]):
    import regex

    return regex.compile("|".join(rf"[\p{{Script={one}}}&&\p{{L}}]" for one in scripts), regex.V1)


def _lingua(codes: tuple[str, ...]):
    """A detector of these languages; None without lingua, and if it lacks one or can't tell them apart."""
    with suppress(ImportError):
        languages = {lingua_language(code) for code in codes}
        if None not in languages and len(languages) > 1:  # two codes may be variants of one language
            return lingua_detector(codes)
    return None


@lru_cache
def lingua_detector(codes: tuple[str, ...], *, fast: bool = False) -> Any:
    """lingua's detector of languages that it knows. fast: less accurate, 12 times as fast, 60 MB instead of 900 for the
    languages in Latin script. Raises ImportError without lingua."""
    from lingua import LanguageDetectorBuilder

    builder = LanguageDetectorBuilder.from_languages(*{lingua_language(code) for code in codes})
    return (builder.with_low_accuracy_mode() if fast else builder).build()


@lru_cache
def lingua_language(code: str) -> Any:
    """lingua's name for the language; None if it doesn't know it. Raises ImportError without lingua."""
    from lingua import IsoCode639_1, Language

    iso = getattr(IsoCode639_1, read_code(code).language.upper(), None)
    return None if iso is None else Language.from_iso_code_639_1(iso)


@cache
def script_of_character(char: str) -> str:
    """The script of a letter as `script_of` names it; "" for other characters."""
    name = unicodedata.name(char, "") if char.isalpha() else ""
    script = name.split(" ")[0].split("-")[0]
    return _MIXED.get(script, script)


def script_of(text: str) -> str:
    """The script that most letters of the text are in, by the first word of their Unicode names; "" without letters."""
    if text.isascii():
        return "LATIN" if any(map(str.isalpha, text)) else ""
    counts: Counter[str] = Counter()
    for char, count in Counter(text).items():
        counts[script_of_character(char)] += count
    del counts[""]
    return max(counts, key=counts.__getitem__, default="")
