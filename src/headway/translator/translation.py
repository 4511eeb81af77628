"""What translating a text gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from headway.text.tokenizer import Piece
from headway.translator.alignments import Links, piece_links, word_links

Stopped = Literal["eos", "max_length", "blank", "too_long", "failed"]


class Pieces:
    """The pieces of a translation and of its source, and how they are aligned: each found when it is first asked for,
    and kept. Copies of a translation share them; pickled, they are all found first and the model stays behind."""

    def __init__(
        self,
        target: Callable[[], list[Piece]] = list,
        source: Callable[[], list[Piece]] = list,
        alignment: Callable[[], list[int | None]] = list,
        source_text: str = "",
        ids: tuple[list[int], list[int]] = ([], []),
        tags: int = 0,
    ) -> None:
        """source_text: with spaces in place of a tag. ids: of source and target, without <eos>. tags: the
        first tokens of the source, of its tag."""
        self.source_text, self.ids, self.tags = source_text, ids, tags
        self._find = {"target": target, "source": source, "alignment": alignment}

    @cached_property
    def target(self) -> list[Piece]:
        return self._find["target"]()

    @cached_property
    def source(self) -> list[Piece]:
        return self._find["source"]()

    @cached_property
    def alignment(self) -> list[int | None]:
        return self._find["alignment"]()

    def __deepcopy__(self, memo: dict[int, Any]) -> Pieces:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("target", "source", "alignment", "source_text", "ids", "tags")}


@dataclass(frozen=True)
class Translation:
    """The translation of one text. Its pieces are found when they are first asked for; most callers want the text."""

    text: str
    """Detokenised, without line breaks; empty for a blank or too long text."""
    score: float
    """Total log-probability of the tokens and of <eos>; 0 for a blank or too long source."""
    stopped: Stopped
    """Why it ended: by itself (`eos`), at the cap on its length, or the source was blank or too long to read;
    `failed` is of lines of a file alone, whose translation raised an error."""
    alternatives: list[Translation] = field(default_factory=list)
    """The next best ones, where more than one was asked for."""
    confidence: float | None = None
    """The probability that the translation is acceptable, where `translate` was asked for it and the source has words
    that the model can read; docs/confidence.md."""
    out_of_domain: bool | None = None
    """Whether the source is unlike the text that the model was calibrated on, so that `confidence` may mislead."""
    _pieces: Pieces = field(default_factory=Pieces, repr=False, compare=False, kw_only=True)

    @property
    def tokens(self) -> list[Piece]:
        """The pieces of `text`, each with its characters' place in it."""
        return self._pieces.target

    @property
    def source_tokens(self) -> list[Piece]:
        """The pieces of the source, each with its characters' place in it; none where it is far too long."""
        return self._pieces.source

    @property
    def alignment(self) -> list[int | None]:
        """For each of `tokens` the number of the one of `source_tokens` that it is aligned with, None for none, by the
        encoder-decoder attention of the model, or of the first of an ensemble; docs/alignments.md. The model reads both
        for it, unless `translate` was asked for `alignments`."""
        return self._pieces.alignment

    @property
    def piece_links(self) -> Links:
        """`alignment` as pairs (number of the source piece, number of the target piece)."""
        return piece_links(self.alignment)

    @property
    def word_links(self) -> Links:
        """Pairs (number of the source word, number of the target word), of words that stand between white space. A tag
        of a target language is no word of the source."""
        return word_links(self._pieces.source_text, self.source_tokens, self.text, self.tokens, self.alignment)

    def to_dict(self) -> dict[str, Any]:
        """What the search found, as JSON has it."""
        return {
            "text": self.text,
            "score": self.score,
            **({} if self.confidence is None else {"confidence": self.confidence, "out_of_domain": self.out_of_domain}),
            "tokens": [asdict(piece) for piece in self.tokens],
            "source_tokens": [asdict(piece) for piece in self.source_tokens],
            "stopped": self.stopped,
            "alternatives": [one.to_dict() for one in self.alternatives],
        }


@dataclass(frozen=True)
class TranslatedDocument:
    """The translation of a text of many sentences, or of an HTML document."""

    text: str
    alternatives: list[str]
    """With the second best translation of each sentence, the third, and so on, where more than one was asked for."""
    truncated: bool
    """Whether a sentence was cut off because its translation came to be as long as the model allows."""
