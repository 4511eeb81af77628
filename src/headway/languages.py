"""Language codes such as `de`, `zh-CN`, `zh_Hant` or `deu`: their parts, and which mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_RENAMED = {"in": "id", "iw": "he", "ji": "yi", "no": "nb"}
"""Two-letter codes that another one replaces; Babel's data have the three-letter ones."""
_OTHER_MEANINGS = frozenset("bpe csv in inp log pre raw sgm spm src sys tgt tmp trg tsv txt mis mul und zxx".split())  # noqa: SIM905
"""Codes that mean something else as suffixes of files, and those that stand for no single language."""


class LanguageCode(NamedTuple):
    """The parts of a code, in the letters of BCP 47: `zh`, `Hans`, `CN`."""

    language: str
    """Its shortest ISO 639 code; for an unknown one, the first part in small letters."""
    script: str = ""
    region: str = ""


@lru_cache
def read_code(code: str) -> LanguageCode:
    """The parts of a code with `-` or `_` between them, in capitals or not; a locale's encoding, variants and
    extensions are left out. Codes of two and three letters for one language (`de`, `deu`, `ger`) give the same
    result."""
    language, *rest = re.split(r"[-_]", re.split(r"[.@]", code.strip().lower())[0])
    if rest and len(rest[0]) == 3 and rest[0].isalpha():  # zh-yue is yue
        language = rest.pop(0)
    script = region = ""
    for part in rest:
        if len(part) == 1:  # an extension, to the end
            break
        if len(part) == 4 and part.isalpha():
            script = script or part.title()
        elif re.fullmatch(r"[a-z]{2}|\d{3}", part):
            region = region or part.upper()
    return LanguageCode(_shortest(language), script, region)


def likely_script(code: str) -> str:
    """The ISO 15924 code of a language's script, such as Latn: the one in the code, else the usual one; "" for an
    unknown language."""
    from babel.core import get_global

    language, script, region = read_code(code)
    known = get_global("likely_subtags")
    likely = known.get(f"{language}_{region}") or known.get(language, "")
    return script or next((part for part in likely.split("_") if len(part) == 4), "")


def is_language(code: str) -> bool:
    """Whether it is the code of a language in Unicode's data, and no common suffix of files such as txt."""
    from babel import Locale

    language = read_code(code).language
    return code.lower() not in _OTHER_MEANINGS and (likely_script(language) != "" or language in Locale("en").languages)


def english_name(code: str) -> str:
    """`de` to `German`; other text stays as it is."""
    from babel import Locale, UnknownLocaleError

    if not is_language(code):
        return code
    try:
        return Locale.parse(code.replace("-", "_")).english_name or code
    except (UnknownLocaleError, ValueError):
        return code


def code_of_name(name: str) -> str | None:
    """`German`, in capitals or not, to `de`; None for what is no English name of a language in Unicode's data."""
    from babel import Locale

    return next((code for code, known in Locale("en").languages.items() if known.lower() == name.lower()), None)


def same_language(code: str, known: Iterable[str]) -> str | None:
    """The code in `known` with the same language and script and no conflicting region, or None. Of several, prefers one
    spelled alike, then one with the same parts, then one without a region."""
    wanted = read_code(code)

    def is_meant(other: str) -> bool:
        language, _, region = read_code(other)
        return (
            language == wanted.language
            and (region == wanted.region or not (region and wanted.region))
            and likely_script(other) == likely_script(code)
        )

    def distance(other: str) -> tuple[bool, ...]:
        alike = other.lower().replace("_", "-") == code.lower().replace("_", "-")
        return other != code, not alike, read_code(other) != wanted, read_code(other).region != ""

    return min(filter(is_meant, known), key=distance, default=None)


def _shortest(language: str) -> str:
    if len(language) != 3 or not language.isalpha():
        return _RENAMED.get(language, language)
    from babel.core import get_global

    return get_global("language_aliases").get(language, language).split("_")[0]
