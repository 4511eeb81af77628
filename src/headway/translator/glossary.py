"""Glossaries: terms of the source, and what a translation must have where they stand."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from headway.data.corpus import read_lines
from headway.errors import UserError
from headway.text.characters import HALF_PAIR, as_texts, is_blank, is_unicode, visible

KEY = 3
"""Characters that terms are found by."""

_WITHOUT_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
"""Scripts that put no space between words: Thai, Lao, Burmese, Khmer, Kana, Han."""
_HANGUL = "\uac00-\ud7a3"
_PARTICLES = re.compile(
    r"(?:들|님|씨)?(?:"
    "께서는|께서도|에서부터|으로부터|로부터|에게서|한테서|에서는|에서도|에서의|에서만|에게는|에게도|으로는|으로도|으로서|으로써|"
    "까지는|까지도|부터는|만으로|만으로도|"
    "은|는|이|가|을|를|의|에|에는|에도|에만|와|과|와의|과의|와는|과는|로|로는|로도|로서|로써|으로|도|만|만은|만을|만이|"
    "에서|에게|께|께서|한테|더러|부터|까지|처럼|같이|보다|마다|조차|마저|밖에|이나|나|이란|란|이라|라|이라고|라고|이라는|라는|"
    "이며|며|이고|고|하고|이랑|랑|아|야|여|이여|인|일|입니다|입니까|이다|다|이에요|예요|였다|이었다|였습니다|이었습니다|이지만|지만"
    r")?(?!\w)"
)
"""Endings that may follow a noun in a Korean word: a suffix for number or honour, particles, and forms of 이다."""


@dataclass(frozen=True)
class Term:
    """A line of a glossary."""

    source: str
    target: str


@dataclass(frozen=True)
class Glossary:
    """Terms, each source once."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """From sources and targets. White space around them and invisible characters are left out. Raises UserError,
        and TypeError for what isn't pairs of texts."""
        targets: dict[str, str] = {}
        for number, pair in enumerate(pairs, start=1):
            sides = [pair] if isinstance(pair, str) else as_texts(pair, f"glossary: term {number}, side")
            if len(sides) != 2:
                raise TypeError(f"glossary: term {number} must be a source and a target, not {pair!r}")
            source, target = map(_normal, sides)
            if is_blank(source) or is_blank(target):
                raise UserError(f"glossary: {source!r} with {target!r} needs text on both sides")
            if not is_unicode(source + target):
                raise UserError(f"glossary: {source!r} with {target!r} {HALF_PAIR}")
            if targets.setdefault(source, target) != target:
                raise UserError(f"glossary: {source!r} has two targets, {targets[source]!r} and {target!r}; keep one")
        return cls(tuple(Term(source, target) for source, target in targets.items()))

    @classmethod
    def parse(cls, lines: Iterable[str], name: str) -> Self:
        """From lines of a source term, a TAB and a target term, or blank. name: of the lines. Raises UserError."""
        pairs = []
        for number, line in enumerate(lines, start=1):
            if is_blank(line):
                continue
            sides = line.split("\t")
            if len(sides) != 2 or any(map(is_blank, sides)):
                raise UserError(f"{name}, line {number}: must be a source term, a TAB and a target term")
            pairs.append((sides[0], sides[1]))
        return cls.of(pairs)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Parses a file of such lines. Raises UserError."""
        return cls.parse(read_lines(path), str(path))

    @cached_property
    def _index(self) -> dict[str, list[Term]]:
        """Terms by their first characters: long ones first, and of equally long ones those with more capitals."""
        index: dict[str, list[Term]] = {}
        for term in sorted(self.terms, key=lambda one: (-len(one.source), sum(map(str.islower, one.source)))):
            index.setdefault(term.source[:KEY].lower(), []).append(term)
        return index

    def find(self, text: str) -> list[Term]:
        """The terms of a text, in their order: at each place the longest that fits, none inside of another."""
        text, found, place = _normal(text), [], 0
        while place < len(text):
            if term := self._at(text, place):
                found.append(term)
            place += len(term.source) if term else 1
        return found

    def _at(self, text: str, place: int) -> Term | None:
        if text[place].isspace() or (place and _joined(text[place - 1], text[place])):
            return None
        key = text[place : place + KEY].lower()
        for length in range(len(key), 0, -1):
            for term in self._index.get(key[:length], ()):
                end = place + len(term.source)
                if _fits(term.source, text[place:end]) and _may_end(text, end):
                    return term
        return None


def _normal(text: str) -> str:
    """The text as a model sees it, in NFC, with one space between words."""
    return " ".join(unicodedata.normalize("NFC", visible(text)).split())


def follows_freely(text: str) -> bool:
    """Whether letters may follow the text without being a part of its last word: after Hangul particles may, and
    scripts without spaces begin their next word."""
    return re.search(f"[{_HANGUL}{_WITHOUT_SPACES}]\\Z", text) is not None


def goes_on(char: str) -> bool:
    """Whether a word goes on with this letter or digit where nothing parts them. Hangul may be a particle after any
    text, and a letter of a script without spaces begins a word."""
    return char.isalnum() and not follows_freely(char)


def begins_anywhere(text: str) -> bool:
    """Whether the text begins in a script without spaces."""
    return re.match(f"[{_WITHOUT_SPACES}]", text) is not None


def _fits(term: str, text: str) -> bool:
    """A letter in lower case is itself or its capital, a capital itself alone."""
    return len(term) == len(text) and all(one in (other, other.lower()) for one, other in zip(term, text, strict=True))


def _may_end(text: str, place: int) -> bool:
    """Whether a word ends here, or nothing but particles follows."""
    return place == len(text) or not _joined(text[place - 1], text[place]) or bool(_PARTICLES.match(text, place))


def _joined(*chars: str) -> bool:
    """Whether two characters are of one word."""
    of_words = (char.isalnum() or char == "_" or unicodedata.combining(char) > 0 for char in chars)
    return all(of_words) and not any(map(begins_anywhere, chars))
