"""The server without HTTP, between its routes and the batcher: language detection, documents, cache."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TypeVar
from unicodedata import normalize
from weakref import WeakValueDictionary

from headway.devices import return_freed_memory
from headway.documents.markup import blocks_of, elements_of
from headway.documents.parsing import (
    MOST_TOKENS,
    Document,
    NBest,
    PendingDocuments,
    SentenceRequest,
    TextFormat,
    n_best_of,
    parse_document,
)
from headway.errors import UserError
from headway.languages import read_code, same_language
from headway.serving.batcher import OVERHEAD, WORK_PER_BATCH, Batcher
from headway.serving.guard import Metrics
from headway.serving.logs import places
from headway.serving.looking_inside import SideThread
from headway.serving.pairs import AskedText, LanguagePair, Pairs
from headway.serving.schemas import AlignRequest, InspectRequest, TranslateRequest
from headway.serving.settings import Settings
from headway.text.detection import Detected, among_all, detect
from headway.text.numbers import NumberCheck, check_numbers
from headway.text.protected import may_hold_protected
from headway.threads import current_threads, use_one_thread
from headway.translator import Translator
from headway.translator.glossary import Glossary
from headway.translator.required_phrases import MOST_PHRASES_IN_BEAM

log = logging.getLogger("headway.service")

Result = TypeVar("Result")

AUTO = "auto"
NEAR = 0.5  # share of the highest confidence with which a translatable language is preferred
STUCK_AFTER = 120.0  # seconds until a call of the model counts as stuck
TIDY_EVERY = 10.0  # seconds between returns of freed memory
SHORT = 500  # characters of a request that are parsed on the event loop, which takes less time than to change threads
ALIGNED_TOKEN = 100  # characters that take as much memory in the cache as the alignment of a token
MOST_CHARACTERS = 5_000_000  # in the cache: bounds the memory for sentences and translations of any length
WARMING = "A sentence of a usual length, as many people would write it one day."


@dataclass(frozen=True)
class Search:
    """The model and the options of a call; sentences with the same may share one."""

    translator: Translator
    beam_size: int
    n_best: int
    glossary: Glossary | None = field(default=None, hash=False)  # it may be long, and each request has its own
    confidence: bool = False
    alignments: bool = False


@dataclass(eq=False)
class SentenceProgress:
    """The number of sentences of a request that are translated, and of those that were found so far."""

    done: int = 0
    sentences: int = 0

    def step(self) -> None:
        self.done += 1


def work_of(search: Search, text: str) -> int:
    """The hypotheses of a sentence times the places that each may have at most, halved (`Codec.length_cap`): a token is
    a byte at least. Torch's beam has a place for each number of required phrases."""
    protects = search.translator.engine == "torch" and may_hold_protected(text)
    width = MOST_PHRASES_IN_BEAM + 1 if search.glossary or protects else 1
    return max(width, search.beam_size) * (OVERHEAD + len(normalize("NFKC", text).encode()))


CacheKey = tuple[str, Search, str]
"""The owner of an answer, and what was asked."""


class LatestCache:
    """The `size` answers that were used last, with at most `characters` in total."""

    def __init__(self, size: int, characters: int = MOST_CHARACTERS) -> None:
        self._size, self._characters = size, characters
        self._values: OrderedDict[CacheKey, tuple[NBest[str], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: CacheKey) -> NBest[str] | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: CacheKey, value: NBest[str], characters: int) -> None:
        """Keeps a value; `characters` includes those of its key."""
        self._characters += self._values.pop(key, (None, 0))[1] - characters
        self._values[key] = value, characters
        while len(self._values) > self._size or self._characters < 0:
            self._characters += self._values.popitem(last=False)[1][1]


