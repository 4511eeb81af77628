"""Results of translating a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from headway.text.numbers import NumberCheck, check_numbers
from headway.text.tokenizer import Piece
from headway.translator.aligning import Links, piece_links, word_links

Stopped = Literal["eos", "max_length", "blank", "too_long", "failed"]


@dataclass(eq=False)
class Pieces:
    """The tokens of a translation and of its source, and their alignment. Each is computed at the first access and
    kept. Copies of a translation share them. Pickling computes them all and leaves the model behind."""

    find_target: Callable[[], list[Piece]] = list
    find_source: Callable[[], list[Piece]] = list
    find_alignment: Callable[[], list[int | None]] = list
    source_text: str = ""
    """The source with spaces in place of a tag."""
    languages: tuple[str, str] = ("", "")
    """Codes of the languages of source and target."""
    ids: tuple[list[int], list[int]] = ([], [])
    """Ids of source and target, without <eos>."""
    tags: int = 0
    """The first tokens of the source, of its tag."""

    @cached_property
    def target(self) -> list[Piece]:
        return self.find_target()

    @cached_property
    def source(self) -> list[Piece]:
        return self.find_source()

    @cached_property
    def alignment(self) -> list[int | None]:
        return self.find_alignment()

    def __deepcopy__(self, memo: dict[int, Any]) -> Pieces:
        return self

    def __getstate__(self) -> dict[str, Any]:
        names = "target", "source", "alignment", "source_text", "languages", "ids", "tags"
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Translation:
    """The translation of one text. Its tokens are found at the first access; most callers want only the text."""

    text: str
    """Detokenised, without line breaks; empty for a blank or too long text."""
    score: float | None
    """Total log-probability of the tokens and of <eos>, see `Translator.score`. None where the model wrote nothing: for
    a source that is blank, too long or without words, such as a placeholder, and for a line that failed."""
    stopped: Stopped
    """Why the translation ended: with `eos`, at the length limit (`max_length`), or because the source was `blank` or
    `too_long`. `failed` occurs only for lines of a file, if translating them raised an error."""
    alternatives: list[Translation] = field(default_factory=list)
    """The next best translations, if more than one was requested."""
    confidence: float | None = None
    """The probability that the translation is acceptable, if it was requested and the source has words that the model
    can read; docs/confidence.md."""
    out_of_domain: bool | None = None
    """Whether the source differs from the text that the model was calibrated on, so that `confidence` may mislead."""
    _pieces: Pieces = field(default_factory=Pieces, repr=False, compare=False, kw_only=True)

    @property
    def tokens(self) -> list[Piece]:
        """The tokens of `text`, each with its characters in the text (`start` to `end`)."""
        return self._pieces.target

    @property
    def source_tokens(self) -> list[Piece]:
        """The tokens of the source, each with its characters in the text; none if the source is far too long."""
        return self._pieces.source

    @property
    def token_counts(self) -> tuple[int, int]:
        """Numbers of tokens of the source and of `text`, which take no time to know; a tag counts."""
        source, target = self._pieces.ids
        return len(source), len(target)

    @property
    def alignment(self) -> list[int | None]:
        """For each token the number of the source token that it is aligned with, or None; docs/alignments.md. It comes
        from the encoder-decoder attention of the model, or of the first model of an ensemble, and costs a pass of the
        model unless `translate` was called with `alignments`."""
        return self._pieces.alignment

    @property
    def piece_links(self) -> Links:
        """`alignment` as pairs (number of the source token, number of the target token)."""
        return piece_links(self.alignment)

    @property
    def word_links(self) -> Links:
        """`alignment` as pairs (number of the source word, number of the target word). Words are separated by white
        space. The tag of a target language doesn't count as a word."""
        return word_links(self._pieces.source_text, self.source_tokens, self.text, self.tokens, self.alignment)

    @property
    def numbers(self) -> NumberCheck:
        """The numbers of the source that `text` lacks, and those that it invents."""
        pieces = self._pieces
        return check_numbers(pieces.source_text, self.text, pieces.languages) if pieces.source_text else NumberCheck()

    def to_dict(self) -> dict[str, Any]:
        """The translation as a JSON object."""
        return {
            "text": self.text,
            "score": self.score,
            **({} if self.confidence is None else {"confidence": self.confidence, "out_of_domain": self.out_of_domain}),
            "tokens": [asdict(piece) for piece in self.tokens],
            "source_tokens": [asdict(piece) for piece in self.source_tokens],
            "stopped": self.stopped,
            **({"numbers": self.numbers.to_dict()} if self.numbers else {}),
            "alternatives": [one.to_dict() for one in self.alternatives],
        }


def by_numbers(translation: Translation, n_best: int) -> Translation:
    """The n best of a translation and its alternatives; those with wrong numbers come after the others."""
    every = sorted((translation, *translation.alternatives), key=lambda one: bool(one.numbers))
    return replace(every[0], alternatives=[replace(one, alternatives=[]) for one in every[1:n_best]])


def with_alternatives(
    translations: Sequence[Translation], change: Callable[[Sequence[Translation]], Iterable[Translation]]
) -> list[Translation]:
    """Changes the translations and their alternatives, all in one call."""
    changed = iter(change([one for first in translations for one in (first, *first.alternatives)]))
    return [replace(next(changed), alternatives=[next(changed) for _ in one.alternatives]) for one in translations]


@dataclass(frozen=True)
class TranslatedDocument:
    """The translation of a text of many sentences, or of an HTML document."""

    text: str
    alternatives: list[str]
    """The text with the second best translation of each sentence, with the third best, and so on, if requested."""
    truncated: bool
    """Whether the translation of a sentence was cut off at the model's length limit."""
