"""A text as sentences for the model, and back: white space, paragraphs, tags and addresses stay where they were.

What stands in the middle of a sentence, such as a tag or an emoji, travels as a mark: ⟦0⟧. A model that was trained to
copy such marks keeps the sentence whole. Where a mark is lost, doubled, or tags change their order, the words between
the marks are translated by themselves, so that whatever the model does every atom comes back. Protected text in the
middle, such as an address, is among the words: a translator keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import sentencex

from headway.documents.elements import elements_of
from headway.documents.markup import blocks_of, escape, tag_pairs
from headway.languages import read_code
from headway.text.protected import Atom, Element, edges, has_words, runs_of, with_runs

TextFormat = Literal["text", "html"]
_LINE_BREAKS = re.compile(r"([\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+)")
_MARK = re.compile(r"⟦(\d{1,4})⟧")
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")
"""White space that isn't ASCII."""


@dataclass
class Sentence:
    """One sentence, without the white space around it."""

    elements: list[Element]
    whole: str | None = None
    """What the model gets: the sentence, with marks for its atoms; None where only its runs can be given."""

    @property
    def runs(self) -> list[str]:
        """The words between its atoms, as `runs_of` finds them."""
        return runs_of(self.elements)

    def from_whole(self, translation: str) -> list[Element] | None:
        """The translation with atoms in place of the marks; None where not each is there once, tags in order."""
        atoms = [one for one in self.elements if isinstance(one, Atom)]
        if not atoms:
            return [translation]
        parts = _MARK.split(translation)  # words and numbers in turns
        numbers = [int(number) for number in parts[1::2]]
        tags = [number for number in numbers if number < len(atoms) and atoms[number].in_order]
        if sorted(numbers) != list(range(len(atoms))) or tags != sorted(tags):
            return None
        return [atoms[int(part)] if place % 2 else part for place, part in enumerate(parts)]

    def from_runs(self, translations: Sequence[str]) -> list[Element]:
        """The same from the translations of its runs."""
        return with_runs(self.elements, translations)


@dataclass
class Document:
    """A text, cut into sentences and what is between them."""

    format: TextFormat
    parts: list[str | Sentence] = field(default_factory=list)
    """Sentences, and what stays as it stands."""

    @property
    def sentences(self) -> list[Sentence]:
        return [part for part in self.parts if isinstance(part, Sentence)]

    def joined(self, translated: Sequence[Sequence[Element]]) -> str:
        """The whole, from the translation of each sentence."""
        following = iter(translated)
        return "".join(part if isinstance(part, str) else self._shown(next(following)) for part in self.parts)

    def _shown(self, elements: Sequence[Element]) -> str:
        return "".join(one.raw if isinstance(one, Atom) else _words(one, self.format) for one in elements)


def parse_document(
    text: str, format_: TextFormat, language: str, is_readable: Callable[[str], bool] = lambda _: True
) -> Document:
    """Cuts a text in `language` so that the model can read each piece, as far as `is_readable` says."""
    document = Document(format_)
    for block in _blocks(text, format_):
        if isinstance(block, str):
            document.parts.append(block)
            continue
        for elements in _sentences(block, language):
            before, core, after = _trimmed(elements)
            document.parts += [_raw(one, format_) for one in before]
            if core:
                document.parts += _readable_parts(core, format_, is_readable)
            document.parts += [_raw(one, format_) for one in after]
    return document


def _blocks(text: str, format_: TextFormat) -> Iterator[str | list[Element]]:
    if format_ == "html":
        yield from blocks_of(text)
        return
    for place, part in enumerate(_LINE_BREAKS.split(text)):
        yield part if place % 2 else list(elements_of(part))


def _sentences(elements: Sequence[Element], language: str) -> Iterator[list[Element]]:
    """Cuts words where a sentence ends; an atom is in the sentence where it begins."""
    skeleton = "".join(one.stand_in if isinstance(one, Atom) else one for one in elements)
    ends, end = [], 0
    for segment in _segments(skeleton, language):
        end += len(segment)
        ends.append(end)
    assert end == len(skeleton)
    sentence: list[Element] = []
    place, boundaries = 0, iter(ends)
    boundary = next(boundaries, len(skeleton))
    for element in elements:
        words = element
        while isinstance(words, str) and place + len(words) > boundary:
            sentence.append(words[: boundary - place])
            words = words[boundary - place :]
            place = boundary
            yield sentence
            sentence, boundary = [], next(boundaries, len(skeleton))
        sentence.append(words)
        place += len(words.stand_in if isinstance(words, Atom) else words)
        while place >= boundary and boundary < len(skeleton):
            yield sentence
            sentence, boundary = [], next(boundaries, len(skeleton))
    if sentence:
        yield sentence


