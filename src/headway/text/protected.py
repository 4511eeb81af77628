"""Protected text: placeholders, code and addresses, which a translation has exactly as its source does.

The model gets it as it stands, and its translation is searched among those that have it. Where there is none, the
words between are translated by themselves, so that whatever a model does nothing that is protected gets lost.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_IN_URL = rf"{_LATIN}\d\-._~:/?\#\[\]@!$&'*+,;=%"
_ADDRESS = rf"""
    (?i: https?:// | ftp:// | www\. )
    (?: [{_IN_URL}] | \( [{_IN_URL}]* \) )*
    (?: [{_LATIN}\d/\#=%_~\-] | \( [{_IN_URL}]* \) )
  | (?<![\w.+\-]) [\w.+\-]{{1,64}} @ [{_LATIN}\d\-]{{1,63}} (?: \. [{_LATIN}\d\-]{{1,63}} ){{1,8}}
"""
"""URLs, with parentheses if they are closed in them, and e-mail addresses."""
_PLACEHOLDER = rf"""
    `[^`\n]+`
  | [$\#]? \{{\{{ [^{{}}\n]* \}}\}}
  | [$\#]? \{{ [^{{}}\s]* \}}
  | (?<![\d%]) % (?: \d+\$ | \(\w+\) )? [\-+\#0]? (?: \d+ | \* )? (?: \.\d+ )?
    (?: hh? | ll? )? [@diouxXeEfgGcrsa] (?![{_LATIN}\d])
  | (?<![A-Z]) \$ (?P<number> [1-9]\d? ) (?! [\d.,]*\d | \s? (?i: hundred | thousand | tausend | [mb]illi | trilli ) )
"""
"""Code in backticks; {{name}}, {{0}}, ${{name}}; %s, %(x)d, %1$s; $1, but not $1.50, US$1 or $1 million."""
_PROTECTED = re.compile(f"{_ADDRESS}|{_PLACEHOLDER}", re.VERBOSE)
_LIKELY = re.compile(r"[@{%$`]|://|(?i:www)\.")
"""What any protected text has a part of: far faster to look for."""


@dataclass(frozen=True)
class Atom:
    """A part of a text that isn't translated."""

    raw: str
    """As it stands in the text and in the answer."""
    stand_in: str
    """What stands for it where sentences are looked for."""
    in_order: bool = False
    """Whether it must stay in its order with others of the kind, as tags must."""
    words: str | None = None
    """What the model gets of it, for protected text, which a translator keeps; None: a mark."""


Element: TypeAlias = str | Atom
"""Words, or what is between them."""


def split_protected(text: str) -> list[Element]:
    """The text with what is protected as atoms; joined again they are the text."""
    if _LIKELY.search(text) is None:
        return [text] if text else []
    elements: list[Element] = []
    end = 0
    for match in _matches(text):
        if match.start() > end:
            elements.append(text[end : match.start()])
        found = match.group()
        elements.append(Atom(found, "x" * len(found), words=found))
        end = match.end()
    return [*elements, text[end:]] if end < len(text) else elements


def _matches(text: str) -> list[re.Match[str]]:
    """What is protected. Placeholders like $1 count from 1; a number that lacks the ones before it is a price."""
    found = list(_PROTECTED.finditer(text))
    numbers = {int(match["number"]) for match in found if match["number"]}
    missing = next(number for number in itertools.count(1) if number not in numbers)
    return [match for match in found if match["number"] is None or int(match["number"]) < missing]


def has_words(text: str) -> bool:
    """Whether there is anything to translate: a letter or a digit."""
    return any(map(str.isalnum, text))


def joined(elements: Iterable[Element]) -> str:
    """The text of which they are the elements."""
    return "".join(one.raw if isinstance(one, Atom) else one for one in elements)


def runs_of(elements: Iterable[Element]) -> list[str]:
    """What is translated of the words between atoms, those that hold any: from the first word on, up to the last one;
    at the end of the text with the punctuation there."""
    return [core for _, core, _ in _parts(elements) if core]


def with_runs(elements: Iterable[Element], translations: Iterable[str]) -> list[Element]:
    """The elements with translations in place of their runs. Models end a translation with a full stop; one before an
    atom is left out, because the text has its own punctuation there."""
    elements, following = list(elements), iter(translations)
    made: list[Element] = []
    for place, (element, (before, core, after)) in enumerate(zip(elements, _parts(elements), strict=True), start=1):
        if not core:
            made.append(element)
            continue
        translation = next(following)
        if place < len(elements):
            translation = translation.rstrip(" .\u3002") or translation
        made.append(f"{before}{translation}{after}")
    return made


def _parts(elements: Iterable[Element]) -> list[tuple[str, str, str]]:
    """Of each element what is before its words, the words, and what is after them; nothing of an atom or of an element
    without words. At the end of the text its punctuation counts as words, and so does protected text: the elements of a
    document are parted at its tags alone."""
    elements = list(elements)
    parts: list[tuple[str, str, str]] = []
    for place, one in enumerate(elements, start=1):
        if isinstance(one, Atom) or not has_words(one):
            parts.append(("", "", ""))
            continue
        shown = "".join(part.stand_in if isinstance(part, Atom) else part for part in split_protected(one))
        of_words = [at for at, char in enumerate(shown) if unicodedata.category(char)[0] in "LMN"]
        start, end = of_words[0], len(one.rstrip()) if place == len(elements) else of_words[-1] + 1
        parts.append((one[:start], one[start:end], one[end:]))
    return parts


def edges(words: str) -> tuple[str, str, str]:
    """White space before words, the words, white space after them."""
    start, end = len(words) - len(words.lstrip()), len(words.rstrip())
    return words[:start], words[start:end], words[max(start, end) :]
