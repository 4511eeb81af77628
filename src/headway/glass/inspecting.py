"""Looking into one translation: found as every other, then read once more by the model with everything recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch

from headway.decoding import Hypothesis, Searcher, SearchOptions, TorchEngine, TorchSearcher
from headway.errors import UserError
from headway.glass.analysing import Analyst
from headway.glass.record import ShownRecord
from headway.insight import (
    BeamTree,
    Edit,
    Moment,
    Outcome,
    PositionsOff,
    Text,
    Tried,
    WhatIf,
    WordOrder,
    attention_names,
    changes_model,
    edited_model,
    edited_text,
    find_word_order,
    log_probabilities,
    record_pass,
    sees_ahead,
    usual_cases,
)
from headway.insight.analyses import Analyses, AnalysisName, AskedAnalysis, read_analyses
from headway.insight.order import LONGEST_SENTENCE, MOST_SENTENCES
from headway.insight.recomputing import RecomputingEngine, prefix_logits
from headway.model import Transformer
from headway.storage import Aligner, StoredModel, load_model
from headway.storage.steps import step_of
from headway.text.texts import as_text
from headway.text.tokenizer import Piece, fingerprint
from headway.translator.codec import Codec
from headway.translator.searching import check_process
from headway.translator.translator import Translator

ALTERNATIVES = 4
"""Other translations that a record has, at most."""

_word_orders: WeakKeyDictionary[Translator, dict[str, WordOrder | None]] = WeakKeyDictionary()
"""For each tag, what was found in the domain of a translator."""


def inspect(
    translator: Translator,
    text: str,
    target: str | None = None,
    *,
    edits: Sequence[Edit] = (),
    cases: Sequence[Sequence[Edit]] | Literal["usual"] = (),
    history: Sequence[str | Path] = (),
    analyses: Sequence[AnalysisName | AskedAnalysis] = (),
    order: bool = False,
    beam_size: int | None = None,
) -> ShownRecord:
    """Translates the text, or takes the given `target` as its translation, and returns the record of everything
    that the model computes. `edits` first change a copy of the model, or the text; the record then also has the
    translation without them. `cases` are further edits, each list applied by itself; "usual" are all that a page
    without a live model shows, `order` among them: the sentences of `word_order`. `history` are other model
    directories of the same run, for their attention to the same source and target. `analyses` are the analyses to
    include (`headway.insight.analyses`, docs/analyses.md).
    Raises UserError."""
    text, target = as_text(text, "text"), None if target is None else as_text(target, "target")
    asked = read_analyses(list(analyses))
    record = _inspector(translator, beam_size).inspect(text, target, edits, cases, history, asked)
    return replace(record, order=word_order(translator, text)) if order or cases == "usual" else record


def word_order(translator: Translator, text: str = "") -> WordOrder | None:
    """Two sentences of the same words that the model translates differently, with what it makes of them: of the
    text, else of `domain`, which is tried once; `find_word_order` says how. None where no words can be swapped.
    Raises UserError."""
    inspector = _inspector(translator)
    tag, plain = translator.stored.source_tokenizer.split_tag(as_text(text, "text"))
    own = inspector.word_order(tag, [plain])
    if own is not None and own.is_convincing:
        return own
    known = _word_orders.setdefault(translator, {})
    if tag not in known:
        untagged = (translator.stored.source_tokenizer.split_tag(one)[1] for one in translator.domain)
        short = islice((one for one in untagged if len(one) <= LONGEST_SENTENCE), MOST_SENTENCES)
        known[tag] = inspector.word_order(tag, short)
    found = [one for one in (own, known[tag]) if one is not None]
    return max(found, key=lambda one: one.rank, default=None)


def _inspector(translator: Translator, beam_size: int | None = None) -> Inspector:
    """Raises UserError for an ensemble."""
    check_process(translator.engine)
    if not translator.is_single:
        raise UserError("inspect looks into one model, not into an ensemble")
    options = translator.search_options(beam_size=beam_size)
    return Inspector(translator.stored, translator.searcher, options, translator.codec)


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
        if cases == "usual":
            cases = usual_cases(self.stored.model.config, text)
        tried = [self.what_if(case, source(edited_text(text, case)), record.target) for case in cases]
        past = [self.past(path, record) for path in sorted(map(Path, history), key=_first_to_last)]
        arrays = {f"history.{i}.{name}": one for i, (_, weights) in enumerate(past) for name, one in weights.items()}
        return replace(
            record,
            arrays={**record.arrays, **arrays, **dict(found.arrays())},
            edits=list(edits),
            before=before,
            cases=tried,
            history=[moment for moment, _ in past],
            analyses=found,
        )

    def record(self, source: Text, target: Text | None, original_text: str) -> ShownRecord:
        """The record of the source with the target; None: the translation that the search finds. original_text: the
        source's before its words were swapped."""
        beam, alternatives, given = None, [], target is not None
        if target is None:
            best, beam = self._find(source)
            target = self._found(best)
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

    def outcome(self, source: Text, target: Text | None = None) -> Tried:
        """The translation that the search finds, or the given one, with its score and words."""
        if target is None:
            best, _ = self._find(source)
            return self._tried(source, self._found(best), best.score)
        return self._tried(source, target)

    def what_if(self, edits: Sequence[Edit], source: Text, before: Text) -> WhatIf:
        """What the edits do. source: as they leave it; before: the translation without them. Raises UserError."""
        edited = self.edited(edits)
        return WhatIf(list(edits), source.text, edited.outcome(source), edited.outcome(source, before))

    def word_order(self, tag: str, texts: Iterable[str]) -> WordOrder | None:
        """What `find_word_order` finds among texts, all with the tag in front of them where it isn't empty."""
        fast = replace(self, options=replace(self.options, beam_size=1, n_best=1))
        inspectors = self, self.edited([PositionsOff()]), fast

        def tokens(text: str) -> list[int] | None:
            [ids] = self.codec.sources([f"{tag} {text}" if tag else text])
            return ids if ids and len(ids) <= self.codec.longest_source else None

        def translations(inspector: Inspector, texts: Sequence[str]) -> list[Tried]:
            return inspector.outcomes([self._source(tag, text) for text in texts])

        return find_word_order(texts, tokens, *(partial(translations, one) for one in inspectors))

    def outcomes(self, sources: Sequence[Text]) -> list[Tried]:
        """As `outcome`, of several sources at once."""
        caps = [self.codec.length_cap(len(one.tokens) - 1, 0, self.options.max_length) for one in sources]
        work = [one.ids[:-1] for one in sources], self.options, caps, [[] for _ in sources]
        found = (best for best, *_ in self.searcher.search(*work))
        return [self._tried(source, self._found(best), best.score) for source, best in zip(sources, found, strict=True)]

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

    def _found(self, hypothesis: Hypothesis) -> Text:
        """As the translation of a record."""
        pieces = self.stored.target_tokenizer.decoded_pieces(hypothesis.ids)
        return Text.of(self.codec.decode(hypothesis.ids), hypothesis.ids, pieces, self.stored.model.config.eos_id)

    @torch.inference_mode()
    def _tried(self, source: Text, target: Text, score: float | None = None) -> Tried:
        """score: that of the search; None: the sum over the tokens."""
        model = self.stored.model
        device = next(model.parameters()).device
        read = torch.tensor([[model.config.bos_id, *target.ids[:-1]]], device=device)
        source_ids = torch.tensor([source.ids], device=device)
        logits = prefix_logits(model, source_ids, read) if self.rereads else model(source_ids, read)
        log_probabilities = logits[0].float().log_softmax(dim=-1)[range(len(target.ids)), target.ids].tolist()
        score = math.fsum(log_probabilities) if score is None else score
        return Tried(target.text, score, target.words(log_probabilities))


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
