"""Filters that drop single pairs of a corpus. Duplicates are found by `data.encoding`, which sees all earlier pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from headway.errors import UserError, needing_extra
from headway.languages import SCRIPT_NAMES, script_family
from headway.text.detection import lingua_detector, lingua_language, script_of, script_of_character
from headway.text.protected import split_protected

if TYPE_CHECKING:
    from headway.data.options import FiltersSection

Test = Callable[[str, str], bool]
"""Whether to drop a pair of source and target."""

_LATIN = r"a-zA-Z\u00c0-\u024f"
_WORDS = re.compile(rf"[{_LATIN}]+|[^\W\d_{_LATIN}]+")
"""Runs of letters; particles of other scripts follow Latin names without a space."""
_ALONE = re.compile(rf"(?<![^\s\"'(\[,;|-])[{_LATIN}]{{2,}}(?![^\s\"')\],;:!?.\u2026|-])(?![.:]\w)")
"""Latin words between white space and punctuation, which parts of names and of code aren't."""
_PHRASE = re.compile(rf"\b[{_LATIN}]{{3,}} [{_LATIN}]{{2,}}\b")
_KEYS = re.compile(r"\b(?:Ctrl|Shift|Alt|Command|Cmd|Option|Enter|Return|Space|Tab|Del|Delete|(?:Page )?(?:Up|Down))\b")
_ACCELERATOR = re.compile(rf"\([_&][{_LATIN}\d]\)|[_&](?=[{_LATIN}])")
"""The letter that a Korean menu has in parentheses, or the mark before one in a word."""
SYLLABLE_LETTERS = 3
"""Latin letters that say about as much as a syllable or an ideograph."""
SHORT_CHARACTERS = 20
"""Sides that aren't longer have no meaningful ratio."""
LEAST_JUDGED = 30
"""Letters of a text whose language lingua tells well enough; most shorter texts that it rejects are good."""
_SCRIPTS = {"Kore": "HANGUL", "Jpan": "CJK", "Hans": "CJK", "Hant": "CJK", "Beng": "BENGALI", "Orya": "ORIYA"}
"""The names by `script_of` that differ from the English names. It counts kana as CJK."""


def filter_tests(
    filters: FiltersSection, languages: tuple[str, str], held_out: Sequence[tuple[str, str]] = ()
) -> list[tuple[str, Test]]:
    """The chosen filters with their keys, the cheap ones first. languages: codes of source and target. held_out: the
    pairs of validation and test. Raises UserError if a filter doesn't know a language or lacks its package."""
    tests: list[tuple[str, Test]] = []
    if filters.overlap == "pair":
        pairs = {(source.strip(), target.strip()) for source, target in held_out}
        tests.append(("overlap", lambda one, other: (one.strip(), other.strip()) in pairs))
    elif filters.overlap == "side":
        sources, targets = texts_of(held_out, 0), texts_of(held_out, 1)
        tests.append(("overlap", lambda one, other: one.strip() in sources or other.strip() in targets))
    if filters.copies:
        tests.append(("copies", is_untranslated))
    if filters.characters is not None:
        tests.append(("characters", outside(filters.characters, lambda text: len(text.strip()))))
    if filters.words is not None:
        tests.append(("words", outside(filters.words, words)))
    if filters.max_ratio is not None:
        tests.append(("max_ratio", uneven(filters.max_ratio)))
    if filters.script:
        of_source, of_target = (other_script(script_name(code)) for code in languages)
        tests.append(("script", lambda one, other: of_source(one, other) or of_target(other, one)))
    if filters.language is not None:
        tests.append(("language", either(*(_other_language(code, filters.language) for code in languages))))
    return tests


def texts_of(pairs: Iterable[tuple[str, str]], side: int) -> set[str]:
    """The texts of a side, without surrounding white space, but no blank ones."""
    return {pair[side].strip() for pair in pairs} - {""}


