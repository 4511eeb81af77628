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
    PositionsOff,
    Text,
    TranslationRecord,
    WhatIf,
    WordOrder,
    attention_names,
    changes_model,
    edited_model,
    log_probabilities,
    record_pass,
    sees_ahead,
)
from headway.insight.recomputing import RecomputingEngine
from headway.storage import StoredModel, load_model
from headway.storage.steps import step_of
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
    cap: Callable[[int], int]
    """The most tokens of the translation of a source of so many."""
    decode: Callable[[Sequence[int]], str]
    rereads: bool = False
    """Whether the model's tokens see later ones, so that each step reads all of them anew."""

    def record(self, source: Text, target: Text | None, original_text: str) -> TranslationRecord:
        """The record of the source with the target; None: the translation that the search finds. original_text: the
        source's before its words were swapped."""
        beam, alternatives, given = None, [], target is not None
        if target is None:
            best, beam = self._find(source)
            pieces = self.stored.target_tokenizer.decoded_pieces(best.ids)
            target = Text.of(self.decode(best.ids), best.ids, pieces, self.stored.model.config.eos_id)
            alternatives = [] if beam is None else _alternatives(beam, target.text)
        return TranslationRecord(
            config=self.stored.model.config,
            source_language=self.stored.source_language,
            target_language=self.stored.target_language,
            source=source,
            original_text=original_text,
            target=target,
            target_given=given,
            arrays=record_pass(self.stored.model, source.ids, target.ids, rereads=self.rereads),
            vocabulary=self.stored.target_tokenizer.vocabulary,
            beam=beam,
            alternatives=alternatives,
            step=step_of(self.stored.name),
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

    def try_order(self, order: WordOrder, sources: Sequence[Text]) -> WordOrder:
        """What the model makes of the two sentences, with positions and without. sources: the sentences."""
        blind = self.edited([PositionsOff()])
        with_positions, without_positions = (tuple(map(one.outcome, sources)) for one in (self, blind))
        return replace(order, with_positions=with_positions, without_positions=without_positions)

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
        return Moment(path.name, step_of(path.name), float(given.sum())), weights

    def edited(self, edits: Sequence[Edit]) -> Inspector:
        """One of a copy of the model with the edits. Raises UserError."""
        if not changes_model(edits):
            return self
        model = edited_model(self.stored.model, edits)
        never, rereads = self.stored.target_tokenizer.never_generated, sees_ahead(edits)
        engine = RecomputingEngine(model, never) if rereads else TorchEngine(model, never)
        searcher = TorchSearcher(engine, model.config.pad_id, next(model.parameters()).device)
        return replace(self, stored=replace(self.stored, model=model), searcher=searcher, rereads=rereads)

    def _find(self, source: Text) -> tuple[Hypothesis, BeamTree | None]:
        """Searches for the translation as `Translator.translate` does."""
        work = [source.ids[:-1]], self.options, [self.cap(len(source.tokens) - 1)], [[]]
        if not isinstance(self.searcher, TorchSearcher) or self.options.beam_size == 1 or self.options.sample:
            [[best, *_]] = self.searcher.search(*work)
            return best, None
        beam = BeamTree(self.options.beam_size, self.options.length_penalty)
        [[best, *_]] = self.searcher.search(*work, beam.watch)
        beam.end(best, self.stored.model.config.eos_id, self.decode)
        return best, beam

    def _score(self, source: Text, target: Text) -> float:
        [score] = self.searcher.score([source.ids[:-1]], [target.ids[:-1]])
        return score


def _alternatives(beam: BeamTree, best: str) -> list[Outcome]:
    """The other translations that the beam has finished, best first, each text once."""
    others: dict[str, Outcome] = {}
    for one in beam.finished:
        if one.text != best:
            others.setdefault(one.text, Outcome(one.text, one.score))
    return list(others.values())[:ALTERNATIVES]
