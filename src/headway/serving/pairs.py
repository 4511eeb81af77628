"""The language pairs that the loaded models translate, with examples from validation text or in their languages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from itertools import islice, permutations
from typing import Any, NamedTuple

from babel import Locale, UnknownLocaleError
from babel.dates import format_date

from headway.devices import has_torch
from headway.documents.parsing import TextFormat
from headway.errors import UserError
from headway.insight.analyses import NAMES
from headway.insight.analyses.analysis import MOST_PAIRS, can_be_analysed
from headway.languages import read_code
from headway.serving.schemas import TranslateRequest
from headway.text.tokenizer import language_tag
from headway.translator import Translator

EXAMPLES, LONGEST_EXAMPLE = 5, 80  # number of sentences that a page offers, and their maximum length in characters
_SENTENCES = {
    "de": "Ein Hund läuft.",
    "en": "A dog is running.",
    "es": "Un perro corre.",
    "fr": "Un chien court.",
    "ko": "개가 달립니다.",
}
_DAY = date(2017, 6, 12)  # of "Attention Is All You Need"


@dataclass(frozen=True)
class LanguagePair:
    """One direction of one model."""

    source: str
    target: str
    translator: Translator
    prefix: str  # tag that a model of several target languages needs before a text, or nothing
    examples: tuple[tuple[str, str], ...]  # sentences, without the prefix, and their translations by people
    validated: tuple[tuple[str, str], ...]  # validation pairs, to measure the importance of the model's heads

    def is_readable(self, text: str, most: int | None = None) -> bool:
        """Whether the model can read the whole text, and it has at most `most` tokens."""
        return self.translator.is_readable(self.prefix + text, most)

    def beam_size(self, wanted: TranslateRequest) -> int:
        """Hypotheses that are kept of each sentence."""
        return max(wanted.beam_size or self._own_beam_size, 1 + wanted.alternatives)

    @cached_property
    def _own_beam_size(self) -> int:
        return self.translator.search_options().beam_size

    def about(self) -> dict[str, Any]:
        """Facts about the direction for a page, with its possible analyses: none without torch."""
        info, possible = self.translator.info, NAMES if has_torch() else ()
        return {
            "source": self.source,
            "target": self.target,
            "domain": info.domain,
            "parameters": info.num_parameters,
            "examples": [{"source": text, "target": translation} for text, translation in self.examples],
            "analyses": [name for name in possible if name != "head_importance" or self.validated],
        }


class AskedText(NamedTuple):
    """A text to translate."""

    text: str
    pair: LanguagePair | None
    """None for a text that stays as it is."""
    format: TextFormat


class Pairs(dict[tuple[str, str], LanguagePair]):
    """Every direction, by its two language codes."""

    def __init__(
        self, translators: Iterable[Translator], examples: Mapping[Translator, Sequence[tuple[str, str]]] | None = None
    ) -> None:
        """examples: a model's validation pairs, with tags. Raises UserError if two models have the same direction."""
        self._sources = defaultdict[str, list[str]](list)  # of each target
        self._targets = defaultdict[str, list[str]](list)
        for translator in translators:
            for source, target, prefix in _directions(translator):
                if (source, target) in self:
                    raise UserError(f"two models translate {source} into {target}: give one of them")
                own = [one for one in (examples or {}).get(translator, ()) if one[0].startswith(prefix)]
                found = examples_among(((text.removeprefix(prefix), other) for text, other in own), source, target)
                validated = tuple(islice((one for one in own if can_be_analysed(translator, *one)), MOST_PAIRS))
                self[source, target] = LanguagePair(source, target, translator, prefix, tuple(found), validated)
        if not self:
            raise UserError("a server needs a model")
        for source, target in self:
            self._sources[target].append(source)
            self._targets[source].append(target)

    @cached_property
    def first(self) -> LanguagePair:
        """The direction that a page begins with: one of the first model's that it describes, if possible one with
        validation text."""
        shown = self.shown
        own = [pair for pair in shown if pair.translator is shown[0].translator]
        return max(own, key=lambda pair: len(pair.validated))

    def sources(self, target: str | None = None) -> list[str]:
        """Codes that can be translated, or translated into `target`."""
        return list(self._targets) if target is None else self._sources.get(target, [])

    def targets(self, source: str | None = None) -> list[str]:
        """Codes that can be translated into, or into which `source` can be."""
        return list(self._sources) if source is None else self._targets.get(source, [])

    @cached_property
    def codes(self) -> list[str]:
        return list(dict.fromkeys([*self.sources(), *self.targets()]))

    @cached_property
    def shown(self) -> list[LanguagePair]:
        """The directions that a page describes: of a model with many source languages those from its own, or, where its
        recipe has named that otherwise, from the first."""
        own = {one: _own_language(one) for one in {pair.translator for pair in self.values()}}
        return [
            pair
            for (source, _), pair in self.items()
            if not pair.translator.info.source_tokenizer.many_sources or source == own[pair.translator]
        ]


def _own_language(translator: Translator) -> str:
    own, languages = translator.info.source_language, translator.target_languages
    return own if own in languages or not languages else languages[0]


def _directions(translator: Translator) -> Iterator[tuple[str, str, str]]:
    """Source, target and the tag with a space, if texts need one, of each direction."""
    languages, source = translator.target_languages, translator.info.source_language
    if translator.info.source_tokenizer.many_sources:
        for source, target in permutations(languages, 2):
            yield source, target, f"{language_tag(f'{source}:{target}')} "
    elif languages:
        yield from ((source, target, f"{language_tag(target)} ") for target in languages)
    else:
        yield source, translator.info.target_language, ""


def examples_among(pairs: Iterable[tuple[str, str]], source: str, target: str) -> list[tuple[str, str]]:
    """The first few short pairs, each source once; without any, one in the two languages."""
    short: dict[str, str] = {}
    for text, translation in pairs:
        if 0 < len(text.strip()) <= LONGEST_EXAMPLE and len(short) < EXAMPLES:
            short.setdefault(text, translation)
    return list(short.items()) or [(example_text(source), example_text(target))]


@cache
def example_text(code: str) -> str:
    """A sentence in the language, or a date in its usual form; English for an unknown code."""
    if sentence := _SENTENCES.get(read_code(code).language):
        return sentence
    try:
        return format_date(_DAY, "full", Locale.parse(code.replace("-", "_")))
    except (UnknownLocaleError, ValueError):
        return _SENTENCES["en"]
