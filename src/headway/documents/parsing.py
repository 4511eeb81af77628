"""A text as sentences for the model, and back: white space, paragraphs, tags and addresses stay where they were.

The model gets the words of a sentence alone. What stands among them, such as a tag or an emoji, is put into the
translation beside the words that it was beside (`translator/placing.py`). Where that can't be told, the words between
are translated by themselves, so that everything comes back whatever the model does. Protected text in the middle, such
as an address, is among the words: a translator keeps it.

Nothing here calls a model. The caller asks one for the `wholes` of `PendingDocuments`, then for the `runs`, and gets
the documents `joined`.
"""

import re
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, repeat
from typing import Generic, Literal, NamedTuple, TypeVar

from headway.errors import needing_extra
from headway.text.protected import (
    Atom,
    Element,
    edges,
    has_end,
    has_letters,
    has_words,
    runs_of,
    split_protected,
    with_protected,
    with_runs,
    without_stop,
)
from headway.translator.aligning import character_links
from headway.translator.placing import Alignment, TagLayout, tag_pairs
from headway.translator.translation import Translation

with needing_extra("documents"):
    from headway.documents.markup import blocks_of, elements_of, escape, tag_name
    from headway.documents.sentences import marker_length, sentence_ends

MOST_TOKENS = 1280
"""Tokens of a sentence, as often as hypotheses are kept of it, that the model gets at most; a longer one is split at a
space. Bounds the time and the memory that one sentence takes."""
TextFormat = Literal["text", "html"]
Form = TypeVar("Form")
_LINE_BREAKS = re.compile(r"((?:\r?\n|\u2029)+)")


@dataclass
class Sentence:
    """One sentence, without the white space around it."""

    elements: list[Element]
    layout: TagLayout | None = None
    """The whole sentence, which the model gets as plain text; None if the model can get only its runs."""

    @property
    def runs(self) -> list[str]:
        """The words between its atoms, as `runs_of` finds them."""
        return runs_of(self.elements)

    def from_whole(self, translation: str, alignment: Alignment = (), prefix: int = 0) -> list[Element] | None:
        """The translation with all atoms; None if some can't be placed. alignment: of the translation and the plain
        text after `prefix` characters. The model's full stop is left out where a tag holds the end of the sentence."""
        if self.layout is None:
            return None
        if has_end("".join(one for one in self.elements if isinstance(one, str))) and not has_end(self.layout.plain):
            translation = without_stop(translation)
        return self.layout.placed(translation, alignment, prefix)


@dataclass
class Document:
    """A text, cut into sentences and what is between them."""

    format: TextFormat
    parts: list[str | Sentence] = field(default_factory=list)
    """Sentences, and text that stays as it stands."""

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
    text: str,
    format_: TextFormat,
    language: str,
    is_readable: Callable[[str], bool] = lambda _: True,
    *,
    of_file: bool = False,
) -> Document:
    """Cuts a text in `language` so that the model can read each piece, as far as `is_readable` says. of_file: whether
    what has no letters outside protected text, such as a number or an address, stays as it is."""
    document = Document(format_)
    if format_ == "html":
        blocks = blocks_of(text)
    else:
        blocks = [part if place % 2 else [*elements_of(part)] for place, part in enumerate(_LINE_BREAKS.split(text))]
    for block in blocks:
        if isinstance(block, str):
            document.parts.append(block)
            continue
        text = "".join(one.stand_in if isinstance(one, Atom) else one for one in block)
        marker = marker_length(text, language)
        marked, *pieces = _cut(block, [marker, *(marker + end for end in sentence_ends(text[marker:], language))])
        document.parts += map(document.shown, marked)
        for elements in pieces:
            before, core, after = _trimmed(elements)
            if core and (not of_file or any(map(has_letters, core))):
                parts = _readable_parts(core, document, is_readable)
            else:
                parts = map(document.shown, core)
            document.parts += [*map(document.shown, before), *parts, *map(document.shown, after)]
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
    """Elements before the sentence, the sentence, and after it. The sentence goes from the first words to the last, or
    to the punctuation after them, with the partners of its tags. Syntax that a translator keeps counts as words."""
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
    """One sentence; if the model can't read it as a whole, several of its parts."""
    spoken = with_protected(elements, lambda atom: atom.words is None)
    layout = TagLayout.of(spoken, tag_name)
    if layout is not None and is_readable(layout.plain):
        return [Sentence(spoken, layout)]
    cut = ([one] if isinstance(one, Atom) else _readable_runs(one, is_readable) for one in elements)
    runs = list(chain.from_iterable(cut))
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
    if len(words) < 2 or not has_words(words) or is_readable(words):
        return [words]
    middle = len(words) // 2
    spaces = [match.end() for match in re.finditer(r"\s+", words) if 0 < match.end() < len(words)]
    place = min(spaces, key=lambda one: abs(one - middle), default=middle)
    return _readable_runs(words[:place], is_readable) + _readable_runs(words[place:], is_readable)


