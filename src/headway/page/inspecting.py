"""Looks into one translation: it is found as any other, then the model reads it again with everything recorded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch

from headway.decoding import Hypothesis, Searcher, SearchOptions, TorchEngine, TorchSearcher
from headway.errors import UserError
from headway.insight import what_if
from headway.insight.analyses import Analyses, read_analyses
from headway.insight.analyses.analysis import Analyst, Request
from headway.insight.analyses.reading import Reading
from headway.insight.beams import BeamTree
from headway.insight.editing import RecomputingEngine, edited_model, prefix_logits
from headway.insight.maps import attention_names
from headway.insight.order import LONGEST_SENTENCE, MOST_SENTENCES, WordOrder, find_word_order
from headway.insight.record import Moment, Text, log_probabilities, of_target
from headway.insight.recording import record_pass
from headway.model import Transformer
from headway.page.standalone import ShownRecord
from headway.page.training_file import training_of
from headway.storage import Aligner, ModelDirectory, StoredModel, load_model
from headway.storage.steps import step_of
from headway.text.characters import as_text
from headway.text.numbers import check_numbers
from headway.text.subwords import fingerprint
from headway.text.tokenizer import Piece
from headway.translator.codec import Codec, languages_of
from headway.translator.searching import check_process
from headway.translator.translator import Translator

ALTERNATIVES = 4
"""Maximum number of other translations in a record."""

_word_orders: WeakKeyDictionary[Translator, dict[tuple[str, ...], WordOrder | None]] = WeakKeyDictionary()
"""The result for a tag and the domain of a translator, by both."""


def inspect(
    translator: Translator,
    text: str,
    target: str | None = None,
    *,
    edits: Sequence[what_if.Edit] = (),
    cases: Sequence[Sequence[what_if.Edit]] | Literal["usual"] = (),
    history: Sequence[str | Path] = (),
    analyses: Sequence[str | Mapping[str, Any] | Request] = (),
    order: bool = False,
    beam_size: int | None = None,
) -> ShownRecord:
    """Translates the text, or takes the given `target` as its translation, and returns the record of everything that
    the model computes. `edits` first change a copy of the model, or the text; the record then also has the translation
    without them. `cases` are further edits, each list applied by itself; "usual" are all that a page without a live
    model shows, `order` among them: the sentences of `word_order`. `history` are other model directories of the same
    run, for their attention to the same source and target. `analyses` are the analyses to include
    (`headway.insight.analyses`, docs/analyses.md). Raises UserError."""
    text, target = as_text(text, "text"), None if target is None else as_text(target, "target")
    requests = read_analyses(analyses)
    inspector = _inspector(translator, beam_size)
    tag, plain = translator.info.source_tokenizer.split_tag(text)
    source = partial(inspector.source, tag)
    given = None if target is None else inspector.target(target, tag)
    before = inspector.outcome(source(plain), given) if edits else None
    edited = inspector.edited(edits)
    record = edited.record(source(what_if.edited_text(plain, edits)), given, plain)
    found = edited.analyses(record, requests, tag)
    if cases == "usual":
        cases, order = what_if.usual_cases(translator.info.config, plain), True
    tried = [inspector.case(case, source(what_if.edited_text(plain, case)), record.target) for case in cases]
    models = sorted(map(Path, history), key=lambda path: (step_of(path.name) is None, step_of(path.name) or 0))
    past = [inspector.past(path, record) for path in models]
    arrays = {f"history.{i}.{name}": one for i, (_, weights) in enumerate(past) for name, one in weights.items()}
    return replace(
        record,
        arrays={**record.arrays, **arrays, **dict(found.arrays())},
        edits=list(edits),
        before=before,
        cases=tried,
        order=word_order(translator, text) if order else None,
        history=[moment for moment, _ in past],
        analyses=found,
        training=training_of(translator.info.folder) if isinstance(translator.info, ModelDirectory) else None,
    )


def word_order(translator: Translator, text: str = "") -> WordOrder | None:
    """Two sentences of the same words that the model translates differently, with both translations: of the text, else
    of `domain`, which is tried once. None if no words can be swapped. Raises UserError."""
    inspector = _inspector(translator)
    tag, plain = translator.info.source_tokenizer.split_tag(as_text(text, "text"))
    own = inspector.word_order(tag, [plain])
    if own is not None and own.is_convincing:
        return own
    known, key = _word_orders.setdefault(translator, {}), (tag, *translator.domain)
    if key not in known:
        untagged = (translator.info.source_tokenizer.split_tag(one)[1] for one in translator.domain)
        short = islice((one for one in untagged if len(one) <= LONGEST_SENTENCE), MOST_SENTENCES)
        known[key] = inspector.word_order(tag, short)
    found = [one for one in (own, known[key]) if one is not None]
    return max(found, key=lambda one: one.rank, default=None)


def _inspector(translator: Translator, beam_size: int | None = None) -> Inspector:
    """Raises UserError for an ensemble."""
    check_process(translator.engine)
    if not translator.is_single:
        raise UserError("inspect looks into one model, not into an ensemble")
    options, searcher = translator.search_options(beam_size=beam_size), translator.engines.for_inspecting()
    return Inspector(translator.stored, searcher, options, translator.codec)


@dataclass
class Inspector:
    """Inspects translations of one model, original or edited."""

    stored: StoredModel
    searcher: Searcher
    options: SearchOptions
    codec: Codec
    rereads: bool = False
    """Whether the model's tokens see later ones, so that each step reads all of them again."""

    def record(self, source: Text, target: Text | None, original_text: str) -> ShownRecord:
        """The record of the source with the target; None: the translation that the search finds. original_text: the
        source's before its words were swapped."""
        beam, alternatives, given = None, dict[str, what_if.Outcome](), target is not None
        if target is None:
            watched = isinstance(self.searcher, TorchSearcher) and not self.options.sample
            if watched and self.options.beam_size > 1:
                beam = BeamTree(self.options.beam_size, self.options.length_penalty)
            [best] = self._search([source], **({} if beam is None else {"watch": beam.watch}))
            target = self._found(best)
            if beam is not None:
                beam.end(best, self.stored.model.config.eos_id, self.codec.decode)
                for one in beam.finished:
                    alternatives.setdefault(one.text, what_if.Outcome(one.text, one.score))
                alternatives.pop(target.text, None)
        return ShownRecord(
            config=self.stored.model.config,
            source_language=self.stored.source_language,
            target_language=self.stored.target_language,
            domain=self.stored.domain,
            source=source,
            original_text=original_text,
            target=target,
            target_given=given,
            arrays=record_pass(self.stored.model, source.ids, target.ids, rereads=self.rereads),
            vocabulary=self.stored.target_tokenizer.vocabulary,
            beam=beam,
            alternatives=list(alternatives.values())[:ALTERNATIVES],
            aligner=self.stored.aligner or Aligner(),
            step=step_of(self.stored.name),
        )

    def analyses(self, record: ShownRecord, requests: Sequence[Request], tag: str) -> Analyses:
        """The requested analyses of the record, whose source has the tag, if any. Raises UserError."""
        if requests and self.rereads:
            raise UserError("analyses: they read the whole translation at once, which needs the look-ahead mask")
        split = self.stored.source_tokenizer.split_tag

        def source_ids(text: str) -> list[int]:
            own, plain = split(text)
            return self.source(own or tag, plain).ids

        def target_ids(text: str, source: str = "") -> list[int]:
            return self.target(text, split(source)[0] or tag).ids

        def greedy(model: Transformer) -> what_if.Outcome:
            options = SearchOptions(beam_size=1, max_length=self.options.max_length)
            [best] = replace(self._with(model), options=options)._search([record.source])
            return what_if.Outcome(self.codec.decode(best.ids), best.score)

        reading = Reading.of(self.stored.model, record.source.ids, record.target.ids)
        asked = {type(one): one for one in requests}
        analyst = Analyst(asked, self.stored.model, record.arrays, reading, source_ids, target_ids, greedy)
        return Analyses(**{one.kind: analyst.result(type(one)) for one in requests})

    def outcome(self, source: Text, target: Text | None = None) -> what_if.Tried:
        """The translation that the search finds, or the given one, with its score and words."""
        return self._tried(source, target) if target is not None else self.outcomes([source])[0]

    def outcomes(self, sources: Sequence[Text]) -> list[what_if.Tried]:
        """The translations that the search finds, with their scores and words."""
        found = zip(sources, self._search(sources), strict=True)
        return [self._tried(source, self._found(best), best.score) for source, best in found]

    def case(self, edits: Sequence[what_if.Edit], source: Text, before: Text) -> what_if.WhatIf:
        """The effect of edits. source: the edited one; before: the translation without them. Raises UserError."""
        edited = self.edited(edits)
        return what_if.WhatIf(list(edits), source.text, edited.outcome(source), edited.outcome(source, before))

    def word_order(self, tag: str, texts: Iterable[str]) -> WordOrder | None:
        """The result of `find_word_order` among texts, all with the tag in front of them unless it is empty."""
        fast = replace(self, options=self.options.model_copy(update={"beam_size": 1, "n_best": 1}))

        def tokens(text: str) -> list[int] | None:
            [ids] = self.codec.sources([f"{tag} {text}" if tag else text])
            return ids if ids and len(ids) <= self.codec.longest_source else None

        def translations(inspector: Inspector, texts: Sequence[str]) -> list[what_if.Tried]:
            return inspector.outcomes([self.source(tag, text) for text in texts])

        inspectors = self, self.edited([what_if.PositionsOff()]), fast
        return find_word_order(texts, tokens, *(partial(translations, one) for one in inspectors))

    def past(self, path: Path, record: ShownRecord) -> tuple[Moment, dict[str, Any]]:
        """The score that another model of the same run gives the record's source and target, and its weights by name.
        Raises UserError for a model of another config or vocabulary."""
        stored = load_model(path)
        kinds = [
            (one.model.config, fingerprint(one.source_tokenizer), fingerprint(one.target_tokenizer))
            for one in (stored, self.stored)
        ]
        if kinds[0] != kinds[1]:
            raise UserError(f"{path}: is another kind of model, or has other vocabularies, than the one looked into")
        device = next(self.stored.model.parameters()).device
        arrays = record_pass(stored.model.to(device).eval(), record.source.ids, record.target.ids)
        given = of_target(log_probabilities(arrays["logits"]), record.target)
        weights = {name: arrays[name] for names in attention_names(stored.model.config).values() for name in names}
        return Moment(path.name, step_of(path.name), math.fsum(given)), weights

    def edited(self, edits: Sequence[what_if.Edit]) -> Inspector:
        """An inspector of a copy of the model with the edits. Raises UserError."""
        if all(isinstance(edit, what_if.SwapWords) for edit in edits):
            return self
        return self._with(edited_model(self.stored.model, edits), what_if.sees_ahead(edits))

    def _with(self, model: Transformer, rereads: bool = False) -> Inspector:
        """An inspector of another model with the same vocabularies."""
        never = self.stored.target_tokenizer.never_generated
        engine = RecomputingEngine(model, never) if rereads else TorchEngine(model, never)
        searcher = TorchSearcher(engine, model.config.pad_id, next(model.parameters()).device)
        return replace(self, stored=replace(self.stored, model=model), searcher=searcher, rereads=rereads)

    def source(self, tag: str, text: str) -> Text:
        """The source to inspect; its tag, if it has one, is the first token. Raises UserError."""
        [ids] = self.codec.sources([f"{tag} {text}" if tag else text])
        if not ids or len(ids) > self.codec.longest_source:
            size = f"{len(text):,} characters" if ids is None else f"{len(ids)} tokens"
            raise UserError(f"text of {size} can't be inspected: 1 to {self.codec.longest_source} tokens are needed")
        pieces = self.stored.source_tokenizer.encoded_pieces(text)
        return Text.of(text, ids, [*([Piece(tag, 0, 0)] if tag else []), *pieces], self.stored.model.config.eos_id)

    def target(self, text: str, tag: str = "") -> Text:
        """The target to inspect, as the translation of a source with this tag. Raises UserError."""
        ids = self.codec.translation(tag, text)
        if ids is None or len(ids) > self.codec.longest_source:
            raise UserError(f"the target has more than {self.codec.longest_source} tokens, so it can't be inspected")
        return Text.of(text, ids, self.codec.translation_pieces(tag, text), self.stored.model.config.eos_id)

    def _found(self, hypothesis: Hypothesis) -> Text:
        """The translation of a record."""
        pieces = self.stored.target_tokenizer.decoded_pieces(hypothesis.ids)
        return Text.of(self.codec.decode(hypothesis.ids), hypothesis.ids, pieces, self.stored.model.config.eos_id)

    def _search(self, sources: Sequence[Text], **watch: Any) -> list[Hypothesis]:
        """The best hypothesis of each source, as `Translator.translate` finds it. watch: of `TorchSearcher.search`."""
        caps = [self.codec.length_cap(len(one.tokens) - 1, 0, self.options.max_length) for one in sources]
        prefixes = [self.codec.opening(one.tokens[0].piece) for one in sources]
        options = self.options
        if options.check_numbers:
            options = options.model_copy(update={"n_best": options.beam_size})
        every = self.searcher.search([one.ids[:-1] for one in sources], options, caps, prefixes, **watch)
        return [
            min(found, key=partial(self._has_wrong_numbers, one)) if options.check_numbers else found[0]
            for one, found in zip(sources, every, strict=True)
        ]

    def _has_wrong_numbers(self, source: Text, hypothesis: Hypothesis) -> bool:
        tag, _ = self.stored.source_tokenizer.split_tag(source.tokens[0].piece)
        return bool(check_numbers(source.text, self.codec.decode(hypothesis.ids), languages_of(self.stored, tag)))

    @torch.inference_mode()
    def _tried(self, source: Text, target: Text, score: float | None = None) -> what_if.Tried:
        """score: that of the search; None: the sum over the tokens."""
        model, reading = self.stored.model, Reading.of(self.stored.model, source.ids, target.ids)
        ids = reading.source[None], reading.read[None]
        [logits] = prefix_logits(model, *ids) if self.rereads else model(*ids)
        given = of_target(log_probabilities(logits.float().cpu().numpy()), target)
        return what_if.Tried(target.text, math.fsum(given) if score is None else score, target.words(given))
