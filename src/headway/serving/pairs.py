"""The language pairs that the loaded models translate, each with examples: pairs that its model was validated on, or
one in its languages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.dates import format_date

from headway.devices import has_torch
from headway.errors import UserError
from headway.insight.analyses import LONGEST_ANALYSED, MOST_PAIRS, NAMES
from headway.languages import read_code
from headway.text.characters import is_blank
from headway.text.tokenizer import language_tag
from headway.translator import Translator

EXAMPLES, LONGEST_EXAMPLE = 5, 80
"""Sentences that a page offers, and their characters at most."""
_SENTENCES = {
    "de": "Ein Hund läuft.",
    "en": "A dog is running.",
    "es": "Un perro corre.",
    "fr": "Un chien court.",
    "ko": "개가 달립니다.",
}
_DAY = date(2017, 6, 12)
"""Of "Attention Is All You Need"."""


@dataclass(frozen=True)
class LanguagePair:
    """One direction of one model."""

    source: str
    target: str
    translator: Translator
    prefix: str
    """What a model of several target languages needs in front of a text, or nothing."""
    examples: tuple[tuple[str, str], ...]
    """Sentences, without the prefix, and their translations by people."""
    validated: tuple[tuple[str, str], ...] = ()
    """Pairs that the model was validated on, to measure the importance of its heads."""

    def is_readable(self, text: str) -> bool:
        """Whether the model can read the text as a whole."""
        return self.translator.is_readable(self.prefix + text)

    def about(self) -> dict[str, Any]:
        """What a page says of the model, of this direction, and which analyses it can ask for: none without torch."""
        info, possible = self.translator.info, NAMES if has_torch() else ()
        return {
            "source": self.source,
            "target": self.target,
            "domain": info.domain,
            "parameters": info.num_parameters,
            "examples": [{"source": text, "target": translation} for text, translation in self.examples],
            "analyses": [name for name in possible if name != "head_importance" or self.validated],
        }


class Pairs:
    """Every direction, by its two language codes. Raises UserError where two models have the same."""

    def __init__(
        self, translators: Iterable[Translator], examples: Mapping[Translator, Sequence[tuple[str, str]]] | None = None
    ) -> None:
        """examples: pairs that a model was validated on, with the tags of their target languages."""
        self._pairs: dict[tuple[str, str], LanguagePair] = {}
        for translator in translators:
            source = translator.info.source_language
            prefixes = {tag: f"{language_tag(tag)} " for tag in translator.target_languages}
            for target, prefix in (prefixes or {translator.info.target_language: ""}).items():
                if (source, target) in self._pairs:
                    raise UserError(f"two models translate {source} into {target}: give one of them")
                own = [one for one in (examples or {}).get(translator, ()) if one[0].startswith(prefix)]
                found = examples_among(((text.removeprefix(prefix), other) for text, other in own), source, target)
                short = (one for one in own if can_be_analysed(translator, *one))
                validated = tuple(islice(short, MOST_PAIRS))
                self._pairs[source, target] = LanguagePair(source, target, translator, prefix, tuple(found), validated)
        if not self._pairs:
            raise UserError("a server needs a model")

    def __iter__(self) -> Iterator[LanguagePair]:
        return iter(self._pairs.values())

    def find(self, source: str, target: str) -> LanguagePair | None:
        return self._pairs.get((source, target))

    @property
    def first(self) -> LanguagePair:
        return next(iter(self))

    def sources(self, target: str | None = None) -> list[str]:
        """Codes that can be translated, or translated into `target`."""
        return list(dict.fromkeys(one for one, other in self._pairs if target in (None, other)))

    def targets(self, source: str | None = None) -> list[str]:
        """Codes that can be translated into, or into which `source` can be."""
        return list(dict.fromkeys(other for one, other in self._pairs if source in (None, one)))

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys([*self.sources(), *self.targets()]))


def can_be_analysed(translator: Translator, source: str, target: str) -> bool:
    """Whether both sides of a pair are short enough for an analysis."""
    readable = translator.is_readable
    return (
        not is_blank(source)
        and readable(source, LONGEST_ANALYSED)
        and readable(target, LONGEST_ANALYSED, side="target")
    )


def examples_among(pairs: Iterable[tuple[str, str]], source: str, target: str) -> list[tuple[str, str]]:
    """The first few short ones, each source once; where there are none, one in the two languages."""
    short: dict[str, str] = {}
    for text, translation in pairs:
        if 0 < len(text.strip()) <= LONGEST_EXAMPLE:
            short.setdefault(text, translation)
        if len(short) == EXAMPLES:
            break
    return list(short.items()) or [(example_text(source), example_text(target))]


def example_text(code: str) -> str:
    """A text in a language: a sentence, or a day as its people write it; English where the code is unknown."""
    if sentence := _SENTENCES.get(read_code(code).language):
        return sentence
    try:
        return format_date(_DAY, "full", Locale.parse(code.replace("-", "_")))
    except (UnknownLocaleError, ValueError):
        return _SENTENCES["en"]
