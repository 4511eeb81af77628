"""The front door of using a model: raw text in, `Translation` out.

translator = Translator.load("runs/x")
[translation] = translator.translate(["Ein Hund läuft."])
print(translation.text)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from headway.decoding import Hypothesis, TorchEngine, greedy
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

    def translate(self, texts: Sequence[str], *, max_length: int | None = None) -> list[Translation]:
        """Translates each text, in order, one `Translation` each.

        `max_length` caps the pieces of a translation; by default the model directory's, else twice the source's
        length and 50 more. Blank text gives a blank translation; text that is longer than the model can read gives a
        blank one whose `stopped` is "too_long".
        """
        max_length = max_length if max_length is not None else self.stored.decoding.get("max_length")
        if max_length is not None and max_length < 1:
            raise UserError(f"max_length={max_length}: must be at least 1")
        sources = [self.stored.source_tokenizer.encode(text) for text in texts]
        readable = [i for i, ids in enumerate(sources) if 0 < len(ids) <= self.longest_source]
        readable.sort(key=lambda i: len(sources[i]), reverse=True)
        found: dict[int, Hypothesis] = {}
        for batch in self._batches(readable, sources):
            caps = [self._length_cap(len(sources[i]), max_length) for i in batch]
            rows = pad([np.asarray(sources[i], dtype=np.int32) for i in batch], eos=True)
            hypotheses = greedy(self._engine, torch.from_numpy(rows).to(self.device), caps)
            found.update(zip(batch, hypotheses, strict=True))
        return [self._translation(ids, found.get(i)) for i, ids in enumerate(sources)]

    def inspect(self, text: str) -> TranslationRecord:
        """Translates the text and returns the record of what happened inside: every attention map."""
        source = self.stored.source_tokenizer.encode(text)
        if not 0 < len(source) <= self.longest_source:
            raise UserError(f"text of {len(source)} pieces can't be inspected: 1 to {self.longest_source} are needed")
        row = torch.tensor([[*source, self.model.config.eos_id]], device=self.device)
        [hypothesis] = greedy(self._engine, row, [self._length_cap(len(source), None)])
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

    def _translation(self, source: list[int], hypothesis: Hypothesis | None) -> Translation:
        source_tokens = self.stored.source_tokenizer.pieces(source)
        if hypothesis is None:
            return Translation("", 0.0, [], source_tokens, "too_long" if source else "blank")
        target = self.stored.target_tokenizer
        text = target.decode(hypothesis.ids).translate(_LINE_BREAKS)
        return Translation(text, hypothesis.score, target.pieces(hypothesis.ids), source_tokens, hypothesis.stopped)


_LINE_BREAKS = str.maketrans("\n\r", "  ")
"""Byte pieces can spell a line break; one text is one line."""