def script_name(language: str) -> str:
    """The name by `script_of` for the script of the language. Raises UserError for an unknown language."""
    script = script_family(language)
    if not script:
        raise UserError(
            f"data.filters: {language!r} isn't a known language code; set data.source_language and data.target_language"
        )
    return _SCRIPTS.get(script) or SCRIPT_NAMES.get(script, script).split(" ")[0].upper()


def words(text: str) -> int:
    return len(text.split())


def is_copy(source: str, target: str) -> bool:
    """Whether both are the same text, apart from white space around it."""
    return source.strip() == target.strip()


def is_untranslated(source: str, target: str) -> bool:
    """Whether both are the same text, and it has words to translate."""
    return is_copy(source, target) and has_words_to_translate(_without_protected(source))


def has_words_to_translate(text: str) -> bool:
    """Whether a text has letters that aren't Latin, two words one after the other, or a word in small letters, perhaps
    with a capital first. Code, acronyms and combinations of keys have none: `=SUM(A1)`, `GetBaseName`, `GMT-12`,
    `ISPMT`, `Ctrl+Page Up`."""
    if "+" in text:
        text = _KEYS.sub("", text)
    if script_of(text) not in ("LATIN", "") or _PHRASE.search(text):
        return True
    return any(word in (word.lower(), word.capitalize()) for word in _ALONE.findall(text))


def outside(bounds: tuple[int, int], size: Callable[[str], int]) -> Test:
    """Finds pairs with a side whose size is less than the first bound or more than the second."""
    return lambda *sides: not all(bounds[0] <= size(side) <= bounds[1] for side in sides)


def uneven(most: float, usual: float = 1.0) -> Test:
    """Finds pairs with a side over `most` times as long as the other. usual: that of the corpus, target by source."""

    def test(source: str, target: str) -> bool:
        shorter, longer = sorted((len(source.strip()) * usual, len(target.strip())))
        return longer > SHORT_CHARACTERS and longer > most * shorter

    return test


def either(of_source: Callable[[str], object], of_target: Callable[[str], object]) -> Test:
    """Finds pairs with one side that its test finds."""
    return lambda source, target: bool(of_source(source) or of_target(target))


def other_script(expected: str) -> Test:
    """Finds texts, the first of two sides, whose letters are mostly of another script, by the names of `script_of`. If
    they are, it looks again, without markup, placeholders and addresses, and without words that the other side has,
    such as names. A text of such words alone is found if it `has_words_to_translate`."""
    letters = SYLLABLE_LETTERS if expected in ("HANGUL", "CJK") else 1

    def test(text: str, other: str) -> bool:
        if script_of(text) in (expected, ""):
            return False
        plain = _without_protected(text)
        shared = set(_WORDS.findall(f"{other} {_ACCELERATOR.sub('', _without_protected(other))}".lower()))
        own = "".join(word for word in _WORDS.findall(_ACCELERATOR.sub("", plain)) if word.lower() not in shared)
        if not own:
            return has_words_to_translate(plain) and script_of(plain) != expected
        of_expected = sum(script_of_character(char) == expected for char in own)
        return of_expected * letters < sum(map(str.isalpha, own)) - of_expected

    return test


def _without_protected(text: str) -> str:
    return " ".join(one for one in split_protected(text) if isinstance(one, str))


def _other_language(language: str, least: float) -> Callable[[str], bool]:
    """Finds texts of `LEAST_JUDGED` letters that lingua doesn't assign to the language, among those of its script."""
    with needing_extra("detect"):
        from lingua import Language
    own = lingua_language(language)
    if own is None:
        raise UserError(f"data.filters.language: lingua doesn't know the language {language!r}; leave the filter out")
    codes = sorted(one.iso_code_639_1.name.lower() for one in Language.all())
    script = script_name(language)
    detector = lingua_detector((language, *(code for code in codes if script_name(code) == script)), fast=True)

    def test(text: str) -> bool:
        is_long = sum(map(str.isalpha, text)) >= LEAST_JUDGED
        return is_long and detector.compute_language_confidence(text, own) < least

    return test
