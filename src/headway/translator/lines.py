"""Lines in, lines out: the output and the notices of a job for each line of a file."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from headway.data.lines import Line
from headway.errors import UserError
from headway.languages import same_language
from headway.text.characters import is_blank
from headway.text.tokenizer import language_tag
from headway.translator.aligning import Links, to_pharaoh
from headway.translator.glossary import Glossary
from headway.translator.required_phrases import MOST_PHRASES_IN_BEAM, ProtectedText
from headway.translator.translation import Stopped, Translation
from headway.translator.translator import Translator

MOST_FAILURES = 100
"""Lines of a chunk whose translation may raise an error. With more of them, the lines aren't the cause."""


@dataclass(frozen=True)
class LineOptions:
    """Options of translating and writing lines."""

    search: dict[str, Any] = field(default_factory=dict)
    """Keywords of `Translator.search_options`."""
    prefix: str = ""
    glossary: tuple[tuple[str, str], ...] = ()
    """Source and target of each term."""
    target_language: str | None = None
    as_json: bool = False
    """Write one JSON document per line, not its text."""
    split: bool = False
    """The model gets the sentences of each line, as `Translator.translate_documents` finds them."""
    alignments: bool = False
    """Write the links between the words of both sides, too."""
    pieces: bool = False
    """Links are between pieces, not words."""
    confidence: bool = False
    """Write how likely each translation is acceptable, too."""

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON gives them back."""
        return {**asdict(self), "glossary": [list(term) for term in self.glossary]}


class JobNotice(NamedTuple):
    """A message to the user about a job, or about a line without a complete translation."""

    text: str
    fault: Literal["were left blank", "were cut off", "lack terms of the glossary"] | None = None
    """The fault of the line, in words for several lines."""


@dataclass
class Written:
    """The output of a chunk of lines."""

    text: str
    """The text to write, including line ends."""
    notices: list[JobNotice] = field(default_factory=list)
    """One for each incomplete translation."""
    failed: int = 0
    """The number of lines that have no translation and are left blank."""


class LineTranslator:
    """A translator with the options of one job."""

    def __init__(self, translator: Translator, options: LineOptions) -> None:
        """Raises UserError for options that the translator can't use, before a line is read."""
        self.translator, self.options = translator, options
        self._tag = language_prefix(translator, options.target_language)
        self._search, self._n_best = dict(options.search), options.search.get("n_best", 1)
        self._glossary = Glossary.of(options.glossary)
        translator.check_glossary(self._glossary, **self._search)
        translator.check_prefix(options.prefix, **self._search)
        if options.confidence:
            translator.calibration()
        if options.pieces and not options.alignments:
            raise UserError("--pieces says what --alignments join: give both")
        if options.split:
            if self._n_best > 1 or any((options.as_json, options.prefix, options.alignments, options.confidence)):
                whole = "--json, --n-best, --prefix, --alignments and --confidence"
                raise UserError(f"--split translates sentences: {whole} are of whole lines")
            translator.translate_documents([])  # raises UserError where its extra is missing

    @property
    def at_once(self) -> int:
        """Chunks of lines to translate at a time: two with CTranslate2, which translates one while the other
        is tokenised; one with torch, which shares the cores among the batches of a chunk."""
        by_torch = self.translator.engine == "torch" or self._glossary.terms or self._search.get("sample") is not None
        return 1 if by_torch else 2

    def translate(self, lines: Sequence[Line]) -> Written:
        """Leaves a line blank, with a notice, if it has no text, lacks its tag, is too long, or its translation raises
        an error. The other lines are translated. Raises UserError if an option is at fault, and the error itself if
        more than MOST_FAILURES lines raise one."""
        errors: dict[int, Exception] = {}
        lines = [self._checked(line) for line in lines]
        pairs = list(zip(lines, self._translated(lines, errors), strict=True))
        notices = [self._notice(line, translation, errors.get(line.number)) for line, translation in pairs]
        return Written(
            "".join(self._shown(translation, line.number) for line, translation in pairs),
            [notice for notice in notices if notice is not None],
            sum(bool(line.fault) or translation.stopped in ("too_long", "failed") for line, translation in pairs),
        )

    def _checked(self, line: Line) -> Line:
        fault = line.fault or tag_fault(self.translator, self._tag + line.text)
        return replace(line, text="", fault=fault) if fault else line

    def _translated(self, lines: Sequence[Line], errors: dict[int, Exception]) -> list[Translation]:
        """Translates all lines together. If that raises an error, translates the halves, down to the line at fault."""
        texts = ["" if is_blank(line.text) else self._tag + line.text for line in lines]
        try:
            if self.options.split:
                documents = self.translator.translate_documents(texts, glossary=self._glossary, **self._search)
                stopped: list[Stopped] = ["max_length" if one.truncated else "eos" for one in documents]
                texts = [" ".join(one.text.splitlines()) for one in documents]
                return [Translation(text, None, why) for text, why in zip(texts, stopped, strict=True)]
            return self.translator.translate(
                texts,
                prefix=self.options.prefix,
                glossary=self._glossary,
                alignments=self.options.alignments,
                confidence=self.options.confidence,
                **self._search,
            )
        except UserError:
            raise
        except Exception as error:
            if len(lines) > 1:
                half = len(lines) // 2
                return [*self._translated(lines[:half], errors), *self._translated(lines[half:], errors)]
            if len(errors) == MOST_FAILURES:
                raise
            errors[lines[0].number] = error
            return [Translation("", None, "failed")]

    def _shown(self, translation: Translation, number: int) -> str:
        every = (translation, *translation.alternatives)
        if self.options.as_json:
            document = translation.to_dict()
            for alternative in document["alternatives"]:
                del alternative["source_tokens"], alternative["alternatives"]  # the best one has them
            if self.options.alignments:
                for one, shown in zip(every, (document, *document["alternatives"]), strict=True):
                    shown["alignments"] = self._links(one)
            return json.dumps(document, ensure_ascii=False) + "\n"
        shown = ""
        for one in every[: self._n_best]:
            fields = [one.text]
            if self._n_best > 1:  # nan as `headway score` has it: programs that expect a number can read it
                fields = [str(number), one.text, f"{math.nan if one.score is None else one.score:.4f}"]
            if self.options.confidence:
                domain = " out-of-domain" if one.out_of_domain else ""
                fields.append("" if one.confidence is None else f"{one.confidence:.4f}{domain}")
            if self.options.alignments:
                fields.append(to_pharaoh(self._links(one)))
            shown += " ||| ".join(fields) + "\n"
        return shown

    def _links(self, translation: Translation) -> Links:
        return translation.piece_links if self.options.pieces else translation.word_links

    def _notice(self, line: Line, translation: Translation, error: Exception | None) -> JobNotice | None:
        """Says why a translation is incomplete; None for a complete one."""
        if why := self._why_blank(line, translation, error):
            return JobNotice(f"line {line.number} {why}", "were left blank")
        if translation.stopped == "max_length":
            return JobNotice(self._where_cut_off(line, translation), "were cut off")
        lacking = "" if self.options.split else self._terms_lacking(line, translation.text)
        return JobNotice(lacking, "lack terms of the glossary") if lacking else None

    def _why_blank(self, line: Line, translation: Translation, error: Exception | None) -> str:
        if line.fault:
            return f"{line.fault}; its translation is left blank"
        if error is not None:
            return f"can't be translated ({type(error).__name__}: {' '.join(str(error).split())}); it is left blank"
        if translation.stopped != "too_long":
            return ""
        pieces = len(translation.source_tokens)
        size = f"{pieces} tokens" if pieces else f"{len(line.text):,} characters"
        most = f"the model reads at most {self.translator.longest_source} tokens"
        return f"has {size}, {most}; its translation is left blank; split the line, or all by --split"

    def _where_cut_off(self, line: Line, translation: Translation) -> str:
        if self.options.split:
            return f"a sentence of line {line.number} was cut off; --max-length allows more"
        more = len(translation.tokens) < self.translator.longest_source
        remedy = "--max-length allows more" if more else "the model knows no more places"
        return f"line {line.number} was cut off after {len(translation.tokens)} tokens; {remedy}"

    def _terms_lacking(self, line: Line, translation: str) -> str:
        """Tells of the glossary's terms that a line has beyond the most, or that its translation lacks, if any."""
        text = ProtectedText.of(line.text, self.translator.info.source_tokenizer)
        if left_out := text.terms_left_out(self._glossary):
            return (
                f"line {line.number} has more than {MOST_PHRASES_IN_BEAM} terms and protected texts; its last "
                f"{left_out} terms of the glossary are left out, split the line"
            )
        found = translation.casefold()  # a target may begin a translation with a capital
        demanded = Counter(one.target for one in text.terms(self._glossary))
        for target, count in demanded.items():
            if found.count(target.casefold()) < count:
                return (
                    f"the translation of line {line.number} has no room for the glossary's {target!r}; "
                    "try a larger --max-length"
                )
        return ""


def tag_fault(translator: Translator, text: str) -> str:
    """Message if a line of a file lacks the tag of its target language; empty if it has one, or needs none."""
    if not translator.lacks_tag(text):
        return ""
    return f"doesn't begin with the tag of a target language, such as {translator.info.example_tag}"


def language_prefix(translator: Translator, language: str | None) -> str:
    """The prefix of each text that selects its target language: of a model with many source languages `FROM:TO`, or
    `TO` alone from the model's own. Raises UserError."""
    if language is None:
        return ""
    known_as = same_language(language, translator.target_languages)
    if translator.info.source_tokenizer.many_sources:
        source, _, target = language.rpartition(":")
        both = (source or translator.info.source_language), target
        found = [same_language(one, translator.target_languages) for one in both]
        known_as = None if None in found else ":".join(map(str, found))
    if known_as is None:
        known = ", ".join(translator.target_languages)
        known = known or f"{translator.info.target_language} alone, without the option"
        raise UserError(f"--target-language {language}: the model translates into {known}")
    return f"{language_tag(known_as)} "
