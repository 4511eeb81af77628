"""Documents on their way through a model: a sentence goes as a whole or, if its tags can't be placed, by its runs.

Nothing here calls a model. The caller asks one for `wholes`, then for `runs`, and reads what is `joined`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from headway.documents.parsing import Document, Sentence
from headway.text.placing import Alignment
from headway.text.protected import Element, runs_of, split_protected


class Found(NamedTuple):
    """Translations of a sentence or of a document."""

    texts: list[str]
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


class _Translated(NamedTuple):
    """A sentence: its translations, best first, and what `Found` says of them."""

    translations: list[list[Element]]
    truncated: bool
    confidence: float | None
    out_of_domain: bool


class Drafts:
    """Documents, and their translations as far as they are known."""

    def __init__(self, documents: Sequence[Document], prefixes: Iterable[str] = repeat("")) -> None:
        """prefixes: for each document, what stands before each of its sentences."""
        self._documents = documents
        numbered = enumerate(zip(documents, prefixes, strict=False))
        self._sentences = [(number, prefix, one) for number, (whole, prefix) in numbered for one in whole.sentences]
        """Each with the number of its document, and what stands before it."""
        self._found: list[_Translated | None] = [None] * len(self._sentences)

    @property
    def wholes(self) -> list[Asked]:
        """Sentences to translate as a whole, the first pass."""
        return [
            Asked(number, prefix + one.layout.plain, one.layout.needs_alignment)
            for number, prefix, one in self._sentences
            if one.layout is not None
        ]

    def take_wholes(self, found: Iterable[Found]) -> None:
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

    def take_runs(self, found: Iterable[Found]) -> None:
        """found: one for each of `runs`."""
        following = iter(found)
        self._found = [
            known or _by_runs(sentence, [next(following) for _ in sentence.runs])
            for (*_, sentence), known in zip(self._sentences, self._found, strict=True)
        ]

    def joined(self, n_best: int = 1) -> list[Found]:
        """Each document, once all is taken: with the best translation of each sentence, with the second of each, and so
        on; each text once."""
        assert None not in self._found, "wholes and runs are to be taken first"
        known = iter([one for one in self._found if one is not None])
        answers = []
        for document in self._documents:
            sentences = [next(known) for _ in document.sentences]
            texts = [
                document.joined([one.translations[min(number, len(one.translations) - 1)] for one in sentences])
                for number in range(n_best)
            ]
            answers.append(Found(list(dict.fromkeys(texts)), *_together(sentences)))
        return answers


def _by_whole(sentence: Sentence, found: Found, prefix: int) -> _Translated | None:
    """None if no translation has a place for each tag. prefix: characters before the sentence in the text asked for."""
    aligned = zip(found.texts, found.alignments or repeat(()), strict=False)
    placed = [sentence.from_whole(text, alignment, prefix) for text, alignment in aligned]
    translations = [one for one in placed if one is not None]
    return _Translated(translations, *found[1:4]) if translations else None


def _by_runs(sentence: Sentence, found: Sequence[Found]) -> _Translated:
    translations = [sentence.from_runs(each) for each in zip(*(one.texts for one in found), strict=False)]
    with_words = [one for run, one in zip(sentence.runs, found, strict=True) if runs_of(split_protected(run))]
    return _Translated(translations, *_together(with_words))


def _together(parts: Sequence[Found | _Translated]) -> tuple[bool, float | None, bool]:
    """What is said of several parts with words as one: `truncated`, `confidence` and `out_of_domain`."""
    known = [one.confidence for one in parts if one.confidence is not None]
    confidence = min(known) if known and len(known) == len(parts) else None
    return any(one.truncated for one in parts), confidence, any(one.out_of_domain for one in parts)