def _segments(skeleton: str, language: str) -> list[str]:
    """Its sentences; joined they are as long as the whole."""
    try:
        # It panics at a white space of several bytes after an initial, as in "Plan B .", and prints where.
        return list(sentencex.segment(read_code(language).language, _WIDE_SPACE.sub(" ", skeleton)))  # type: ignore[attr-defined]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of Rust is no Exception
        return [skeleton]


def _trimmed(elements: list[Element]) -> tuple[list[Element], list[Element], list[Element]]:
    """What is before the sentence, the sentence, what is after it. It goes from the first words to the last, or to the
    punctuation that follows them, with the partners of the tags in it."""
    words = [place for place, one in enumerate(elements) if isinstance(one, str) and has_words(one)]
    if not words:
        return elements, [], []
    first = words[0]
    last = max(place for place, one in enumerate(elements) if isinstance(one, str) and one.strip())
    for opening, closing in tag_pairs(elements):
        if first <= opening <= last or first <= closing <= last:
            first, last = min(first, opening), max(last, closing)
    core = elements[first : last + 1]
    start = end = ""
    if isinstance(core[0], str):
        start, *_ = edges(core[0])
        core[0] = core[0][len(start) :]
    if isinstance(core[-1], str):
        *_, end = edges(core[-1])
        core[-1] = core[-1][: len(core[-1]) - len(end)]
    return [*elements[:first], start], core, [end, *elements[last + 1 :]]


def _readable_parts(
    elements: list[Element], format_: TextFormat, is_readable: Callable[[str], bool]
) -> list[str | Sentence]:
    """One sentence; or, where the model can't read it as a whole, more of its parts."""
    spoken = _with_protected(elements)
    number = iter(range(len(spoken)))
    whole = "".join(f"⟦{next(number)}⟧" if isinstance(one, Atom) else one for one in spoken)
    marked = any(isinstance(one, str) and _MARK.search(one) for one in spoken)
    if not marked and is_readable(whole):
        return [Sentence(spoken, whole)]
    runs: list[Element] = []
    for one in elements:
        runs += [one] if isinstance(one, Atom) or not has_words(one) else _readable_runs(one, is_readable)
    if runs == elements:
        return [Sentence(elements)]
    parts: list[str | Sentence] = []
    for one in runs:
        if isinstance(one, Atom):
            parts.append(one.raw)
            continue
        start, words, end = edges(one)
        inner = Sentence([words], words) if has_words(words) else _words(words, format_)
        parts += [start, inner, end]
    return parts


def _with_protected(elements: Sequence[Element]) -> list[Element]:
    """The elements with protected text among the words around it."""
    joined: list[Element] = []
    for one in elements:
        words = one if isinstance(one, str) else one.words
        last = joined[-1] if joined else None
        if words is not None and isinstance(last, str):
            joined[-1] = last + words
        else:
            joined.append(one if words is None else words)
    return joined


def _readable_runs(words: str, is_readable: Callable[[str], bool]) -> list[str]:
    """Words in pieces that the model can read, cut at the white space nearest to the middle, or in the middle."""
    if len(words) < 2 or is_readable(words):
        return [words]
    middle = len(words) // 2
    spaces = [match.end() for match in re.finditer(r"\s+", words) if 0 < match.end() < len(words)]
    place = min(spaces, key=lambda one: abs(one - middle), default=middle)
    return _readable_runs(words[:place], is_readable) + _readable_runs(words[place:], is_readable)


def _words(words: str, format_: TextFormat) -> str:
    return escape(words) if format_ == "html" else words


def _raw(element: Element, format_: TextFormat) -> str:
    return element.raw if isinstance(element, Atom) else _words(element, format_)
