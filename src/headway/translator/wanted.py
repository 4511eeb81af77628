"""What a translation must have because its source has it: protected text, and the targets of a glossary's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from headway.decoding import Demands, Phrase
from headway.errors import UserError
from headway.text.glossary import Glossary
from headway.text.protected import (
    MARK,
    MARK_START,
    Atom,
    Element,
    joined,
    marked,
    runs_of,
    split_protected,
    unmarked,
    with_runs,
)
from headway.text.tokenizer import Piece, Tokenizer
from headway.translator.codec import Codec
from headway.translator.translation import Stopped, Translation

MOST_PHRASES = 100_000
"""Whose ids are kept."""


@dataclass(frozen=True)
class MarkedText:
    """A text, and what the model gets: marks in place of its protected text."""

    original: str
    elements: Sequence[Element]
    """Without the tag."""
    tag: str = ""
    """Of a target language, with the space after it."""

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer) -> MarkedText:
        elements = split_protected(text)
        if not any(isinstance(one, Atom) for one in elements):
            return cls(text, elements)
        tag, body = tokenizer.split_tag(text)
        return cls(text, split_protected(body), f"{tag} " if tag else "")

    @cached_property
    def text(self) -> str:
        """With marks."""
        return self.tag + marked(self.elements) if self.atoms else self.original

    @cached_property
    def atoms(self) -> list[Atom]:
        return [one for one in self.elements if isinstance(one, Atom)]

    @property
    def words(self) -> str:
        """With a space in place of each protected text."""
        return "".join(" " if isinstance(one, Atom) else one for one in self.elements)

    @property
    def runs(self) -> list[str]:
        """The words between protected text."""
        return [self.tag + run.strip() for run in runs_of(self.elements)]

    def restored(self, translation: str) -> str | None:
        """The translation with protected text in place of the marks; None where not each mark is there once."""
        if not self.atoms:
            return translation
        elements = unmarked(translation, self.atoms)
        return None if elements is None else joined(elements)

    def from_runs(self, prefix: str, runs: Sequence[Translation]) -> Translation:
        """The translation that is made of those of its runs. It has no pieces. prefix: what it begins with."""

        def of(texts: Sequence[str], score: float) -> Translation:
            text = joined(with_runs(self.elements, texts))
            return Translation(f"{prefix} {text}" if prefix else text, score, stopped)

        stopped: Stopped = "max_length" if any(run.stopped == "max_length" for run in runs) else "eos"
        ranked = list(zip(*((run, *run.alternatives) for run in runs), strict=False)) or [()]
        best, *others = [of([one.text for one in each], sum(one.score for one in each)) for each in ranked]
        return replace(best, alternatives=others)

    def moved(self, pieces: Sequence[Piece], text: str) -> list[Piece]:
        """Pieces of a text with marks, at their places in the text that has protected text in place of them. A piece of
        a mark stands for the whole of it."""
        if not self.atoms:
            return list(pieces)
        moves = []
        shift = 0
        for match in MARK.finditer(text):
            length = len(self.atoms[int(match[1])].raw)
            moves.append((*match.span(), shift, length))
            shift += length - len(match.group())

        def move(place: int, end: bool) -> int:
            moved = place
            for first, last, shift, length in moves:
                if place >= last:
                    moved = place + shift + length - (last - first)
                elif place > first:
                    return first + shift + (length if end else 0)
                elif place == first:
                    return first + shift
            return moved

        return [Piece(one.text, move(one.start, False), move(one.end, True)) for one in pieces]


class Demanding:
    """What translations of one model must have."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._phrase = lru_cache(MOST_PHRASES)(codec.phrase)

    def phrases(self, text: MarkedText, glossary: Glossary) -> tuple[Phrase, ...]:
        """The marks of a text, as far as the model can write them, and the targets of the terms in it."""
        wanted = []
        for match in MARK.finditer(text.text) if text.atoms else ():
            before = text.text[: match.start()]
            wanted.append(self._phrase(match.group(), inside=bool(before) and not before[-1].isspace()))
        terms = glossary.find(text.words) if glossary.terms else []
        return tuple(one for one in (*wanted, *(self._phrase(term.target) for term in terms)) if one is not None)

    def check(self, glossary: Glossary) -> None:
        """Raises UserError for a term that the model can't write."""
        for term in glossary.terms:
            if self._phrase(term.target) is None:
                raise UserError(f"glossary: the model's vocabulary can't write {term.target!r}; choose another target")

    def demands(self, phrases: Sequence[tuple[Phrase, ...]], texts: Sequence[MarkedText]) -> Demands:
        """For texts with phrases. Only marks of the text itself may stand in its translation."""
        return Demands(phrases, self._codec.word_parts, self._reserved, [bool(text.atoms) for text in texts])

    @cached_property
    def _reserved(self) -> list[int]:
        """Tokens that every mark has, and hardly any other text."""
        vocabulary = self._codec.stored.target_tokenizer.vocabulary
        found = [id_ for id_, piece in enumerate(vocabulary) if MARK_START in piece]
        if not found and (spelled := self._codec.phrase(MARK_START, inside=True)) is not None:
            found = [spelled.ids[len(spelled.ids) // 2]]  # of several bytes not the first, which many characters have
        return found
