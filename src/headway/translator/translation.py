"""What translating a text gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from headway.text.tokenizer import Piece

Stopped = Literal["eos", "max_length", "blank", "too_long", "failed"]


class Pieces:
    """The pieces of a translation and of its source, and how they are aligned: each found when it is first asked for,
    and kept. Copies of a translation share them; pickled, they are all found first and the model stays behind."""

    def __init__(
        self,
        target: Callable[[], list[Piece]] = list,
        source: Callable[[], list[Piece]] = list,
        alignment: Callable[[], list[int]] = list,
    ) -> None:
        self._find = {"target": target, "source": source, "alignment": alignment}

    @cached_property
    def target(self) -> list[Piece]:
        return self._find["target"]()

    @cached_property
    def source(self) -> list[Piece]:
        return self._find["source"]()

    @cached_property
    def alignment(self) -> list[int]:
        return self._find["alignment"]()

    def __deepcopy__(self, memo: dict[int, Any]) -> Pieces:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("target", "source", "alignment")}


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
    def alignment(self) -> list[int]:
        """For each of `tokens` the number of the one of `source_tokens` that it is aligned with, by the encoder-decoder
        attention of the model, or of the first of an ensemble; docs/record.md. The model reads both for it."""
        return self._pieces.alignment

    def to_dict(self) -> dict[str, Any]:
        """What the search found, as JSON has it."""
        return {
            "text": self.text,
            "score": self.score,
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
