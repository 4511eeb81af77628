"""Looking into one translation: found as every other, then read once more by the model with everything recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.decoding import Hypothesis, Searcher, SearchOptions, TorchEngine
from headway.errors import UserError
from headway.insight import (
    BeamTree,
    Edit,
    Moment,
    Outcome,
    Text,
    TranslationRecord,
    WhatIf,
    attention_names,
    changes_model,
    edited_model,
    log_probabilities,
    record_pass,
    sees_ahead,
)
from headway.insight.recomputing import RecomputingEngine
from headway.storage import StoredModel, load_model
from headway.text.tokenizer import fingerprint
from headway.translator.torch_searcher import TorchSearcher

ALTERNATIVES = 4
"""Other translations that a record has, at most."""


@dataclass
class Inspector:
    """Inspects translations of one model, as it is or edited."""

    stored: StoredModel
    searcher: Searcher
    """Over the stored model."""
    options: SearchOptions
    cap: int
    """The most tokens of a translation."""
    decode: Callable[[Sequence[int]], str]

    def record(self, source: Text, target: Text | None) -> TranslationRecord:
        """The record of the source with the target; None: the translation that the search finds."""
        beam, alternatives = None, []
        if target is None:
            best, beam = self._find(source)
            pieces = self.stored.target_tokenizer.decoded_pieces(best.ids)
            target = Text.of(self.decode(best.ids), best.ids, pieces, self.stored.model.config.eos_id)
            alternatives = [] if beam is None else self._alternatives(beam, best)
        return TranslationRecord(
            config=self.stored.model.config,
            source_language=self.stored.source_language,
            target_language=self.stored.target_language,
            source=source,
            target=target,
            arrays=record_pass(self.stored.model, source.ids, target.ids),
            vocabulary=self.stored.target_tokenizer.vocabulary,
            beam=beam,
            alternatives=alternatives,
        )

    def outcome(self, source: Text, target: Text | None = None) -> Outcome:
        """The translation that the search finds, or the given one, and its score."""
        if target is not None:
            return Outcome(target.text, self._score(source, target))
        best, _ = self._find(source)
        return Outcome(self.decode(best.ids), best.score)

    def what_if(self, edits: Sequence[Edit], source: Text, before: Text) -> WhatIf:
        """What the edits do. source: as they leave it; before: the translation without them. Raises UserError."""
        edited = self.edited(edits)
        return WhatIf(list(edits), source.text, edited.outcome(source), edited._score(source, before))

    def past(self, path: Path, record: TranslationRecord) -> tuple[Moment, dict[str, Any]]:
        """What another model of the same run makes of the record's source and target: its score, and its weights by
        name. Raises UserError for a model that isn't like this one."""
        stored = load_model(path)
        alike = stored.model.config == self.stored.model.config
        for side in ("source_tokenizer", "target_tokenizer"):
            alike = alike and fingerprint(getattr(stored, side)) == fingerprint(getattr(self.stored, side))
        if not alike:
            raise UserError(f"{path}: is another kind of model, or has other vocabularies, than the one looked into")
        device = next(self.stored.model.parameters()).device
        arrays = record_pass(stored.model.to(device).eval(), record.source.ids, record.target.ids)
        given = log_probabilities(arrays["logits"])[range(len(record.target.ids)), record.target.ids]
        weights = {name: arrays[name] for names in attention_names(self.stored.model.config).values() for name in names}
        return Moment(path.name, float(given.sum())), weights

    def edited(self, edits: Sequence[Edit]) -> Inspector:
        """One of a copy of the model with the edits. Raises UserError."""
        if not changes_model(edits):
            return self
        model = edited_model(self.stored.model, edits)
        never = self.stored.target_tokenizer.never_generated
        engine = RecomputingEngine(model, never) if sees_ahead(edits) else TorchEngine(model, never)
        searcher = TorchSearcher(engine, model.config.pad_id, next(model.parameters()).device)
        return replace(self, stored=replace(self.stored, model=model), searcher=searcher)

    def _find(self, source: Text) -> tuple[Hypothesis, BeamTree | None]:
        """Searches for the translation as `Translator.translate` does."""
        work = [source.ids[:-1]], self.options, [self.cap], [[]]
        if not isinstance(self.searcher, TorchSearcher) or self.options.beam_size == 1 or self.options.sample:
            [[best, *_]] = self.searcher.search(*work)
            return best, None
        beam = BeamTree(self.options.beam_size, self.options.length_penalty)
        [[best, *_]] = self.searcher.search(*work, beam.watch)
        beam.set_result(best, self.stored.model.config.eos_id)
        return best, beam

    def _alternatives(self, beam: BeamTree, best: Hypothesis) -> list[Outcome]:
        """The other translations that the beam has finished, best first, each text once."""
        others: dict[str, Outcome] = {}
        for ids, score in beam.finished():
            text = self.decode(ids[:-1])
            if text != self.decode(best.ids):
                others.setdefault(text, Outcome(text, score))
        return list(others.values())[:ALTERNATIVES]

    def _score(self, source: Text, target: Text) -> float:
        [score] = self.searcher.score([source.ids[:-1]], [target.ids[:-1]])
        return score