class Service:
    """The models with their batcher, cache and metrics, for one event loop."""

    def __init__(self, pairs: Pairs, settings: Settings) -> None:
        self.pairs, self.settings = pairs, settings
        self.draining = False  # whether the server is about to end
        self._tidied = time.perf_counter()
        on_cpu = pairs.first.translator.device == "cpu"
        self.workers = current_threads() if on_cpu else 1
        self.batcher = Batcher[Search, NBest[str]](
            self._call,
            workers=self.workers,
            batch_size=settings.batch_size,
            queue=settings.queue,
            linger=settings.linger,
            work_of=work_of,
            initializer=use_one_thread if on_cpu else None,
            on_failure=self._note_failure,
        )
        self.metrics = Metrics(lambda: self.batcher.waiting)
        self._cache = LatestCache(settings.cache_size)
        self._text_thread = ThreadPoolExecutor(1, "text")
        self._text_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of each client
        self.inspecting, self.aligning, self.files = (SideThread(name) for name in ("inspect", "align", "files"))

    @property
    def is_ready(self) -> bool:
        """Whether requests are answered: the server isn't about to end, nor the model stuck."""
        return not self.draining and self.batcher.longest_call < STUCK_AFTER

    def warm_up(self) -> None:
        """Translates with every model, so that the first requests are as fast as later ones; with torch a whole batch,
        so that they take no more memory either."""
        for translator, pair in {one.translator: one for one in self.pairs.values()}.items():
            work = work_of(Search(translator, translator.search_options().beam_size, 1), WARMING)
            most = min(self.settings.batch_size, max(1, WORK_PER_BATCH // work))
            texts = [pair.prefix + WARMING] * (most if translator.engine == "torch" else 1)
            self.batcher.warm_up(partial(translator.translate, texts, n_best=1))
        return_freed_memory()

    async def choose(
        self, wanted: TranslateRequest | InspectRequest | AlignRequest, texts: Sequence[str], client: str
    ) -> tuple[list[LanguagePair | None], list[Detected] | None]:
        """The pair for each text, None for one that stays as it is, and with `auto` the detected languages. A text in a
        language that isn't translated is refused, but stays as it is in a list. Raises UserError."""
        own = same_language(wanted.source, self.pairs.codes)
        if own and same_language(own, [wanted.target]) and not same_language(own, self.pairs.targets(own)):
            return [None] * len(texts), None
        target = same_language(wanted.target, self.pairs.targets())
        if target is None:
            raise UserError(f"target: unknown; choose one of {', '.join(self.pairs.targets())}")
        candidates = self.pairs.sources(target)
        if wanted.source.lower() != AUTO:
            pair = self.pairs.get((same_language(wanted.source, candidates) or wanted.source, target))
            if pair is None:
                raise UserError(f"source: unknown for target {target}; choose one of {', '.join([*candidates, AUTO])}")
            return [pair] * len(texts), None
        chosen, detected = [], []
        format_: TextFormat = wanted.format if isinstance(wanted, TranslateRequest) else "text"
        for found in await self.detect(texts, client, format_):
            best, pair, problem = _judged(found, self.pairs, target)
            if problem and isinstance(wanted.q, str):
                raise UserError(f"source: {problem}")
            chosen.append(pair)
            detected.append(best)
        return chosen, detected

    async def translate(
        self,
        wanted: TranslateRequest,
        texts: Sequence[AskedText],
        client: str,
        progress: SentenceProgress | None = None,
        *,
        of_file: bool = False,
    ) -> list[NBest[str]]:
        """The translation and alternatives of each text, or the text itself without a pair. of_file: as for
        `parse_document`. Raises QueueFullError, and UserError for too many sentences, or if a model can't follow the
        glossary, or has no calibration for `confidence`."""
        glossary, n_best, progress = wanted.terms(), 1 + wanted.alternatives, progress or SentenceProgress()
        beams = {one.pair.translator: one.pair.beam_size(wanted) for one in texts if one.pair is not None}
        for translator in beams:
            if glossary is not None:
                translator.check_glossary(glossary)
            if wanted.confidence:
                translator.calibration()
        search = cache(lambda one, aligned: Search(one, beams[one], n_best, glossary, wanted.confidence, aligned))
        is_short = _is_short(texts)

        def parsed(text: str, pair: LanguagePair | None, format_: TextFormat) -> Document:
            if pair is None:
                return Document(format_, [text])
            most = MOST_TOKENS // beams[pair.translator]
            return parse_document(text, format_, pair.source, partial(pair.is_readable, most=most), of_file=of_file)

        def sentence(asked: SentenceRequest) -> tuple[Search, str]:
            pair = texts[asked.document].pair
            assert pair is not None, "texts without a pair have no sentences"
            return search(pair.translator, asked.aligned), asked.text

        def pending_documents() -> tuple[PendingDocuments, list[tuple[Search, str]]]:
            found, count = list[Document](), 0
            for one in texts:
                found.append(parsed(*one))
                count += sum(max(1, len(sentence.runs)) for sentence in found[-1].sentences)
                if count > most:
                    raise too_many
            pending = PendingDocuments(found, [one.pair.prefix if one.pair else "" for one in texts])
            return pending, [*map(sentence, pending.wholes)]

        def runs() -> list[tuple[Search, str]]:
            pending.take_wholes(found)
            return [*map(sentence, pending.runs)]

        most = self.settings.max_sentences // n_best
        others = f", each with {wanted.alternatives} alternatives" if wanted.alternatives else ""
        too_many = UserError(f"more than {most:,} sentences or words between tags in one request{others}")
        plain = [one.text for one in texts if one.format == "text"]
        if sum(text.count("\n") for text in plain) > most:
            lines = sum(bool(line.strip()) for text in plain for line in text.split("\n"))
            if lines > most:  # without parsing them: each has a sentence, unless it has no words
                raise too_many
        pending, wholes = await self._text_work(client, pending_documents, at_once=is_short)
        found = await self._ask(wholes, client, progress)
        asked = await self._text_work(client, runs, at_once=is_short)
        rest = await self._ask(asked, client, progress, admitted=True)
        return await self._text_work(client, lambda: pending.joined(rest, n_best), at_once=is_short)

    async def check_numbers(
        self, translations: Sequence[str], texts: Sequence[AskedText], client: str
    ) -> list[NumberCheck]:
        """The numbers that each translation lacks or invents."""

        def checks() -> list[NumberCheck]:
            return [
                NumberCheck() if pair is None else check_numbers(text, translation, (pair.source, pair.target))
                for translation, (text, pair, _) in zip(translations, texts, strict=True)
            ]

        return await self._text_work(client, checks, at_once=_is_short(texts))

    async def detect(
        self, texts: Sequence[str], client: str, format_: TextFormat = "text"
    ) -> list[list[Detected] | None]:
        """The possible languages of each text, among those of the models; None for a text without words."""
        codes = self.pairs.codes
        return await self._text_work(client, lambda: [detect(_words(text, format_), codes) for text in texts])

    async def detect_among_all(self, texts: Sequence[str], client: str) -> list[Detected]:
        """The languages of the models by their mean confidence over the texts, of all languages; most likely first."""

        def found() -> list[Detected]:
            confidences = dict.fromkeys(self.pairs.codes, 0.0)
            for text in texts:
                for one in among_all(text, detect(text, self.pairs.codes) or ()):
                    confidences[one.language] += one.confidence / len(texts)
            every = [Detected(code, round(value, 1)) for code, value in confidences.items()]
            return sorted(every, key=lambda one: -one.confidence)

        return await self._text_work(client, found)

    def close(self) -> None:
        self.batcher.close()
        for pool in (self._text_thread, self.inspecting.pool, self.aligning.pool, self.files.pool):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(
        self,
        sentences: Sequence[tuple[Search, str]],
        client: str,
        progress: SentenceProgress,
        *,
        admitted: bool = False,
    ) -> list[NBest[str]]:
        """The translations of each sentence, from the cache or the model; `admitted` as in `Batcher.submit`. No
        answer with a glossary is cached, because each request has its own; with keys each key has its own cache, so
        that no answer tells by its time what another client has asked."""
        owner = client if self.settings.api_keys else ""
        found = {one: kept for one in sentences if (kept := self._cache.get((owner, *one))) is not None}
        self.metrics.cache_hits.inc(len(found))
        missing = [one for one in dict.fromkeys(sentences) if one not in found]
        progress.sentences += len(found) + len(missing)
        progress.done += len(found)
        answers = await self.batcher.submit(missing, client=client, admitted=admitted, on_answer=progress.step)
        for one, answer in zip(missing, answers, strict=True):
            found[one] = answer
            if one[0].glossary is None:
                aligned = ALIGNED_TOKEN * sum(map(len, answer.alignments))
                self._cache.put((owner, *one), answer, len(one[1]) + sum(map(len, answer.texts)) + aligned)
        return [found[one] for one in sentences]

    def _call(self, search: Search, texts: list[str]) -> list[NBest[str]]:
        """A call of the model, in a thread of the batcher."""
        start = time.perf_counter()
        options = {name: value for name, value in vars(search).items() if name != "translator"}
        translations = search.translator.translate(texts, **options)
        self.metrics.model_seconds.observe(time.perf_counter() - start)
        self.metrics.batches.observe(len(texts))
        counts = [one.token_counts for one in translations]
        self.metrics.tokens.labels("source").inc(sum(source for source, _ in counts))
        self.metrics.tokens.labels("target").inc(sum(target for _, target in counts))
        self.metrics.truncated.inc(sum(one.stopped == "max_length" for one in translations))
        if time.perf_counter() - self._tidied > TIDY_EVERY:
            self._tidied = time.perf_counter()
            return_freed_memory()
        return [n_best_of(one, aligned=search.alignments) for one in translations]

    def _note_failure(self, error: BaseException) -> None:
        self.metrics.failed_calls.inc()
        log.error("a call of the model has failed; its sentences are tried one by one", extra={"fields": places(error)})

    async def _text_work(self, client: str, function: Callable[[], Result], *, at_once: bool = False) -> Result:
        """Calls the function in the thread for text, one of a client at a time, or at once on the event loop."""
        if at_once:
            return function()
        turn = self._text_turns.get(client) or asyncio.Lock()
        self._text_turns[client] = turn
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._text_thread, function)


def _is_short(texts: Sequence[AskedText]) -> bool:
    return sum(len(one.text) for one in texts) <= SHORT


def _words(text: str, format_: TextFormat) -> str:
    """The text without tags and protected text, from which its language is detected."""
    blocks = blocks_of(text) if format_ == "html" else [elements_of(text)]
    return " ".join(one for block in blocks if not isinstance(block, str) for one in block if isinstance(one, str))


def _judged(found: Sequence[Detected] | None, pairs: Pairs, target: str) -> tuple[Detected, LanguagePair | None, str]:
    """The language of a text, among those that `detect` found; its pair, the first for text without letters, none for
    text in the target language; and why it isn't translated, if its language is unclear or none that can be."""
    candidates = pairs.sources(target)
    if found is None:
        return Detected(candidates[0], 0.0), pairs[candidates[0], target], ""
    if not found:  # `und` is ISO 639's code for undetermined
        known = ", ".join(candidates)
        return Detected("und", 0.0), None, f"the text is in none of the languages that are translated: {known}"
    best = found[0]
    possible = [one for one in found if one.language in candidates and one.confidence >= NEAR * best.confidence]
    equal = [one.language for one in possible if one.confidence == possible[0].confidence]
    if len(equal) > 1:
        return best, None, f"the text's script doesn't tell {', '.join(equal)} apart; name the language"
    if possible:
        return possible[0], pairs[possible[0].language, target], ""
    if read_code(best.language).language == read_code(target).language:
        return best, None, ""
    return best, None, f"the text seems to be {best.language}; what is translated is {', '.join(candidates)}"
