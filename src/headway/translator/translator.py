"""The front door of using a model: raw text in, `Translation` out.

translator = Translator.load("runs/x")
[translation] = translator.translate(["Ein Hund läuft."])
print(translation.text)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch

from headway.decoding import EnsembleEngine, Hypothesis, Sampling, Searcher, SearchOptions, TorchEngine
from headway.devices import (
    DeviceName,
    EngineName,
    TranslatingPrecision,
    keep_large_allocations,
    pick_device,
    translating_dtype,
)
from headway.errors import UserError
from headway.insight import Edit, Text, TranslationRecord, align, edited_text, usual_cases, word_order
from headway.interop.ctranslate2_searcher import CTranslate2Searcher
from headway.storage import StoredModel, load_model
from headway.storage.steps import step_of
from headway.text.corpus import is_blank
from headway.text.tokenizer import Piece, Tokenizer, fingerprint, is_too_long, language_tag
from headway.translator.inspecting import Inspector
from headway.translator.torch_searcher import TorchSearcher

Stopped = Literal["eos", "max_length", "blank", "too_long"]


@dataclass(frozen=True)
class Translation:
    """The translation of one text. Its pieces are found when they are first asked for, most callers want the text."""

    text: str
    """Detokenised, without line breaks; empty for a blank or too long text."""
    score: float
    """Total log-probability of the tokens and of <eos>; 0 for a blank or too long source."""
    stopped: Stopped
    """Why it ended: by itself (`eos`), at the cap on its length, or the source was blank or too long to read."""
    alternatives: list[Translation] = field(default_factory=list)
    """The next best ones, where more than one was asked for."""
    find_tokens: Callable[[], list[Piece]] = field(default=list, repr=False, compare=False)
    find_source_tokens: Callable[[], list[Piece]] = field(default=list, repr=False, compare=False)
    find_alignment: Callable[[], list[int]] = field(default=list, repr=False, compare=False)

    @cached_property
    def tokens(self) -> list[Piece]:
        """The pieces of `text`, each with its characters' place in it."""
        return self.find_tokens()

    @cached_property
    def source_tokens(self) -> list[Piece]:
        """The pieces of the source, each with its characters' place in it; none where it is far too long."""
        return self.find_source_tokens()

    @cached_property
    def alignment(self) -> list[int]:
        """For each of `tokens` the number of the one of `source_tokens` that it is aligned with, by the encoder-decoder
        attention of the model, or of the first of an ensemble; docs/record.md. The model reads both for it."""
        return self.find_alignment()

    def to_dict(self) -> dict[str, Any]:
        """What the search found, as JSON has it."""
        return {
            "text": self.text,
            "score": self.score,
            "tokens": [asdict(piece) for piece in self.tokens],
            "source_tokens": [asdict(piece) for piece in self.source_tokens],
            "stopped": self.stopped,
            "alternatives": [one.to_dict() for one in self.alternatives],
        }


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
        self._max_length = min(one.model.config.max_length for one in (stored, *ensemble))
        self._single = not ensemble
        self._searcher: Searcher
        if engine == "ctranslate2":
            if ensemble:
                raise UserError("engine ctranslate2 runs one model, not an ensemble")
            self._searcher = CTranslate2Searcher(stored, self.device, precision)
            return
        if engine != "torch":
            raise UserError(f"engine {engine!r} is unknown; there are torch and ctranslate2")
        dtype = translating_dtype(precision, self.device)
        models = [one.model.to(self.device).eval() for one in (stored, *ensemble)]
        engines = [TorchEngine(model, stored.target_tokenizer.never_generated, dtype) for model in models]
        self._searcher = TorchSearcher(
            EnsembleEngine(engines) if ensemble else engines[0], stored.model.config.pad_id, self.device
        )

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
        return self._max_length - 1  # <eos> takes a place

    def is_readable(self, text: str, most: int | None = None) -> bool:
        """Whether the model can read the text as a whole, and has at most so many pieces; `translate` leaves it blank
        where it can't."""
        ids = self._ids(self.stored.source_tokenizer, text, tagged=True)
        return ids is not None and len(ids) <= min(self.longest_source, most or self.longest_source)

    @property
    def target_languages(self) -> list[str]:
        """The languages that a tag in front of a text may ask for, such as `>>ko<<`; none for a model of one."""
        return self.stored.source_tokenizer.target_tags

    def search_options(self, **options: Any) -> SearchOptions:
        """The options that are given (not None), else the model directory's, else the defaults. Raises UserError."""
        given = {name: value for name, value in options.items() if value is not None}
        if "sample" in given and not {"beam_size", "length_penalty"}.isdisjoint(given):
            raise UserError("sampling follows no beam: leave beam_size and length_penalty out")
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
        prefix: str | Sequence[str] = "",
    ) -> list[Translation]:
        """Translates each text, in order, one `Translation` each; options as in `SearchOptions`.

        `prefix` is what the translations begin with: one for all, or one for each text. Blank text gives a blank
        translation; text that is longer than the model can read gives a blank one whose `stopped` is "too_long".
        """
        if isinstance(texts, str):
            raise TypeError("translate takes a list of texts; for one text, give [text]")
        options = self.search_options(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_length=max_length,
            n_best=n_best,
            no_repeat_ngram=no_repeat_ngram,
            sample=sample,
        )
        prefixes = self._prefixes(prefix, len(texts), options.max_length)
        sources = self._encoded(texts)
        readable = {i: ids for i, ids in enumerate(sources) if ids and len(ids) <= self.longest_source}
        hypotheses = self._search(list(readable.values()), options, [prefixes[i] for i in readable])
        found = dict(zip(readable, hypotheses, strict=True))
        return [
            self._translation(text, ids, found.get(i, []))
            for i, (text, ids) in enumerate(zip(texts, sources, strict=True))
        ]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The total log-probability of each target as the translation of its source, <eos> included: what `translate`
        calls the score, where it gave the same pieces.

        As `translate` gives a blank for a blank source, that scores 0 and anything else -inf; nan stands for a pair
        that is longer than the model can read.
        """
        if len(sources) != len(targets):
            raise ValueError(f"{len(sources)} sources but {len(targets)} targets")
        pairs = [
            (source, self._ids(self.stored.target_tokenizer, target))
            for source, target in zip(self._encoded(sources), targets, strict=True)
        ]
        scores = [math.nan if source != [] else 0.0 if target == [] else -math.inf for source, target in pairs]
        readable = {
            i: (source, target)
            for i, (source, target) in enumerate(pairs)
            if source and target is not None and max(len(source), len(target)) <= self.longest_source
        }
        totals = self._searcher.score(*([pair[side] for pair in readable.values()] for side in (0, 1)))
        for i, total in zip(readable, totals, strict=True):
            scores[i] = total
        return scores

    def inspect(
        self,
        text: str,
        target: str | None = None,
        *,
        edits: Sequence[Edit] = (),
        cases: Sequence[Sequence[Edit]] | Literal["usual"] = (),
        history: Sequence[str | Path] = (),
        beam_size: int | None = None,
    ) -> TranslationRecord:
        """Translates the text, or takes the given `target` for its translation, and returns the record of what happened
        inside. `edits` change a copy of the model, or the text, before; then the record says what the translation was
        without them. `cases` are edits to try beside, each list by itself; `usual` are all that a page without a live
        model shows. `history` are model directories of the same run: what their attention is for the same source and
        target. Raises UserError."""
        if not self._single:
            raise UserError("inspect looks into one model, not into an ensemble")
        tag, text = self.stored.source_tokenizer.split_tag(text)
        source = partial(self._source, tag)
        options = self.search_options(beam_size=beam_size)
        cap = partial(self._length_cap, prefix_length=0, max_length=options.max_length)
        inspector = Inspector(self.stored, self._searcher, options, cap, self._decoded)
        given = None if target is None else self._target(target)
        before = inspector.outcome(source(text), given) if edits else None
        record = inspector.edited(edits).record(source(edited_text(text, edits)), given, text)
        order = word_order(self.stored.source_language, text)
        if cases == "usual":
            cases = usual_cases(self.model.config, text)
            if order is not None and all(self.is_readable(f"{tag} {one}") for one in order.sentences):
                order = inspector.try_order(order, [source(one) for one in order.sentences])
        tried = [inspector.what_if(case, source(edited_text(text, case)), record.target) for case in cases]
        past = [inspector.past(path, record) for path in sorted(map(Path, history), key=_first_to_last)]
        arrays = {f"history.{i}.{name}": one for i, (_, weights) in enumerate(past) for name, one in weights.items()}
        return replace(
            record,
            arrays={**record.arrays, **arrays},
            edits=list(edits),
            before=before,
            cases=tried,
            order=order,
            history=[moment for moment, _ in past],
        )

    def _source(self, tag: str, text: str) -> Text:
        """The text as it is to be inspected; its tag, where it has one, is the first token. Raises UserError."""
        [ids] = self._encoded([f"{tag} {text}" if tag else text])
        if not ids or len(ids) > self.longest_source:
            size = f"{len(text):,} characters" if ids is None else f"{len(ids)} pieces"
            raise UserError(f"text of {size} can't be inspected: 1 to {self.longest_source} pieces are needed")
        pieces = self.stored.source_tokenizer.encoded_pieces(text)
        return Text.of(text, ids, [*([Piece(tag, 0, 0)] if tag else []), *pieces], self.model.config.eos_id)

    def _target(self, text: str) -> Text:
        """The text as the translation that is to be inspected. Raises UserError."""
        ids = self._ids(self.stored.target_tokenizer, text)
        if ids is None or len(ids) > self.longest_source:
            raise UserError(f"the target has more than {self.longest_source} pieces, so it can't be inspected")
        return Text.of(text, ids, self.stored.target_tokenizer.encoded_pieces(text), self.model.config.eos_id)

    def _encoded(self, texts: Sequence[str]) -> list[list[int] | None]:
        """The ids of each source text, as `_ids`. Raises UserError for a text that doesn't say into which language."""
        encoded = [self._ids(self.stored.source_tokenizer, text, tagged=True) for text in texts]
        if tags := [language_tag(language) for language in self.target_languages]:
            for number, text in enumerate(texts, start=1):
                if not is_blank(text) and not text.lstrip().startswith(tuple(tags)):
                    raise UserError(
                        f"text {number}: this model has several target languages, begin each text with one of "
                        f"{' '.join(tags)}"
                    )
        return encoded

    def _ids(self, tokenizer: Tokenizer, text: str, *, tagged: bool = False) -> list[int] | None:
        """The ids of the text; None for one that is so long that it isn't tokenised."""
        _check_characters(text)
        return None if is_too_long(text, self._max_length) else tokenizer.encode(text, tagged=tagged)

    def _prefixes(self, prefix: str | Sequence[str], count: int, max_length: int | None) -> list[list[int]]:
        """The ids that each translation begins with."""
        texts = [prefix] * count if isinstance(prefix, str) else list(prefix)
        if len(texts) != count:
            raise UserError(f"{len(texts)} prefixes for {count} texts: give one for each, or one for all")
        room = min(self._max_length - 1, max_length or self._max_length)
        known: dict[str, list[int]] = {}
        for text in set(texts):
            ids = self._ids(self.stored.target_tokenizer, text)
            if ids is None or len(ids) >= max(1, room):
                size = f"{len(text):,} characters" if ids is None else f"{len(ids)} pieces"
                raise UserError(f"a prefix of {size} leaves no room: a translation has at most {room} pieces")
            known[text] = ids
        return [known[text] for text in texts]

    def _search(
        self, sources: list[list[int]], options: SearchOptions, prefixes: list[list[int]]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first."""
        caps = [
            self._length_cap(len(source), len(prefix), options.max_length)
            for source, prefix in zip(sources, prefixes, strict=True)
        ]
        return self._searcher.search(sources, options, caps, prefixes)

    def _length_cap(self, source_length: int, prefix_length: int, max_length: int | None) -> int:
        cap = max_length if max_length is not None else max(2 * source_length, prefix_length) + 50
        return min(cap, self._max_length - 1)  # <bos> takes a place

    def _translation(self, source: str, ids: list[int] | None, hypotheses: list[Hypothesis]) -> Translation:
        tokenizer = self.stored.source_tokenizer
        find_source_tokens = partial(tokenizer.encoded_pieces, source, tagged=True) if ids else list
        if not hypotheses:
            stopped = "blank" if ids == [] else "too_long"
            return Translation("", 0.0, stopped, find_source_tokens=find_source_tokens)
        best, *others = [self._from_hypothesis(hypothesis, ids or [], find_source_tokens) for hypothesis in hypotheses]
        return replace(best, alternatives=others) if others else best

    def _from_hypothesis(
        self, hypothesis: Hypothesis, source: list[int], find_source_tokens: Callable[[], list[Piece]]
    ) -> Translation:
        eos = self.model.config.eos_id
        return Translation(
            self._decoded(hypothesis.ids),
            hypothesis.score,
            hypothesis.stopped,
            find_tokens=partial(self.stored.target_tokenizer.decoded_pieces, hypothesis.ids),
            find_source_tokens=find_source_tokens,
            find_alignment=partial(align, self.model, [*source, eos], [*hypothesis.ids, eos]),
        )

    def _decoded(self, ids: Sequence[int]) -> str:
        return self.stored.target_tokenizer.decode(ids).translate(_LINE_BREAKS)


def _check_characters(text: str) -> None:
    """Raises UserError for what no file could hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{text!r}: holds half of a surrogate pair, or bytes that are not UTF-8") from None


def _check_vocabularies(first: StoredModel, other: StoredModel) -> None:
    for side in ("source", "target"):
        mine, theirs = (getattr(stored, f"{side}_tokenizer") for stored in (first, other))
        if fingerprint(mine) != fingerprint(theirs):
            raise UserError(f"the models of an ensemble need the same vocabularies, but their {side} tokenizers differ")


def _first_to_last(model: Path) -> tuple[bool, int]:
    """Models whose names say no step come last."""
    step = step_of(model.name)
    return step is None, step or 0


_LINE_BREAKS = str.maketrans("\n\r", "  ")
"""Byte pieces can spell a line break; one text is one line."""
