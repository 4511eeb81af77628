"""The front door of using a model: raw text in, `Translation` out.

translator = Translator.load("runs/x")
[translation] = translator.translate(["Ein Hund läuft."])
print(translation.text)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch

from headway.decoding import (
    EnsembleEngine,
    Sampling,
    Searcher,
    SearchOptions,
    TorchEngine,
    TorchSearcher,
)
from headway.devices import (
    DeviceName,
    EngineName,
    FreedMemory,
    TranslatingPrecision,
    keep_large_allocations,
    pick_device,
    translating_dtype,
)
from headway.errors import UserError
from headway.glass import ShownRecord
from headway.insight import Edit, WordOrder, choose_aligner
from headway.insight.analyses import AnalysisName, AskedAnalysis, read_analyses
from headway.insight.order import LONGEST_SENTENCE, MOST_SENTENCES
from headway.interop.ctranslate2_searcher import CTranslate2Searcher
from headway.storage import Aligner, Calibration, StoredModel, load_model
from headway.text.glossary import Glossary
from headway.text.tokenizer import fingerprint
from headway.translator.alignments import Links, piece_links, word_links
from headway.translator.codec import Codec, Side
from headway.translator.confidence import with_confidence
from headway.translator.documents import DocumentFormat, translate_documents
from headway.translator.inspecting import Inspector
from headway.translator.risk import least_risk
from headway.translator.searching import TextSearcher
from headway.translator.translation import TranslatedDocument, Translation

NO_TERMS = Glossary(())


class Translator:
    """A model with its tokenizers, on a device, ready to translate."""

    def __init__(
        self,
        stored: StoredModel,
        *,
        device: DeviceName | torch.device = "auto",
        precision: TranslatingPrecision = "auto",
        ensemble: Sequence[StoredModel] = (),
        engine: EngineName = "torch",
    ) -> None:
        self.stored = stored
        self.device = pick_device(device)
        self.model = stored.model.to(self.device).eval()
        keep_large_allocations(self.device)
        for other in ensemble:
            _check_vocabularies(stored, other)
        self._codec = Codec(stored, min(one.model.config.max_length for one in (stored, *ensemble)))
        self._single = not ensemble
        self._searcher = self._make_searcher(ensemble, precision, engine)
        self._texts = TextSearcher(stored, self.model, self._searcher, self._codec)
        self._word_orders: dict[str, WordOrder | None] = {}
        self.domain: Sequence[str] = ()
        """Sentences of the kind that the model was made for, such as those it was validated on; `inspect` chooses from
        them what it shows."""

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: DeviceName = "auto",
        precision: TranslatingPrecision = "auto",
        ensemble: Sequence[str | Path] = (),
        engine: EngineName = "torch",
    ) -> Translator:
        """Loads a model directory, or the best model of a run directory. The models of an `ensemble` translate with it,
        by the mean of their probabilities; they need the same vocabularies. `engine` is what runs the model: torch, or
        CTranslate2, into whose form it is brought at first, and kept. Raises UserError."""
        others = [load_model(Path(other)) for other in ensemble]
        return cls(load_model(Path(path)), device=device, precision=precision, ensemble=others, engine=engine)

    @property
    def longest_source(self) -> int:
        """The most pieces that a text may have."""
        return self._codec.longest_source

    def is_readable(self, text: str, most: int | None = None, *, side: Side = "source") -> bool:
        """Whether the model can read the text as a whole, as a source or as a translation, and it has at most so many
        pieces; `translate` leaves a source blank where it can't."""
        return self._codec.is_readable(text, most, side=side)

    @property
    def target_languages(self) -> list[str]:
        """The languages that a tag in front of a text may ask for, such as `>>ko<<`; none for a model of one."""
        return self._codec.target_languages

    def calibration(self) -> Calibration:
        """What says how likely a translation is acceptable. Raises UserError where there is none."""
        if not self._single:
            raise UserError("confidence is calibrated for one model, not for an ensemble")
        if self.stored.calibration is None:
            raise UserError(
                f"{self.stored.name or 'the model'}: isn't calibrated; `headway calibrate` makes one that is"
            )
        return self.stored.calibration

    def search_options(self, *, mbr: int | None = None, **options: Any) -> SearchOptions:
        """The options that are given (not None), else the model directory's, else the defaults; with `mbr`, so many
        translations of each text. Raises UserError."""
        given = {name: value for name, value in options.items() if value is not None}
        if "sample" in given and not {"beam_size", "length_penalty"}.isdisjoint(given):
            raise UserError("sampling follows no beam: leave beam_size and length_penalty out")
        if mbr is not None:
            if mbr < 2 or mbr < given.get("n_best", 1):
                raise UserError(f"mbr={mbr}: must be at least 2, and at least n_best")
            given["n_best"] = mbr
            if "sample" not in given:
                own_beam = self.stored.decoding.get("beam_size", SearchOptions.beam_size)
                given["beam_size"] = max(mbr, given.get("beam_size", own_beam))
        penalty = self._searcher.default_length_penalty
        own = {} if penalty is None else {"length_penalty": penalty}
        try:
            return SearchOptions(**{**self.stored.decoding, **own, **given})
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
        no_repeat_ngram: int | None = None,
        sample: Sampling | None = None,
        mbr: int | None = None,
        prefix: str | Sequence[str] = "",
        glossary: Glossary | Sequence[Glossary] | None = None,
        alignments: bool = False,
        confidence: bool = False,
    ) -> list[Translation]:
        """Translates each text, in order, one `Translation` each; options as in `SearchOptions`.

        Placeholders, code and addresses of a text stand in its translation as they are (`headway.text.protected`). With
        a `glossary`, one for all or one for each text, the targets of the terms in a text stand in its translation, as
        often as the terms.

        `mbr` makes so many translations, the best of a beam that is at least as wide, or with `sample` samples, and
        ranks them by their likeness to all (`headway.translator.risk`).

        `prefix` is what the translations begin with: one for all, or one for each text. `alignments` finds those of all
        translations together, which is faster than asking each `Translation` for its own. `confidence` fills in the
        fields `confidence` and `out_of_domain`; the model must be calibrated. Blank text gives a blank translation;
        text that is longer than the model can read gives a blank one whose `stopped` is "too_long".
        """
        calibration = self.calibration() if confidence else None
        if isinstance(texts, str):
            raise TypeError("translate takes a list of texts; for one text, give [text]")
        options = self.search_options(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=max_length,
            n_best=n_best,
            no_repeat_ngram=no_repeat_ngram,
            sample=sample,
            mbr=mbr,
        )
        glossaries = [glossary] * len(texts) if isinstance(glossary, Glossary) else glossary or [NO_TERMS] * len(texts)
        if len(glossaries) != len(texts):
            raise UserError(f"{len(glossaries)} glossaries for {len(texts)} texts: give one for each, or one for all")
        for one in {id(one): one for one in glossaries}.values():
            self._texts.check_glossary(one, options)
        prefixes = self._codec.prefixes(prefix, len(texts), options.max_length)
        translations = self._texts.translate(texts, options, prefixes, glossaries)
        if mbr is not None:
            translations = [least_risk(one, n_best or 1, drawn=sample is not None) for one in translations]
        if calibration is not None:
            translations = with_confidence(self.model, calibration, translations)
        if alignments:
            self._texts.align_together(translations)
        return translations

    def translate_document(
        self,
        text: str,
        *,
        format: DocumentFormat = "text",
        beam_size: int | None = None,
        n_best: int = 1,
        glossary: Glossary | None = None,
    ) -> TranslatedDocument:
        """Translates a text of many sentences, or an HTML document, as a server's `POST /translate` does: the model
        gets its sentences; white space, markup, addresses and emoji stay as they are (docs/serving.md).

        For a model of several target languages a tag stands in front of the text, as in `translate`. Needs the extra
        `documents`. Raises UserError.
        """
        [found] = self.translate_documents([text], format=format, beam_size=beam_size, n_best=n_best, glossary=glossary)
        return found

    def translate_documents(
        self,
        texts: Sequence[str],
        *,
        format: DocumentFormat = "text",
        n_best: int = 1,
        glossary: Glossary | None = None,
        **search: Any,
    ) -> list[TranslatedDocument]:
        """The same for many at once: sentences of different texts share batches. search: options as in
        `SearchOptions`."""
        width = self.search_options(**search).beam_size
        if n_best > width and search.get("sample") is None:  # as a server widens it
            search = {**search, "beam_size": n_best}
        prefixes, bodies = [], []
        for text in texts:
            tag, _ = self.stored.source_tokenizer.split_tag(text)
            prefixes.append(f"{tag} " if tag else "")
            bodies.append(text.partition(tag)[2].removeprefix(" ") if tag else text)
        return translate_documents(
            bodies,
            format,
            self.stored.source_language,
            prefixes,
            is_readable=self.is_readable,
            translate=lambda parts: self.translate(parts, n_best=n_best, glossary=glossary, **search),
            n_best=n_best,
        )

    def check_glossary(self, glossary: Glossary, **search: Any) -> None:
        """Raises UserError where `translate` would, with options as in `SearchOptions`."""
        self._texts.check_glossary(glossary, self.search_options(**search))

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included: what `translate`
        calls the score, where it gave the same pieces.

        As `translate` gives a blank for a blank source, that scores 0 and anything else -inf; nan stands for a pair
        that is longer than the model can read.
        """
        pairs = self._pairs(sources, targets)
        scores = [math.nan if source != [] else 0.0 if target == [] else -math.inf for source, target in pairs]
        readable = self._readable(pairs)
        totals = self._searcher.score(*([pair[side] for pair in readable.values()] for side in (0, 1)))
        for i, total in zip(readable, totals, strict=True):
            scores[i] = total
        return scores

    def align(self, sources: Sequence[str], targets: Sequence[str], *, pieces: bool = False) -> list[Links]:
        """The links between the words, or the `pieces`, of each target and its source, as `Translation.word_links` and
        `piece_links` have them. A pair with a blank side, or one that is longer than the model can read, has none."""
        readable = self._readable(self._pairs(sources, targets))
        skipped = [self._texts.split_tag(sources[i])[0] for i in readable]
        alignments = self._texts.align(list(readable.values()), skipped)
        links: list[Links] = [[] for _ in sources]
        for i, alignment in zip(readable, alignments, strict=True):
            if pieces:
                links[i] = piece_links(alignment)
            else:
                _, text = self._texts.split_tag(sources[i])
                source_pieces = self.stored.source_tokenizer.encoded_pieces(sources[i], tagged=True)
                target_pieces = self.stored.target_tokenizer.encoded_pieces(targets[i])
                links[i] = word_links(text, source_pieces, targets[i], target_pieces, alignment)
        return links

    def choose_aligner(self, sources: Sequence[str], targets: Sequence[str]) -> Aligner:
        """The attention that aligns the words of these pairs best, as training chooses it; docs/alignments.md. Raises
        UserError where none can be read."""
        readable = self._readable(self._pairs(sources, targets))
        if not readable:
            raise UserError("no pair has text on both sides that the model can read")
        return choose_aligner(self.model, *([pair[side] for pair in readable.values()] for side in (0, 1)))

    def inspect(
        self,
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
        """Translates the text, or takes the given `target` for its translation, and returns the record of what happened
        inside. `edits` change a copy of the model, or the text, before; then the record says what the translation was
        without them. `cases` are edits to try beside, each list by itself; `usual` are all that a page without a live
        model shows, `order` among them, which is that of `word_order`. `history` are model directories of the same run:
        what their attention is for the same source and target. `analyses` are those of `headway.insight.analyses` that
        the record is to have (docs/analyses.md). Raises UserError."""
        asked = read_analyses(list(analyses))
        record = self._inspector(beam_size).inspect(text, target, edits, cases, history, asked)
        return replace(record, order=self.word_order(text)) if order or cases == "usual" else record

    def word_order(self, text: str = "") -> WordOrder | None:
        """Two sentences of the same words that the model translates differently, with what it makes of them: of the
        text, else of `domain`, which is tried once; `find_word_order` says how. None where no words can be swapped.
        Raises UserError."""
        inspector = self._inspector()
        tag, plain = self.stored.source_tokenizer.split_tag(text)
        own = inspector.word_order(tag, [plain])
        if own is not None and own.is_convincing:
            return own
        if tag not in self._word_orders:
            untagged = (self.stored.source_tokenizer.split_tag(one)[1] for one in self.domain)
            short = islice((one for one in untagged if len(one) <= LONGEST_SENTENCE), MOST_SENTENCES)
            self._word_orders[tag] = inspector.word_order(tag, short)
        found = [one for one in (own, self._word_orders[tag]) if one is not None]
        return max(found, key=lambda one: one.rank, default=None)

    def _inspector(self, beam_size: int | None = None) -> Inspector:
        """Raises UserError for an ensemble."""
        if not self._single:
            raise UserError("inspect looks into one model, not into an ensemble")
        return Inspector(self.stored, self._searcher, self.search_options(beam_size=beam_size), self._codec)

    def _make_searcher(
        self, ensemble: Sequence[StoredModel], precision: TranslatingPrecision, engine: EngineName
    ) -> Searcher:
        stored = self.stored
        if engine == "ctranslate2":
            if ensemble:
                raise UserError("engine ctranslate2 runs one model, not an ensemble")
            return CTranslate2Searcher(stored, self.device, precision)
        if engine != "torch":
            raise UserError(f"engine {engine!r} is unknown; there are torch and ctranslate2")
        dtype = translating_dtype(precision, self.device)
        models = [one.model.to(self.device).eval() for one in (stored, *ensemble)]
        engines = [TorchEngine(model, stored.target_tokenizer.never_generated, dtype) for model in models]
        return TorchSearcher(
            EnsembleEngine(engines) if ensemble else engines[0],
            stored.model.config.pad_id,
            self.device,
            after_batch=FreedMemory().bound,
            allowed=stored.shortlist.allowed if stored.shortlist and not ensemble else None,
        )

    def _pairs(self, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[list[int] | None, list[int] | None]]:
        """The ids of each side; None for one that isn't tokenised. Raises ValueError for sides of different length."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources but {len(targets)} targets")
        return [
            (source, self._codec.target(target))
            for source, target in zip(self._codec.sources(sources), targets, strict=True)
        ]

    def _readable(
        self, pairs: Sequence[tuple[list[int] | None, list[int] | None]]
    ) -> dict[int, tuple[list[int], list[int]]]:
        """Those that the model can read and whose source is not blank, by number."""
        return {
            i: (source, target)
            for i, (source, target) in enumerate(pairs)
            if source and target is not None and max(len(source), len(target)) <= self.longest_source
        }


def _check_vocabularies(first: StoredModel, other: StoredModel) -> None:
    for side in ("source", "target"):
        mine, theirs = (getattr(stored, f"{side}_tokenizer") for stored in (first, other))
        if fingerprint(mine) != fingerprint(theirs):
            raise UserError(f"the models of an ensemble need the same vocabularies, but their {side} tokenizers differ")
