"""Puts syntax back into a translation: a link or a tag encloses the words that are aligned with its own.

The model gets the words of a text without the syntax between them, because it seldom translates well what has any.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from headway.text.protected import Atom, Element, has_words
from headway.text.words import word_spans
from headway.translator.translation import Translation

MOST_ENCLOSED = 100
"""Most links and tags of a text: each is compared with every other."""


@dataclass(frozen=True)
class Enclosed:
    """A link or a tag, and the place of its words."""

    opening: str
    closing: str
    start: int
    end: int
    """Its characters in the text without syntax."""


@dataclass(frozen=True)
class WithoutSyntax:
    """A text without its links and tags, and where they were."""

    text: str
    enclosed: Sequence[Enclosed]
    """In the order of their ends, so that one comes after those in it."""

    @classmethod
    def of(cls, parts: Sequence[Element]) -> WithoutSyntax | None:
        """parts: words and syntax. None if some syntax encloses no words or is neither link nor tag, or there is too
        much."""
        text = ""
        opened: list[tuple[str, int]] = []
        enclosed: list[Enclosed] = []
        for part in parts:
            if not isinstance(part, Atom):
                text += part
            elif _name(part.raw) and not part.raw.startswith(("]", "</")):
                opened.append((part.raw, len(text)))
            elif opened and _name(part.raw) == _name(opened[-1][0]) and has_words(text[opened[-1][1] :]):
                enclosed.append(Enclosed(opened[-1][0], part.raw, opened.pop()[1], len(text)))
            else:
                return None
        return cls(text, enclosed) if not opened and 0 < len(enclosed) <= MOST_ENCLOSED else None

    def put_back(self, translation: Translation) -> str | None:
        """The translation with the syntax; None if some can't be placed."""
        words = word_spans(translation.text)
        linked: dict[int, set[int]] = {}
        for source, target in translation.word_links:
            linked.setdefault(target, set()).add(source)
        runs: list[tuple[int, int]] = []
        inserted: list[tuple[int, int, int, str]] = []  # character, closing before opening, order of them, what
        for number, one in enumerate(self.enclosed):
            run = self._run(one, linked, len(words))
            if run is None or not all(self._fits(one, run, *other) for other in zip(self.enclosed, runs, strict=False)):
                return None
            runs.append(run)
            start, end = self._without_punctuation(one, translation.text, words[run[0]][0], words[run[1]][1])
            inserted += [(end, 0, number, one.closing), (start, 1, -number, one.opening)]
        made = translation.text
        for place, _, _, syntax in sorted(inserted, reverse=True):
            made = made[:place] + syntax + made[place:]
        return made

    def _run(self, one: Enclosed, linked: dict[int, set[int]], words: int) -> tuple[int, int] | None:
        """The first and the last word of the longest run of words that are aligned with its own."""
        spans = word_spans(self.text)
        own = {number for number, (start, end) in enumerate(spans) if start < one.end and one.start < end}
        if all(number in own or not has_words(self.text[slice(*span)]) for number, span in enumerate(spans)):
            return (0, words - 1) if words else None
        runs: list[list[int]] = [[]]
        for target in range(words):
            if linked.get(target, set()) & own:
                runs[-1].append(target)
            elif target in linked:
                runs.append([])
        best = max(runs, key=len)
        return (best[0], best[-1]) if best else None

    def _without_punctuation(self, one: Enclosed, text: str, start: int, end: int) -> tuple[int, int]:
        """Start and end without the punctuation around the words, if the source has none there."""
        own = self.text[one.start : one.end].strip()
        while start < end - 1 and _is_punctuation(text[start]) and not _is_punctuation(own[0]):
            start += 1
        while start < end - 1 and _is_punctuation(text[end - 1]) and not _is_punctuation(own[-1]):
            end -= 1
        return start, end

    @staticmethod
    def _fits(one: Enclosed, run: tuple[int, int], other: Enclosed, its: tuple[int, int]) -> bool:
        """Whether an earlier one is inside this one if it was in the source, and apart from it otherwise."""
        if one.start <= other.start:
            return run[0] <= its[0] and its[1] <= run[1]
        return its[1] < run[0] or run[1] < its[0]


def _name(syntax: str) -> str:
    """The name that an opening and a closing one share; empty for other syntax."""
    if "[" in syntax[:2] or syntax[0] == "]":
        return "["
    tag = re.match(r"</?([\w:.\-]+)", syntax)
    return tag[1] if tag and not syntax.endswith("/>") else ""


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P"
