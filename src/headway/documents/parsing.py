"""A text as sentences for the model, and back: white space, paragraphs, tags and addresses stay where they were.

The model gets the words of a sentence alone. What stands among them, such as a tag or an emoji, is put into the
translation beside the words that it was beside (`translator/placing.py`). Where that can't be told, the words between
are translated by themselves, so that everything comes back whatever the model does. Protected text in the middle, such
as an address, is among the words: a translator keeps it.

Nothing here calls a model. The caller asks one for the `wholes` of `Drafts`, then for the `runs`, and reads what is
`joined`.
"""

import re
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, repeat
from typing import Generic, Literal, NamedTuple, TypeVar

from headway.documents.markup import blocks_of, elements_of, escape, tag_name
from headway.documents.sentences import marker_length, sentence_ends
from headway.text.protected import (
    Atom,
    Element,
    edges,
    has_end,
    has_words,
    runs_of,
    split_protected,
    with_protected,
    with_runs,
    without_stop,
)
from headway.translator.placing import Alignment, TagLayout, tag_pairs

TextFormat = Literal["text", "html"]
Form = TypeVar("Form")
_LINE_BREAKS = re.compile(r"((?:\r?\n|\u2029)+)")


@dataclass
class Sentence:
    """One sentence, without the white space around it."""

    elements: list[Element]
    layout: TagLayout | None = None
    """Form in which the model gets the whole sentence; None if it can get only its runs."""

    @property
    def whole(self) -> str | None:
        """The plain text of the sentence, as the model gets it."""
        return self.layout and self.layout.plain

    @property
    def runs(self) -> list[str]:
        """The words between its atoms, as `runs_of` finds them."""
        return runs_of(self.elements)

    def from_whole(self, translation: str, alignment: Alignment = (), prefix: int = 0) -> list[Element] | None:
        """The translation with all atoms; None if some can't be placed. alignment: of the translation and
        `whole`, which is preceded by `prefix` characters. A full stop is left out where a tag holds the end."""
        if self.layout is None:
            return None
        if has_end("".join(one for one in self.elements if isinstance(one, str))) and not has_end(self.layout.plain):
            translation = without_stop(translation)
        return self.layout.placed(translation, alignment, prefix)

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
        parts = ([part] if isinstance(part, str) else map(self.shown, next(following)) for part in self.parts)
        return "".join(chain.from_iterable(parts))

    def shown(self, element: Element) -> str:
        """An element as it stands in the text."""
        if isinstance(element, Atom):
            return element.raw
        return escape(element) if self.format == "html" else element


def parse_document(
    text: str, format_: TextFormat, language: str, is_readable: Callable[[str], bool] = lambda _: True
) -> Document:
    """Cuts a text in `language` so that the model can read each piece, as far as `is_readable` says."""
    document = Document(format_)
    if format_ == "html":
        blocks = blocks_of(text)
    else:
        blocks = [part if place % 2 else [*elements_of(part)] for place, part in enumerate(_LINE_BREAKS.split(text))]
    for block in blocks:
        if isinstance(block, str):
            document.parts.append(block)
            continue
        shown = "".join(one.stand_in if isinstance(one, Atom) else one for one in block)
        marker = marker_length(shown, language)
        ends = [marker + end for end in sentence_ends(shown[marker:], language)]
        pieces = _cut(block, [marker, *ends] if marker else ends)
        document.parts += map(document.shown, pieces.pop(0) if marker else [])
        for elements in pieces:
            before, core, after = _trimmed(elements)
            document.parts += map(document.shown, before)
            document.parts += _readable_parts(core, document, is_readable) if core else []
            document.parts += map(document.shown, after)
    return document


def _cut(elements: Sequence[Element], ends: Sequence[int]) -> list[list[Element]]:
    """Cuts words at these characters, the last of which is the end; an atom is in the piece where it begins."""
    pieces: list[list[Element]] = [[] for _ in ends]
    place, inner = 0, ends[:-1]
    for element in elements:
        end = place + len(element.stand_in if isinstance(element, Atom) else element)
        if isinstance(element, Atom):
            pieces[bisect(inner, place)].append(element)
        else:
            for start, stop in pairwise([place, *inner[bisect(inner, place) : bisect_left(inner, end)], end]):
                pieces[bisect(inner, start)].append(element[start - place : stop - place])
        place = end
    return pieces


def _trimmed(elements: list[Element]) -> tuple[list[Element], list[Element], list[Element]]:
    """What is before the sentence, the sentence, what is after it. It goes from the first words to the last, or to the
    punctuation that follows them, with the partners of the tags in it. Syntax that a translator keeps counts as
    words."""
    words = [place for place, one in enumerate(elements) if isinstance(one, str) and has_words(one)]
    if not words:
        return elements, [], []
    syntax = [place for place, one in enumerate(elements) if isinstance(one, Atom) and one.is_syntax]
    first = min([words[0], *syntax])
    last = max([*syntax, *(place for place, one in enumerate(elements) if isinstance(one, str) and edges(one)[1])])
    for opening, closing in tag_pairs(elements, tag_name):
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
    elements: list[Element], document: Document, is_readable: Callable[[str], bool]
) -> list[str | Sentence]:
    """One sentence; or, where the model can't read it as a whole, more of its parts."""
    spoken = with_protected(elements, lambda atom: atom.words is None)
    layout = TagLayout.of(spoken, tag_name)
    if layout is not None and is_readable(layout.plain):
        return [Sentence(spoken, layout)]
    runs: list[Element] = []
    for one in elements:
        runs += [one] if isinstance(one, Atom) or not has_words(one) else _readable_runs(one, is_readable)
    if runs == elements:
        return [Sentence(elements)]
    parts: list[str | Sentence] = []
    for one in runs:
        if isinstance(one, Atom) or not has_words(one):
            parts.append(document.shown(one))
        else:
            start, words, end = edges(one)
            parts += [start, Sentence([words], TagLayout.of([words], tag_name)), end]
    return parts


