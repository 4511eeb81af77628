"""Phrases that a translation must contain: protected text of its source, and the targets of a glossary's terms."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Self

from headway.text.protected import (
    Atom,
    Element,
    joined,
    runs_of,
    split_protected,
    syntax_name,
    with_protected,
    with_runs,
)
from headway.text.subwords import Tokenizer
from headway.translator.glossary import Glossary, Term, goes_on
from headway.translator.placing import TagLayout
from headway.translator.translation import Stopped, Translation

MOST_PHRASES_IN_BEAM = 16
"""Most phrases that are demanded of one translation: the beam has a place for each number of them."""


@dataclass(frozen=True)
class ProtectedSpan:
    """A protected text in a source."""

    text: str
    inside: bool
    """Whether a character other than white space stands just before it."""
    closed: bool
    """Whether no word goes on just after it."""


@dataclass(frozen=True)
class ProtectedText:
    """A source and the parts of it that a translation must keep."""

    text: str
    elements: Sequence[Element]
    """Words and protected text in turns."""
    tag: str = ""
    """The tag of a target language and a space, before the elements."""

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer) -> Self:
        tag, body = tokenizer.split_tag(text)
        return cls(text, split_protected(body), f"{tag} " if tag else "")

    @cached_property
    def spans(self) -> list[ProtectedSpan]:
        """Each protected text."""
        texts = ["", *(one if isinstance(one, str) else one.raw for one in self.elements), ""]
        return [
            ProtectedSpan(one.raw, inside=bool(before[-1:].strip()), closed=not goes_on(after[:1]))
            for before, one, after in zip(texts, self.elements, texts[2:], strict=False)
            if isinstance(one, Atom)
        ]

    @property
    def words(self) -> str:
        """The text with a space in place of each protected part."""
        return "".join(" " if isinstance(one, Atom) else one for one in self.elements)

    @property
    def parts(self) -> Sequence[Element]:
        """The parts between syntax or, without syntax, between all protected text, and that syntax or text."""
        return with_protected(self.elements, lambda one: one.is_syntax) if self._has_syntax else self.elements

    @cached_property
    def layout(self) -> TagLayout | None:
        """The text without links and tags, and where they were; None if there are none, or they can't be put back: the
        messages of a plural are translated separately."""
        has_messages = any(isinstance(one, Atom) and one.is_syntax and one.raw[0] in "{}" for one in self.elements)
        return TagLayout.of(self.parts, syntax_name) if self._has_syntax and not has_messages else None

    @property
    def runs(self) -> list[str]:
        """The words of its parts, as `runs_of` finds them."""
        return [self.tag + run for run in runs_of(self.parts)]

    @property
    def is_split(self) -> bool:
        """Whether only the runs are translated, because there is syntax, no words, or too much protected text."""
        return self._has_syntax or len(self.spans) > MOST_PHRASES_IN_BEAM or (bool(self.spans) and not self.runs)

    @property
    def _has_syntax(self) -> bool:
        return any(isinstance(one, Atom) and one.is_syntax for one in self.elements)

    def terms(self, glossary: Glossary) -> list[Term]:
        """The terms in the words, the first ones, as many as there is room for beside the protected text."""
        found = glossary.find(self.words) if glossary.terms else []
        return found[: max(0, MOST_PHRASES_IN_BEAM - len(self.spans))]

    def terms_left_out(self, glossary: Glossary) -> int:
        """Number of terms for which there is no room."""
        if not glossary.terms:
            return 0
        if self.is_split:
            return sum(ProtectedText(run, [run]).terms_left_out(glossary) for run in runs_of(self.parts))
        return len(glossary.find(self.words)) - len(self.terms(glossary))

    def is_kept_by(self, translation: str) -> bool:
        """Whether the translation has all protected text, as often as the source, and not as a part of other words
        where the source doesn't."""
        found = Counter(one.raw for one in split_protected(translation) if isinstance(one, Atom))
        return all(
            found[span] == count and _times_in_words(span, translation) <= _times_in_words(span, self.text)
            for span, count in Counter(one.text for one in self.spans).items()
        )

    def from_runs(self, prefix: str, runs: Sequence[Translation], glossary: Glossary) -> Translation:
        """The translation made of translated runs, after a prefix and without pieces. Its score is their sum. A space
        keeps protected text from a letter that the source doesn't have there, as after a Korean particle."""
        targets = tuple(one.target for one in glossary.terms)

        def of(each: Sequence[Translation]) -> Translation:
            made = with_runs(self.parts, [one.text for one in each], kept_ends=targets)
            beside = zip(pairwise(made), pairwise(self.parts), strict=True)
            gaps = (" " * (_goes_on(*here) and not _goes_on(*there)) for here, there in beside)
            text = joined(chain.from_iterable(zip(made, chain(gaps, [""]), strict=False)))
            scores = [one.score for one in each if one.score is not None]
            return Translation(f"{prefix} {text}" if prefix else text, sum(scores) if scores else None, stopped)

        stopped: Stopped = "max_length" if any(run.stopped == "max_length" for run in runs) else "eos"
        ranked = list(zip(*((run, *run.alternatives) for run in runs), strict=False)) or [()]
        best, *others = map(of, ranked)
        return replace(best, alternatives=others)


def _goes_on(one: Element, following: Element) -> bool:
    """Whether a word goes on from protected text, or up to it."""
    if isinstance(one, Atom):
        return not one.is_syntax and isinstance(following, str) and goes_on(following[:1])
    return isinstance(following, Atom) and not following.is_syntax and goes_on(one[-1:])


def _times_in_words(span: str, text: str) -> int:
    """Number of times that a word continues just before or after the span in the text."""
    around = ((text[: match.start()][-1:], text[match.end() :][:1]) for match in re.finditer(re.escape(span), text))
    return sum(goes_on(before) or goes_on(after) for before, after in around)
