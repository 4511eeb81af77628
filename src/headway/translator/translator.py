"""The front door of using a model: raw text in, `Translation` out.

translator = Translator.load("runs/x")
[translation] = translator.translate(["Ein Hund läuft."])
print(translation.text)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.decoding import SearchOptions
from headway.devices import EngineName, TranslatingPrecision, pick_device
from headway.errors import UserError
from headway.storage import Aligner, AnyModel, Calibration, ModelDirectory, read_model
from headway.text.characters import as_text, as_texts
from headway.text.subwords import fingerprint
from headway.translator.above import Above
from headway.translator.aligning import Links, choose_aligner, piece_links, word_links
from headway.translator.codec import Codec, Side
from headway.translator.engines import Engines
from headway.translator.glossary import Glossary
from headway.translator.searching import TextSearcher, check_process
from headway.translator.translation import Translation, by_numbers

if TYPE_CHECKING:
    import torch

    from headway.model import Transformer
    from headway.storage import StoredModel

NO_TERMS = Glossary(())


class Translator:
    """A model with its tokenizers, on a device, ready to translate."""

    def __init__(
        self,
        model: AnyModel,
        *,
        device: str | torch.device = "auto",
        precision: TranslatingPrecision = "auto",
        ensemble: Sequence[AnyModel] = (),
        engine: EngineName | None = None,
    ) -> None:
        """`engine`: by default torch for a model in memory, `auto` for one on disk. Otherwise as `load`."""
        self.info = model
        """Tokenizers, languages, options and config of the model."""
        for other in ensemble:
            _check_vocabularies(model, other)
        if engine is None:
            engine = "auto" if isinstance(model, ModelDirectory) else "torch"
        check_process(engine)
        self.device = pick_device(device)
        """Such as `cpu` or `cuda:1`."""
        self.engines = Engines(model, self.device, precision, engine, ensemble)
        self.codec = Codec(model, min(one.config.max_length for one in (model, *ensemble)))
        self.is_single = not ensemble
        self.texts = TextSearcher(model, self.engines, self.codec)
        self.domain: Sequence[str] = ()
        """Sentences of the kind that the model was made for, such as those it was validated on; `inspect` chooses from
        them what it shows."""

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        precision: TranslatingPrecision = "auto",
        ensemble: Sequence[str | Path] = (),
        engine: EngineName = "auto",
        core: str | None = None,
    ) -> Translator:
        """Loads a model directory, or the best model of a run directory. The models of an `ensemble` translate together
        with it, by the mean of their probabilities; all need the same vocabularies.

        `engine` runs the model: `torch`, or `ctranslate2`, which converts the model the first time and keeps the result
        in a cache. `auto`: CTranslate2 on CPU, torch on other devices and for what CTranslate2 can't do
        (`ABILITIES` of `headway.decoding.options`). `precision` `auto`: on CPU int8 with CTranslate2 if the model is as
        good in it on its validation text, else fp32; bf16 on cuda. `core` is needed for models that were trained with
        `model.core`, of an ensemble all: the same `module:Class`, whose code then runs.

        Raises UserError, also in a process that was forked after a model was loaded: `translate` would never end."""
        check_process(engine)
        model, *others = (read_model(Path(one), core) for one in (path, *ensemble))
        return cls(model, device=device, precision=precision, ensemble=others, engine=engine)

    def __repr__(self) -> str:
        languages = f"{self.info.source_language} -> {self.info.target_language}"
        size = f"{self.info.num_parameters:,} parameters"
        return f"Translator({languages}, {size}, {self.engine} in {self.engines.precision} on {self.device})"

    @property
    def engine(self) -> EngineName:
        """`torch` or `ctranslate2`: the engine that translates, unless it can't do what is asked."""
        return self.engines.name

    @property
    def stored(self) -> StoredModel:
        """The model in torch, loaded when it is first asked for. Raises UserError where torch isn't installed."""
        return self.engines.stored

    @property
    def model(self) -> Transformer:
        """The Transformer of `stored` alone."""
        return self.stored.model

    @property
    def longest_source(self) -> int:
        """The maximum number of tokens in a text."""
        return self.codec.longest_source

    def is_readable(self, text: str, most: int | None = None, *, side: Side = "source") -> bool:
        """Whether the model can read the whole text, as a source or as a translation, and whether it has at most `most`
        tokens. `translate` returns a blank translation for a source that the model can't read."""
        return self.codec.is_readable(as_text(text, "text"), most, side=side)

    @property
    def target_languages(self) -> list[str]:
        """The languages that a tag such as `>>ko<<` in front of a text can choose; empty if the model has only one."""
        return self.info.source_tokenizer.target_tags

    def lacks_tag(self, text: str) -> bool:
        """Whether `translate` raises UserError because the text doesn't begin with such a tag."""
        return self.codec.lacks_tag(text)

    def calibration(self) -> Calibration:
        """The calibration, which turns scores into confidences. Raises UserError if the model has none."""
        if not self.is_single:
            raise UserError("confidence is calibrated for one model, not for an ensemble")
        if self.info.calibration is None:
            raise UserError("the model isn't calibrated; `headway calibrate` makes one that is")
        return self.info.calibration

    def search_options(self, **options: Any) -> SearchOptions:
        """The given options (those that aren't None), then those of the model directory, as far as the given beam
        allows them, then the defaults. Raises UserError."""
        given = {name: value for name, value in options.items() if value is not None}
        if "sample" in given and not {"beam_size", "length_penalty"}.isdisjoint(given):
            raise UserError("sampling follows no beam: leave beam_size and length_penalty out")
        own = dict(self.info.decoding)
        if "sample" in given or given.get("beam_size") == 1:
            own["check_numbers"] = False
        if isinstance(width := given.get("beam_size"), int):
            own["n_best"] = min(own.get("n_best", 1), width)
        return SearchOptions(**{**own, **given})

    def translate(
        self,
        texts: Iterable[str],
        options: SearchOptions | None = None,
        *,
        prefix: str | Iterable[str] = "",
        glossary: Glossary | Sequence[Glossary] | None = None,
        alignments: bool = False,
        confidence: bool = False,
        **search: Any,
    ) -> list[Translation]:
        """Translates texts and returns one `Translation` for each, in order. Search options come as `options`, or by
        name, such as `beam_size=4`; those that are left out or None are then the model's own (`search_options`).

        Placeholders, code and addresses stay as they are (`headway.text.protected`). With a `glossary`, one for all
        texts or one for each, a translation contains the target of each term as often as its text has the term.

        Translations begin with `prefix`, one for all texts or one for each, which the vocabulary must be able to write.
        `alignments` computes all alignments together, which is faster than one `Translation` after the other.
        `confidence` fills in the fields `confidence` and `out_of_domain`; the model must be calibrated. A blank text
        gives a blank translation. So does a text that is longer than the model can read; `stopped` is then "too_long".

        Raises UserError, and TypeError for what isn't text.
        """
        check_process(self.engine)
        texts = as_texts(texts, "text")
        calibration = self.calibration() if confidence else None
        if options is None:
            options = self.search_options(**search)
        elif search:
            raise TypeError("give the options of a search as one record or by name, not both")
        glossaries = [glossary] * len(texts) if isinstance(glossary, Glossary) else glossary or [NO_TERMS] * len(texts)
        if not all(isinstance(one, Glossary) for one in glossaries):
            raise TypeError("glossary must be a Glossary, made by Glossary.of, or a list with one for each text")
        if len(glossaries) != len(texts):
            raise UserError(f"{len(glossaries)} glossaries for {len(texts)} texts: give one for each, or one for all")
        for one in {id(one): one for one in glossaries}.values():
            self.texts.check_glossary(one, options)
        prefixes = as_text(prefix, "prefix") if isinstance(prefix, str) else as_texts(prefix, "prefix")
        starts = self.codec.prefixes(prefixes, len(texts), options.max_length)
        n_best, checks_numbers = options.n_best, options.check_numbers
        if checks_numbers:
            options = options.model_copy(update={"n_best": options.beam_size})
        translations = self.texts.translate(texts, options, starts, glossaries)
        if checks_numbers:
            translations = [by_numbers(one, n_best) for one in translations]
        if calibration is not None:
            from headway.translator.confidence import with_confidence

            translations = with_confidence(self.engines.reader, calibration, translations)
        if alignments:
            self.texts.align_together(translations)
        return translations

    translate_document = Above("headway.documents.translator")
    translate_documents = Above("headway.documents.translator")
    inspect = Above("headway.page.inspecting")
    word_order = Above("headway.page.inspecting")

    def check_prefix(self, prefix: str, **search: Any) -> None:
        """Raises UserError if `translate` would, with these options of `SearchOptions`."""
        self.codec.prefixes(prefix, 1, self.search_options(**search).max_length)

    def check_glossary(self, glossary: Glossary, **search: Any) -> None:
        """Raises UserError if `translate` would, with these options of `SearchOptions`."""
        self.texts.check_glossary(glossary, self.search_options(**search))

    def score(self, sources: Iterable[str], targets: Iterable[str]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included.

        In fp32 with torch it equals the `score` of a `Translation` with the same tokens. Torch computes it in fp32 even
        if it translates in bf16, and CTranslate2 and a shortlist translate by the probabilities among the tokens that
        may be generated; docs/evaluation.md says by how much scores differ then.

        For a blank source, whose translation has no score, a blank target scores 0 and any other -inf. A pair that is
        longer than the model can read scores nan.
        """
        check_process(self.engine)
        pairs = self._pairs(as_texts(sources, "source"), as_texts(targets, "target"))
        scores = [math.nan if source != [] else 0.0 if target == [] else -math.inf for source, target in pairs]
        readable = self._readable(pairs)
        totals = self.engines.own.score(*([pair[side] for pair in readable.values()] for side in (0, 1)))
        for i, total in zip(readable, totals, strict=True):
            scores[i] = total
        return scores

    def align(self, sources: Iterable[str], targets: Iterable[str], *, pieces: bool = False) -> list[Links]:
        """The links between the words of each target and its source, as in `Translation.word_links`, or with `pieces`
        those between the tokens, as in `piece_links`. A pair with a blank side, or one that is too long, has none."""
        sources, targets = as_texts(sources, "source"), as_texts(targets, "target")
        readable = self._readable(self._pairs(sources, targets))
        skipped = [self.texts.split_tag(sources[i])[0] for i in readable]
        alignments = self.texts.align(list(readable.values()), skipped)
        links: list[Links] = [[] for _ in sources]
        for i, alignment in zip(readable, alignments, strict=True):
            if pieces:
                links[i] = piece_links(alignment)
            else:
                _, text = self.texts.split_tag(sources[i])
                source_pieces = self.info.source_tokenizer.encoded_pieces(sources[i], tagged=True)
                target_pieces = self.codec.translation_pieces(sources[i], targets[i])
                links[i] = word_links(text, source_pieces, targets[i], target_pieces, alignment)
        return links

    def choose_aligner(self, sources: Iterable[str], targets: Iterable[str]) -> Aligner:
        """Chooses the attention that aligns the words of these pairs best, as training does; docs/alignments.md. Raises
        UserError if the model can read none of the pairs."""
        check_process(self.engine)
        readable = self._readable(self._pairs(as_texts(sources, "source"), as_texts(targets, "target")))
        if not readable:
            raise UserError("no pair has text on both sides that the model can read")
        return choose_aligner(self.engines.reader, *([pair[side] for pair in readable.values()] for side in (0, 1)))

    def _pairs(self, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[list[int] | None, list[int] | None]]:
        """The ids of each side; None for one that isn't tokenised. Raises ValueError for sides of different length."""
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources but {len(targets)} targets")
        return [
            (ids, self.codec.translation(source, target))
            for ids, source, target in zip(self.codec.sources(sources), sources, targets, strict=True)
        ]

    def _readable(
        self, pairs: Sequence[tuple[list[int] | None, list[int] | None]]
    ) -> dict[int, tuple[list[int], list[int]]]:
        """The pairs that the model can read and whose source is not blank, by number."""
        return {
            i: (source, target)
            for i, (source, target) in enumerate(pairs)
            if source and target is not None and max(len(source), len(target)) <= self.longest_source
        }


def _check_vocabularies(first: AnyModel, other: AnyModel) -> None:
    for side in ("source", "target"):
        if len({fingerprint(getattr(info, f"{side}_tokenizer")) for info in (first, other)}) > 1:
            raise UserError(f"the models of an ensemble need the same vocabularies, but their {side} tokenizers differ")
    for name in ("pad_id", "bos_id", "eos_id"):
        if (one := getattr(first.config, name)) != (another := getattr(other.config, name)):
            raise UserError(f"the models of an ensemble need the same {name}, but they have {one} and {another}")