class NBest(NamedTuple, Generic[Form]):
    """Translations of a sentence or of a document, as text or as elements."""

    texts: list[Form]
    """The best translation, and others after it."""
    truncated: bool
    """Whether a translation was cut off because it reached the model's maximum length."""
    confidence: float | None = None
    """The probability that the first translation is acceptable; for a document, that of its least certain sentence.
    None if it wasn't asked for, or a sentence with words has none."""
    out_of_domain: bool = False
    """Whether a sentence is unlike the text that the model was calibrated on."""
    alignments: Sequence[Alignment] = ()
    """Alignment of each of `texts`, if asked for."""


def n_best_of(translation: Translation, *, aligned: bool) -> NBest[str]:
    """A translation and its alternatives in the form that documents need."""
    every = [translation, *translation.alternatives]
    return NBest(
        [one.text for one in every],
        translation.stopped == "max_length",
        translation.confidence,
        bool(translation.out_of_domain),
        [character_links(one.source_tokens, one.tokens, one.alignment) for one in every] if aligned else (),
    )


class SentenceRequest(NamedTuple):
    """A text to translate."""

    document: int
    """The number of its document."""
    text: str
    aligned: bool = False
    """Whether to return the alignments of its translations."""


class PendingDocuments:
    """Documents that are translated in two passes: whole sentences, then the runs of sentences that remain."""

    def __init__(self, documents: Sequence[Document], prefixes: Iterable[str] = repeat("")) -> None:
        """prefixes: for each document, the text in front of each of its sentences."""
        self._documents = documents
        numbered = enumerate(zip(documents, prefixes, strict=False))
        self._sentences = [(number, prefix, one) for number, (whole, prefix) in numbered for one in whole.sentences]
        self._translated: dict[int, NBest[list[Element]]] = {}
        """Sentences that are translated as a whole, by number."""

    @property
    def wholes(self) -> list[SentenceRequest]:
        """Sentences to translate as a whole, the first pass."""
        return [
            SentenceRequest(number, prefix + one.layout.plain, one.layout.needs_alignment)
            for number, prefix, one in self._sentences
            if one.layout is not None
        ]

    def take_wholes(self, found: Iterable[NBest[str]]) -> None:
        """Places the tags in the translations of `wholes`."""
        following = iter(found)
        for i, (_, prefix, one) in enumerate(self._sentences):
            if one.layout is not None and (whole := _by_whole(one, next(following), len(prefix))):
                self._translated[i] = whole

    @property
    def runs(self) -> list[SentenceRequest]:
        """Words between tags to translate by themselves, the second pass: those of sentences whose tags can't be placed
        in the translation of the whole, or that the model can't read as a whole."""
        return [
            SentenceRequest(number, prefix + run.strip())
            for i, (number, prefix, sentence) in enumerate(self._sentences)
            if i not in self._translated
            for run in sentence.runs
        ]

    def joined(self, found: Iterable[NBest[str]], n_best: int = 1) -> list[NBest[str]]:
        """Each document with the best translation of each sentence, with the second of each, and so on; each text once.
        found: the translations of `runs`."""
        following = iter(found)
        translated = (
            self._translated.get(i) or _by_runs(sentence, [next(following) for _ in sentence.runs])
            for i, (*_, sentence) in enumerate(self._sentences)
        )
        answers = []
        for document in self._documents:
            sentences = [next(translated) for _ in document.sentences]
            ranked = ([one.texts[min(rank, len(one.texts) - 1)] for one in sentences] for rank in range(n_best))
            answers.append(NBest(list(dict.fromkeys(map(document.joined, ranked))), *_together(sentences)))
        return answers


def _by_whole(sentence: Sentence, found: NBest[str], prefix: int) -> NBest[list[Element]] | None:
    """The translation of a whole sentence after `prefix` characters; None if none has a place for each tag."""
    aligned = zip(found.texts, found.alignments or repeat(()), strict=False)
    placed = [sentence.from_whole(text, alignment, prefix) for text, alignment in aligned]
    translations = [one for one in placed if one is not None]
    return NBest(translations, *found[1:4]) if translations else None


def _by_runs(sentence: Sentence, found: Sequence[NBest[str]]) -> NBest[list[Element]]:
    translations = [with_runs(sentence.elements, each) for each in zip(*(one.texts for one in found), strict=False)]
    with_words = [one for run, one in zip(sentence.runs, found, strict=True) if runs_of(split_protected(run))]
    return NBest(translations, *_together(with_words))


def _together(parts: Sequence[NBest[Form]]) -> tuple[bool, float | None, bool]:
    """`truncated`, `confidence` and `out_of_domain` of several parts with words as one."""
    known = [one.confidence for one in parts if one.confidence is not None]
    confidence = min(known) if known and len(known) == len(parts) else None
    return any(one.truncated for one in parts), confidence, any(one.out_of_domain for one in parts)