def _readable_runs(words: str, is_readable: Callable[[str], bool]) -> list[str]:
    """Words in pieces that the model can read, cut at the white space nearest to the middle, or in the middle."""
    if len(words) < 2 or is_readable(words):
        return [words]
    middle = len(words) // 2
    spaces = [match.end() for match in re.finditer(r"\s+", words) if 0 < match.end() < len(words)]
    place = min(spaces, key=lambda one: abs(one - middle), default=middle)
    return _readable_runs(words[:place], is_readable) + _readable_runs(words[place:], is_readable)


class Found(NamedTuple, Generic[Form]):
    """Translations of a sentence or of a document, as text or as elements."""

    texts: list[Form]
    """Its translation, and others after it."""
    truncated: bool
    """Whether a translation was cut off because it came to be as long as the model allows."""
    confidence: float | None = None
    """How likely the first translation is acceptable; of a text, its least likely sentence. None: nobody asked, or a
    sentence with words has none."""
    out_of_domain: bool = False
    """Whether a sentence is unlike the text that the model was calibrated on."""
    alignments: Sequence[Alignment] = ()
    """Alignment of each of `texts`, if asked for."""


class Asked(NamedTuple):
    """A text to translate."""

    document: int
    """The number of its document."""
    text: str
    aligned: bool = False
    """Whether to return the alignments of its translations."""


class Drafts:
    """Documents, and their translations as far as they are known."""

    def __init__(self, documents: Sequence[Document], prefixes: Iterable[str] = repeat("")) -> None:
        """prefixes: for each document, what stands before each of its sentences."""
        self._documents = documents
        numbered = enumerate(zip(documents, prefixes, strict=False))
        self._sentences = [(number, prefix, one) for number, (whole, prefix) in numbered for one in whole.sentences]
        """Each with the number of its document, and what stands before it."""
        self._found: list[Found[list[Element]] | None] = [None] * len(self._sentences)

    @property
    def wholes(self) -> list[Asked]:
        """Sentences to translate as a whole, the first pass."""
        return [
            Asked(number, prefix + one.layout.plain, one.layout.needs_alignment)
            for number, prefix, one in self._sentences
            if one.layout is not None
        ]

    def take_wholes(self, found: Iterable[Found[str]]) -> None:
        """found: one for each of `wholes`."""
        following = iter(found)
        self._found = [
            None if one.layout is None else _by_whole(one, next(following), len(prefix))
            for _, prefix, one in self._sentences
        ]

    @property
    def runs(self) -> list[Asked]:
        """Words between tags to translate by themselves, the second pass: those of sentences whose tags can't be placed
        in the translation of the whole, or that the model can't read as a whole."""
        return [
            Asked(number, prefix + run.strip())
            for (number, prefix, sentence), known in zip(self._sentences, self._found, strict=True)
            if known is None
            for run in sentence.runs
        ]

    def take_runs(self, found: Iterable[Found[str]]) -> None:
        """found: one for each of `runs`."""
        following = iter(found)
        self._found = [
            known or _by_runs(sentence, [next(following) for _ in sentence.runs])
            for (*_, sentence), known in zip(self._sentences, self._found, strict=True)
        ]

    def joined(self, n_best: int = 1) -> list[Found[str]]:
        """Each document, once all is taken: with the best translation of each sentence, with the second of each, and so
        on; each text once."""
        assert None not in self._found, "wholes and runs are to be taken first"
        known = iter([one for one in self._found if one is not None])
        answers = []
        for document in self._documents:
            sentences = [next(known) for _ in document.sentences]
            texts = [
                document.joined([one.texts[min(number, len(one.texts) - 1)] for one in sentences])
                for number in range(n_best)
            ]
            answers.append(Found(list(dict.fromkeys(texts)), *_together(sentences)))
        return answers


def _by_whole(sentence: Sentence, found: Found[str], prefix: int) -> Found[list[Element]] | None:
    """None if no translation has a place for each tag. prefix: characters before the sentence in the text asked for."""
    aligned = zip(found.texts, found.alignments or repeat(()), strict=False)
    placed = [sentence.from_whole(text, alignment, prefix) for text, alignment in aligned]
    translations = [one for one in placed if one is not None]
    return Found(translations, *found[1:4]) if translations else None


def _by_runs(sentence: Sentence, found: Sequence[Found[str]]) -> Found[list[Element]]:
    translations = [sentence.from_runs(each) for each in zip(*(one.texts for one in found), strict=False)]
    with_words = [one for run, one in zip(sentence.runs, found, strict=True) if runs_of(split_protected(run))]
    return Found(translations, *_together(with_words))


def _together(parts: Sequence[Found[Form]]) -> tuple[bool, float | None, bool]:
    """What is said of several parts with words as one: `truncated`, `confidence` and `out_of_domain`."""
    known = [one.confidence for one in parts if one.confidence is not None]
    confidence = min(known) if known and len(known) == len(parts) else None
    return any(one.truncated for one in parts), confidence, any(one.out_of_domain for one in parts)
