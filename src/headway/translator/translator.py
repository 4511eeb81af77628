"""The front door of using a model: raw text in, `Translation` out.

translator = Translator.load("runs/x")
[translation] = translator.translate(["Ein Hund läuft."])
print(translation.text)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

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
from headway.text.texts import as_text, as_texts
from headway.text.tokenizer import fingerprint
from headway.translator.alignments import Links, piece_links, word_links
from headway.translator.codec import Codec, Side
from headway.translator.confidence import with_confidence
from headway.translator.documents import DocumentFormat, translate_documents
from headway.translator.forks import check_process
from headway.translator.inspecting import Inspector
from headway.translator.risk import least_risk
from headway.translator.searching import TextSearcher
from headway.translator.translation import TranslatedDocument, Translation

if TYPE_CHECKING:
    from headway.documents import Asked

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
        check_process(engine)
        self.stored = stored
        self.device = pick_device(device)
        self.model = stored.model.to(self.device).eval()
        keep_large_allocations(self.device)
        for other in ensemble:
            _check_vocabularies(stored, other)
        self._codec = Codec(stored, min(one.model.config.max_length for one in (stored, *ensemble)))
        self._engine: EngineName = engine
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
        """Loads a model directory, or the best model of a run directory. The models of an `ensemble` translate together
        with it, by the mean of their probabilities; all need the same vocabularies. `engine` runs the model: `torch`,
        or `ctranslate2`, which converts the model the first time and keeps the result. Raises UserError, also in a
        process that was forked after a model was loaded, where `translate` would wait forever."""
        check_process(engine)
        others = [load_model(Path(other)) for other in ensemble]
        return cls(load_model(Path(path)), device=device, precision=precision, ensemble=others, engine=engine)

    @property
    def longest_source(self) -> int:
        """The maximum number of tokens in a text."""
        return self._codec.longest_source

    def is_readable(self, text: str, most: int | None = None, *, side: Side = "source") -> bool:
        """Whether the model can read the whole text, as a source or as a translation, and whether it has at most `most`
        tokens. `translate` returns a blank translation for a source that the model can't read."""
        return self._codec.is_readable(as_text(text, "text"), most, side=side)

    @property
    def target_languages(self) -> list[str]:
        """The languages that a tag such as `>>ko<<` in front of a text can choose; empty if the model has only one."""
        return self._codec.target_languages

    def lacks_tag(self, text: str) -> bool:
        """Whether `translate` raises UserError because the text doesn't begin with such a tag."""
        return self._codec.lacks_tag(text)

    def calibration(self) -> Calibration:
        """The calibration, which turns scores into confidences. Raises UserError if the model has none."""
        if not self._single:
            raise UserError("confidence is calibrated for one model, not for an ensemble")
        if self.stored.calibration is None:
            raise UserError("the model isn't calibrated; `headway calibrate` makes one that is")
        return self.stored.calibration

    def search_options(self, *, mbr: int | None = None, **options: Any) -> SearchOptions:
        """The given options (those that aren't None), then those of the model directory, then the defaults. With `mbr`,
        options for that many translations of each text. Raises UserError."""
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
        texts: Iterable[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        max_length: int | None = None,
        n_best: int | None = None,
        no_repeat_ngram: int | None = None,
        sample: Sampling | None = None,
        mbr: int | None = None,
        prefix: str | Iterable[str] = "",
        glossary: Glossary | Sequence[Glossary] | None = None,
        alignments: bool = False,
        confidence: bool = False,
    ) -> list[Translation]:
        """Translates texts and returns one `Translation` for each, in order. Search options are those of
        `SearchOptions`.

        Placeholders, code and addresses stay as they are (`headway.text.protected`). With a `glossary`, one for all
        texts or one for each, a translation contains the target of each term as often as its text has the term.

        `mbr` makes that many translations (with a beam that is wide enough, or samples if `sample` is given) and
        prefers those that are most similar to all others (`headway.translator.risk`).

        Translations begin with `prefix`, one for all texts or one for each, which the vocabulary must be able to write.
        `alignments` computes all alignments together, which is faster than one `Translation` after the other.
        `confidence` fills in the fields `confidence` and `out_of_domain`; the model must be calibrated. A blank text
        gives a blank translation. So does a text that is longer than the model can read; `stopped` is then "too_long".

        Raises UserError, and TypeError for what isn't text.
        """
        check_process(self._engine)
        texts = as_texts(texts, "text")
        calibration = self.calibration() if confidence else None
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
        if not all(isinstance(one, Glossary) for one in glossaries):
            raise TypeError("glossary must be a Glossary, made by Glossary.of, or a list with one for each text")
        if len(glossaries) != len(texts):
            raise UserError(f"{len(glossaries)} glossaries for {len(texts)} texts: give one for each, or one for all")
        for one in {id(one): one for one in glossaries}.values():
            self._texts.check_glossary(one, options)
        prefixes = as_text(prefix, "prefix") if isinstance(prefix, str) else as_texts(prefix, "prefix")
        starts = self._codec.prefixes(prefixes, len(texts), options.max_length)
        translations = self._texts.translate(texts, options, starts, glossaries)
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
        """Translates a text of many sentences, or an HTML document, as `POST /translate` of a server does: sentence by
        sentence, while white space, markup, addresses and emoji stay as they are (docs/serving.md).

        For a model with several target languages the text begins with a tag, as in `translate`. Needs the extra
        `documents`. Raises UserError.
        """
        [found] = self.translate_documents([text], format=format, beam_size=beam_size, n_best=n_best, glossary=glossary)
        return found

    def translate_documents(
        self,
        texts: Iterable[str],
        *,
        format: DocumentFormat = "text",
        n_best: int = 1,
        glossary: Glossary | None = None,
        **search: Any,
    ) -> list[TranslatedDocument]:
        """`translate_document` for many texts at once; sentences of different texts share batches. search: options of
        `SearchOptions`."""
        width = self.search_options(**search).beam_size
        if n_best > width and search.get("sample") is None:  # as a server widens it
            search = {**search, "beam_size": n_best}
        prefixes, bodies = [], []
        for text in as_texts(texts, "text"):
            tag, _ = self.stored.source_tokenizer.split_tag(text)
            prefixes.append(f"{tag} " if tag else "")
            bodies.append(text.partition(tag)[2].removeprefix(" ") if tag else text)

        def translate(asked: Sequence[Asked]) -> list[Translation]:
            found = self.translate([one.text for one in asked], n_best=n_best, glossary=glossary, **search)
            self._texts.align_together([one for part, one in zip(asked, found, strict=True) if part.aligned])
            return found

        return translate_documents(
            bodies,
            format,
            self.stored.source_language,
            prefixes,
            is_readable=self.is_readable,
            translate=translate,
            n_best=n_best,
        )

    def check_prefix(self, prefix: str, **search: Any) -> None:
        """Raises UserError if `translate` would, with these options of `SearchOptions`."""
        self._codec.prefixes(prefix, 1, self.search_options(**search).max_length)

    def check_glossary(self, glossary: Glossary, **search: Any) -> None:
        """Raises UserError if `translate` would, with these options of `SearchOptions`."""
        self._texts.check_glossary(glossary, self.search_options(**search))

    def score(self, sources: Iterable[str], targets: Iterable[str]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included.

        In fp32 with torch it equals the `score` of a `Translation` with the same tokens. Torch computes it in fp32 even
        if it translates in bf16, and CTranslate2 and a shortlist translate by the probabilities among the tokens that
        may be generated; docs/evaluation.md says by how much scores differ then.

        For a blank source, whose translation has no score, a blank target scores 0 and any other -inf. A pair that is
        longer than the model can read scores nan.
        """
        check_process(self._engine)
        pairs = self._pairs(as_texts(sources, "source"), as_texts(targets, "target"))
        scores = [math.nan if source != [] else 0.0 if target == [] else -math.inf for source, target in pairs]
        readable = self._readable(pairs)
        totals = self._searcher.score(*([pair[side] for pair in readable.values()] for side in (0, 1)))
        for i, total in zip(readable, totals, strict=True):
            scores[i] = total
        return scores

    def align(self, sources: Iterable[str], targets: Iterable[str], *, pieces: bool = False) -> list[Links]:
        """The links between the words of each target and its source, as in `Translation.word_links`, or with `pieces`
        those between the tokens, as in `piece_links`. A pair with a blank side, or one that is longer than the model
        can read, has none."""
        sources, targets = as_texts(sources, "source"), as_texts(targets, "target")
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

    def choose_aligner(self, sources: Iterable[str], targets: Iterable[str]) -> Aligner:
        """Chooses the attention that aligns the words of these pairs best, as training does; docs/alignments.md. Raises
        UserError if the model can read none of the pairs."""
        check_process("torch")
        readable = self._readable(self._pairs(as_texts(sources, "source"), as_texts(targets, "target")))
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
        """Translates the text, or takes the given `target` as its translation, and returns the record of everything
        that the model computes. `edits` first change a copy of the model, or the text; the record then also has the
        translation without them. `cases` are further edits, each list applied by itself; "usual" are all that a page
        without a live model shows, `order` among them: the sentences of `word_order`. `history` are other model
        directories of the same run, for their attention to the same source and target. `analyses` are the analyses to
        include (`headway.insight.analyses`, docs/analyses.md).
        Raises UserError."""
        text, target = as_text(text, "text"), None if target is None else as_text(target, "target")
        asked = read_analyses(list(analyses))
        record = self._inspector(beam_size).inspect(text, target, edits, cases, history, asked)
        return replace(record, order=self.word_order(text)) if order or cases == "usual" else record

    def word_order(self, text: str = "") -> WordOrder | None:
        """Two sentences of the same words that the model translates differently, with what it makes of them: of the
        text, else of `domain`, which is tried once; `find_word_order` says how. None where no words can be swapped.
        Raises UserError."""
        inspector = self._inspector()
        tag, plain = self.stored.source_tokenizer.split_tag(as_text(text, "text"))
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
        check_process(self._engine)
        if not self._single:
            raise UserError("inspect looks into one model, not into an ensemble")
        return Inspector(self.stored, self._searcher, self.search_options(beam_size=beam_size), self._codec)

    def _make_searcher(
        self, ensemble: Sequence[StoredModel], precision: TranslatingPrecision, engine: EngineName
    ) -> Searcher:
        stored = self.stored
        if precision not in (known := get_args(TranslatingPrecision)):
            raise UserError(f"precision {precision!r} is unknown; there are {', '.join(known)}")
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
