"""The front door of using a model: raw text in, `Translation` out.

translator = Translator.load("runs/x")
[translation] = translator.translate(["Ein Hund läuft."])
print(translation.text)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from headway.decoding import Hypothesis, TorchEngine, beam_search, greedy
from headway.devices import DeviceName, pick_device
from headway.errors import UserError
from headway.insight import TranslationRecord, record_translation
from headway.storage import StoredModel, load_model
from headway.text.batches import pad

Stopped = Literal["eos", "max_length", "blank", "too_long"]

ROWS_PER_BATCH = 64
TOKENS_PER_BATCH = 4096
"""Padded source tokens that are translated together, at most."""


@dataclass(frozen=True)
class Translation:
    """The translation of one text."""

    text: str
    """Detokenised, without line breaks; empty for a blank or too long text."""
    score: float
    """Total log-probability of the tokens, and of <eos> where the translation ended by it; 0 for empty text."""
    tokens: list[str]
    source_tokens: list[str]
    stopped: Stopped
    """Why it ended: by itself (`eos`), at the cap on its length, or the source was blank or too long to read."""
    alternatives: list[Translation] = field(default_factory=list)
    """The next best ones, where more than one was asked for."""


@dataclass(frozen=True)
class SearchOptions:
    """How to search. Raises UserError for what is impossible."""

    beam_size: int = 5
    """Hypotheses that are followed side by side; 1 is greedy search."""
    length_penalty: float = 1.0
    """Alpha of GNMT's length penalty, see `headway.decoding.beam.length_penalty`; 0 ranks by total log-probability."""
    max_length: int | None = None
    """Most pieces of a translation; by default twice the source's and 50 more."""
    n_best: int = 1
    """Translations of each text; the others are `alternatives` of the best."""

    def __post_init__(self) -> None:
        for name in ("beam_size", "max_length", "n_best"):
            value = getattr(self, name)
            if value is None and name == "max_length":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UserError(f"{name}={value!r}: must be a whole number, at least 1")
        if not isinstance(self.length_penalty, (int, float)) or not 0.0 <= self.length_penalty <= 10.0:
            raise UserError(f"length_penalty={self.length_penalty!r}: must be between 0 and 10")
        if self.n_best > self.beam_size:
            raise UserError(f"n_best={self.n_best} is more than beam_size={self.beam_size}")


class Translator:
    """A model with its tokenizers, on a device, ready to translate."""

    def __init__(self, stored: StoredModel, *, device: DeviceName | torch.device = "auto") -> None:
        self.stored = stored
        self.device = pick_device(device)
        self.model = stored.model.to(self.device).eval()
        self._engine = TorchEngine(self.model)

    @classmethod
    def load(cls, path: str | Path, *, device: DeviceName = "auto") -> Translator:
        """Loads a model directory, or the best model of a run directory. Raises UserError."""
        return cls(load_model(Path(path)), device=device)

    @property
    def longest_source(self) -> int:
        """The most pieces that a text may have."""
        return self.model.config.max_length - 1  # <eos> takes a place

    def search_options(self, **options: Any) -> SearchOptions:
        """The options that are given (not None), else the model directory's, else the defaults. Raises UserError."""
        given = {name: value for name, value in options.items() if value is not None}
        try:
            return SearchOptions(**{**self.stored.decoding, **given})
        except TypeError as error:
            raise UserError(f"search options: {error}") from None

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        n_best: int | None = None,
    ) -> list[Translation]:
        """Translates each text, in order, one `Translation` each; options as in `search_options`.

        Blank text gives a blank translation; text that is longer than the model can read gives a blank one whose
        `stopped` is "too_long".
        """
        if isinstance(texts, str):
            raise TypeError("translate takes a list of texts; for one text, give [text]")
        options = self.search_options(
            beam_size=beam_size, length_penalty=length_penalty, max_length=max_length, n_best=n_best
        )
        sources = [self.stored.source_tokenizer.encode(text) for text in texts]
        readable = [i for i, ids in enumerate(sources) if 0 < len(ids) <= self.longest_source]
        readable.sort(key=lambda i: len(sources[i]), reverse=True)
        found: dict[int, list[Hypothesis]] = {}
        for batch in self._batches(readable, sources):
            found.update(zip(batch, self._search([sources[i] for i in batch], options), strict=True))
        return [self._translation(ids, found.get(i, [])[: options.n_best]) for i, ids in enumerate(sources)]

    def _search(self, sources: list[list[int]], options: SearchOptions) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first."""
        caps = [self._length_cap(len(source), options.max_length) for source in sources]
        config = self.model.config
        padded = pad([[*source, config.eos_id] for source in sources], config.pad_id)
        rows = torch.from_numpy(padded).to(self.device)  # (batch, source length)
        if options.beam_size == 1:
            return [[hypothesis] for hypothesis in greedy(self._engine, rows, caps)]
        return beam_search(self._engine, rows, caps, beam_size=options.beam_size, alpha=options.length_penalty)

    def inspect(self, text: str) -> TranslationRecord:
        """Translates the text and returns the record of what happened inside: every attention map."""
        source = self.stored.source_tokenizer.encode(text)
        if not 0 < len(source) <= self.longest_source:
            raise UserError(f"text of {len(source)} pieces can't be inspected: 1 to {self.longest_source} are needed")
        [[hypothesis, *_]] = self._search([source], self.search_options())
        return record_translation(
            self.model,
            source,
            hypothesis.ids,
            self.stored.source_tokenizer.pieces(source),
            self.stored.target_tokenizer.pieces(hypothesis.ids),
        )

    def _length_cap(self, source_length: int, max_length: int | None) -> int:
        cap = max_length if max_length is not None else 2 * source_length + 50
        return min(cap, self.model.config.max_length - 1)  # <bos> takes a place

    def _batches(self, order: list[int], sources: list[list[int]]) -> list[list[int]]:
        batches: list[list[int]] = []
        start = 0
        while start < len(order):
            width = len(sources[order[start]]) + 1  # the longest of the batch comes first
            end = start + max(1, min(ROWS_PER_BATCH, TOKENS_PER_BATCH // width))
            batches.append(order[start:end])
            start = end
        return batches

    def _translation(self, source: list[int], hypotheses: list[Hypothesis]) -> Translation:
        source_tokens = self.stored.source_tokenizer.pieces(source)
        if not hypotheses:
            return Translation("", 0.0, [], source_tokens, "too_long" if source else "blank")
        best, *others = [self._from_hypothesis(hypothesis, source_tokens) for hypothesis in hypotheses]
        return replace(best, alternatives=others)

    def _from_hypothesis(self, hypothesis: Hypothesis, source_tokens: list[str]) -> Translation:
        target = self.stored.target_tokenizer
        text = target.decode(hypothesis.ids).translate(_LINE_BREAKS)
        return Translation(text, hypothesis.score, target.pieces(hypothesis.ids), source_tokens, hypothesis.stopped)


_LINE_BREAKS = str.maketrans("\n\r", "  ")
"""Byte pieces can spell a line break; one text is one line."""
