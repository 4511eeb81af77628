"""Language codes such as `de`, `zh-CN`, `zh_Hant` or `deu`: their parts, and which mean the same.

languages.json holds what Unicode's CLDR says of them: other codes for the same language, English names, usual scripts.
"""

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from headway.errors import UserError

_CLDR: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
SCRIPT_NAMES = _CLDR["scripts"]
"""English names of scripts by their ISO 15924 codes."""
_USUAL_SCRIPTS = {code: script for script, codes in _CLDR["usual"].items() for code in codes.split()}
"""The script of a language, or of one in a region, such as `zh_TW`."""
_CLDR["aliases"] |= {"pb": "pt_BR", "zt": "zh_Hant"}  # LibreTranslate's
_RENAMED = {"cn": "zh", "fil": "tl", "jp": "ja", "no": "nb"}
"""Codes for which CLDR has no shorter one, and those of countries that are usual in the names of files."""
_MODIFIERS = {"cyrillic": "Cyrl", "devanagari": "Deva", "latin": "Latn"}
"""Scripts in the names of locales: `sr_RS@latin`."""
_FAMILIES = {
    **dict.fromkeys(("Hang", "Jamo"), "Kore"),
    **dict.fromkeys(("Hira", "Hrkt", "Kana"), "Jpan"),
    **dict.fromkeys(("Latf", "Latg"), "Latn"),
    **dict.fromkeys(("Syre", "Syrj", "Syrn"), "Syrc"),
    **{"Aran": "Arab", "Cyrs": "Cyrl", "Hanb": "Hant"},
}
"""Variants and parts of scripts, by their ISO 15924 codes, with the script that they belong to."""
_OTHER_MEANINGS = frozenset("bpe csv in inp log pre raw sgm spm src sys tgt tmp trg tsv txt mis mul und zxx".split())  # noqa: SIM905
"""Codes that mean something else as suffixes of files, and those that stand for no single language."""
_SUFFIXES = frozenset("bak bin cad cat mac man new pb pro run sam sas ter tok vol".split())  # noqa: SIM905
"""Suffixes of files that are more common than the languages with these codes."""


class LanguageCode(NamedTuple):
    """The parts of a code, in the letters of BCP 47: `zh`, `Hans`, `CN`."""

    language: str
    """Its shortest ISO 639 code; for an unknown one, the first part in small letters."""
    script: str = ""
    region: str = ""


@lru_cache
def read_code(code: str) -> LanguageCode:
    """The parts of a code with `-` or `_` between them, in capitals or not, without a locale's encoding, variants and
    extensions. Codes of the same language (`de`, `deu`, `ger`) give the same result."""
    code, _, modifier = code.strip().lower().partition("@")
    language, *rest = re.split(r"[-_]", code.partition(".")[0])
    if rest and len(rest[0]) == 3 and rest[0].isalpha():  # zh-yue is yue
        language = rest.pop(0)
    rest = list(takewhile(lambda part: len(part) != 1, rest))  # an extension goes to the end
    language, *usual = _CLDR["aliases"].get(language, language).split("_")  # sh is sr_Latn
    script, region = _MODIFIERS.get(modifier, ""), ""
    for part in (*rest, *usual):
        if part.title() in SCRIPT_NAMES:
            script = script or part.title()
        elif re.fullmatch(r"(?!xx)[a-z]{2}|\d{3}", part.lower()):
            region = region or part.upper()
    return LanguageCode(_RENAMED.get(language, language), script, region)


def likely_script(code: str) -> str:
    """The ISO 15924 code of the script in the code, else the usual one, such as Latn; "" for an unknown language."""
    language, script, region = read_code(code)
    return script or _USUAL_SCRIPTS.get(f"{language}_{region}") or _USUAL_SCRIPTS.get(language, "")


def script_family(code: str) -> str:
    """The script of the language, in one code for all its variants: Kore for Hang, Latn for Latf. Hani is the script
    that the language has without it."""
    script = likely_script(code)
    if script == "Hani":
        language, _, region = read_code(code)
        usual = likely_script(f"{language}-{region}")
        script = usual if usual in ("Hans", "Hant", "Jpan", "Kore") else script
    return _FAMILIES.get(script, script)


def is_language(code: str) -> bool:
    """Whether it is the code of a language in Unicode's data, and no common suffix of files such as txt."""
    language = read_code(code).language
    return code.lower() not in _OTHER_MEANINGS and (likely_script(language) != "" or language in _CLDR["names"])


def is_suffix_of_language(suffix: str) -> bool:
    """Whether a file with this suffix is in the language of that code. A language that has three letters and no name in
    CLDR is less likely than another meaning, unless a script follows it."""
    language, script, _ = read_code(suffix)
    is_usual = len(language) == 2 or script != "" or language in _CLDR["names"]
    return is_usual and is_language(suffix) and suffix.lower() not in _SUFFIXES


def english_name(code: str) -> str:
    """`de` to `German`, `pt-BR` to `Portuguese (Brazil)`; a code without a name stays as it is."""
    parts = read_code(code)
    name = _CLDR["names"].get(code.lower()) or _CLDR["names"].get(parts.language)
    if name is None or not is_language(code):
        return code
    details = [SCRIPT_NAMES.get(parts.script), _CLDR["regions"].get(parts.region)]
    return f"{name} ({', '.join(filter(None, details))})" if any(details) else name


def check_languages(codes: Iterable[str]) -> None:
    """Raises UserError for a code that isn't that of a language."""
    for code in codes:
        if not is_language(code) or re.search(r"[./]", code):
            meant = code_of_name(code)
            raise UserError(
                f"{code}: isn't a language code; {f'did you mean {meant}?' if meant else 'use one such as de'}"
            )


def code_of_name(name: str) -> str | None:
    """`German`, in capitals or not, to `de`; None if it isn't the English name of a language in Unicode's data."""
    return next((code for code, known in _CLDR["names"].items() if known.lower() == name.lower()), None)


def same_language(code: str, known: Iterable[str]) -> str | None:
    """The code in `known` with the same language and script and no conflicting region, or None. Of several, prefers one
    spelled alike, then one with the same parts, then one without a region."""
    wanted = read_code(code)

    def is_meant(other: str) -> bool:
        language, _, region = read_code(other)
        return (
            language == wanted.language
            and (region == wanted.region or not (region and wanted.region))
            and script_family(other) == script_family(code)
        )

    def distance(other: str) -> tuple[bool, ...]:
        alike = other.lower().replace("_", "-") == code.lower().replace("_", "-")
        return other != code, not alike, read_code(other) != wanted, read_code(other).region != ""

    return min(filter(is_meant, known), key=distance, default=None)
