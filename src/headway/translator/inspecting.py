"""Looking into one translation: found as every other, then read once more by the model with everything recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from headway.decoding import Hypothesis, Searcher, SearchOptions, TorchEngine, TorchSearcher
from headway.errors import UserError
from headway.glass import ShownRecord
from headway.insight import (
    BeamTree,
    Edit,
    Moment,
    Outcome,
    PositionsOff,
    Text,
    WhatIf,
    WordOrder,
    attention_names,
    changes_model,
    edited_model,
    edited_text,
    log_probabilities,
    record_pass,
    sees_ahead,
    usual_cases,
    word_order,
)
from headway.insight.analyses import Analyses, AskedAnalysis
from headway.insight.recomputing import RecomputingEngine
from headway.model import Transformer
from headway.storage import Aligner, StoredModel, load_model
from headway.storage.steps import step_of
from headway.text.tokenizer import Piece, fingerprint
from headway.translator.analysing import Analyst
from headway.translator.codec import Codec

ALTERNATIVES = 4
"""Other translations that a record has, at most."""


@dataclass
class Inspector:
    """Inspects translations of one model, as it is or edited."""

    stored: StoredModel
    searcher: Searcher
    """Over the stored model."""
    options: SearchOptions
    codec: Codec
    rereads: bool = False
    """Whether the model's tokens see later ones, so that each step reads all of them anew."""

    def inspect(
        self,
        text: str,
        target: str | None,
        edits: Sequence[Edit],
        cases: Sequence[Sequence[Edit]] | Literal["usual"],
        history: Sequence[str | Path],
        analyses: Sequence[AskedAnalysis] = (),
    ) -> ShownRecord:
        """As `Translator.inspect`. Raises UserError."""
        tag, text = self.stored.source_tokenizer.split_tag(text)
        source = partial(self._source, tag)
        given = None if target is None else self._target(target)
        before = self.outcome(source(text), given) if edits else None
        edited = self.edited(edits)
        record = edited.record(source(edited_text(text, edits)), given, text)
        found = edited.analyses(record, analyses, source)
        order = word_order(self.stored.source_language, text)
        if cases == "usual":
            cases = usual_cases(self.stored.model.config, text)
            if order is not None and all(self.codec.is_readable(f"{tag} {one}") for one in order.sentences):
                order = self.try_order(order, [source(one) for one in order.sentences])
        tried = [self.what_if(case, source(edited_text(text, case)), record.target) for case in cases]
        past = [self.past(path, record) for path in sorted(map(Path, history), key=_first_to_last)]
        arrays = {f"history.{i}.{name}": one for i, (_, weights) in enumerate(past) for name, one in weights.items()}
        return replace(
            record,
            arrays={**record.arrays, **arrays, **dict(found.arrays())},
            edits=list(edits),
            before=before,
            cases=tried,
            order=order,
            history=[moment for moment, _ in past],
            analyses=found,
        )

    def record(self, source: Text, target: Text | None, original_text: str) -> ShownRecord:
        """The record of the source with the target; None: the translation that the search finds. original_text: the
        source's before its words were swapped."""
        beam, alternatives, given = None, [], target is not None
        if target is None:
            best, beam = self._find(source)
            pieces = self.stored.target_tokenizer.decoded_pieces(best.ids)
            target = Text.of(self.codec.decode(best.ids), best.ids, pieces, self.stored.model.config.eos_id)
            alternatives = [] if beam is None else _alternatives(beam, target.text)
        return ShownRecord(
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
            aligner=self.stored.aligner or Aligner(),
            step=step_of(self.stored.name),
        )

    def analyses(self, record: ShownRecord, asked: Sequence[AskedAnalysis], source: Callable[[str], Text]) -> Analyses:
        """Of the record's translation. source: of a text, with the tag of the record's. Raises UserError."""
        if asked and self.rereads:
            raise UserError("analyses: they read the whole translation at once, which needs the look-ahead mask")
        return Analyst(
            self.stored.model,
            record,
            asked,
            source_ids=lambda text: self._tagged_ids(text, source),
            target_ids=lambda text: self._target(text).ids,
            greedy=lambda model: self._greedy(model, record.source),
        ).analyses()

    def outcome(self, source: Text, target: Text | None = None) -> Outcome:
        """The translation that the search finds, or the given one, and its score."""
        if target is not None:
            return Outcome(target.text, self._score(source, target))
        best, _ = self._find(source)
        return Outcome(self.codec.decode(best.ids), best.score)

    def what_if(self, edits: Sequence[Edit], source: Text, before: Text) -> WhatIf:
        """What the edits do. source: as they leave it; before: the translation without them. Raises UserError."""
        edited = self.edited(edits)
        return WhatIf(list(edits), source.text, edited.outcome(source), edited._score(source, before))

    def try_order(self, order: WordOrder, sources: Sequence[Text]) -> WordOrder:
        """What the model makes of the two sentences, with positions and without. sources: the sentences."""
        blind = self.edited([PositionsOff()])
        with_positions, without_positions = (tuple(map(one.outcome, sources)) for one in (self, blind))
        return replace(order, with_positions=with_positions, without_positions=without_positions)

    def past(self, path: Path, record: ShownRecord) -> tuple[Moment, dict[str, Any]]:
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

    def _source(self, tag: str, text: str) -> Text:
        """The text as it is to be inspected; its tag, where it has one, is the first token. Raises UserError."""
        [ids] = self.codec.sources([f"{tag} {text}" if tag else text])
        if not ids or len(ids) > self.codec.longest_source:
            size = f"{len(text):,} characters" if ids is None else f"{len(ids)} tokens"
            raise UserError(f"text of {size} can't be inspected: 1 to {self.codec.longest_source} tokens are needed")
        pieces = self.stored.source_tokenizer.encoded_pieces(text)
        return Text.of(text, ids, [*([Piece(tag, 0, 0)] if tag else []), *pieces], self.stored.model.config.eos_id)

    def _target(self, text: str) -> Text:
        """The text as the translation that is to be inspected. Raises UserError."""
        ids = self.codec.target(text)
        if ids is None or len(ids) > self.codec.longest_source:
            raise UserError(f"the target has more than {self.codec.longest_source} tokens, so it can't be inspected")
        pieces = self.stored.target_tokenizer.encoded_pieces(text)
        return Text.of(text, ids, pieces, self.stored.model.config.eos_id)

    def _find(self, source: Text) -> tuple[Hypothesis, BeamTree | None]:
        """Searches for the translation as `Translator.translate` does."""
        cap = self.codec.length_cap(len(source.tokens) - 1, 0, self.options.max_length)
        work = [source.ids[:-1]], self.options, [cap], [[]]
        if not isinstance(self.searcher, TorchSearcher) or self.options.beam_size == 1 or self.options.sample:
            [[best, *_]] = self.searcher.search(*work)
            return best, None
        beam = BeamTree(self.options.beam_size, self.options.length_penalty)
        [[best, *_]] = self.searcher.search(*work, beam.watch)
        beam.end(best, self.stored.model.config.eos_id, self.codec.decode)
        return best, beam

    def _tagged_ids(self, text: str, source: Callable[[str], Text]) -> list[int]:
        """With the tag that the text begins with, or as `source` does it. Raises UserError."""
        tag, plain = self.stored.source_tokenizer.split_tag(text)
        return (self._source(tag, plain) if tag else source(text)).ids

    def _greedy(self, model: Transformer, source: Text) -> Outcome:
        """What greedy search finds with another model of the same vocabularies."""
        engine = TorchEngine(model, self.stored.target_tokenizer.never_generated)
        searcher = TorchSearcher(engine, model.config.pad_id, next(model.parameters()).device)
        cap = self.codec.length_cap(len(source.tokens) - 1, 0, self.options.max_length)
        [[best, *_]] = searcher.search([source.ids[:-1]], SearchOptions(beam_size=1), [cap], [[]])
        return Outcome(self.codec.decode(best.ids), best.score)

    def _score(self, source: Text, target: Text) -> float:
        [score] = self.searcher.score([source.ids[:-1]], [target.ids[:-1]])
        return score


def _first_to_last(model: Path) -> tuple[bool, int]:
    """Models whose names say no step come last."""
    step = step_of(model.name)
    return step is None, step or 0


def _alternatives(beam: BeamTree, best: str) -> list[Outcome]:
    """The other translations that the beam has finished, best first, each text once."""
    others: dict[str, Outcome] = {}
    for one in beam.finished:
        if one.text != best:
            others.setdefault(one.text, Outcome(one.text, one.score))
    return list(others.values())[:ALTERNATIVES]
