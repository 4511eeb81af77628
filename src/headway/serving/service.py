"""What the server does, without HTTP: documents in, translated documents out; by detection where no source is named."""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from headway.devices import return_freed_memory
from headway.documents.markup import blocks_of, elements_of
from headway.documents.parsing import (
    Document,
    NBest,
    PendingDocuments,
    SentenceRequest,
    TextFormat,
    n_best_of,
    parse_document,
)
from headway.errors import UserError
from headway.insight.analyses import LONGEST_ANALYSED
from headway.languages import read_code, same_language
from headway.page import Arrays
from headway.serving.batcher import Batcher, QueueFullError
from headway.serving.guard import Metrics, places
from headway.serving.pairs import LanguagePair, Pairs
from headway.serving.schemas import AlignRequest, InspectRequest, TranslateRequest
from headway.serving.settings import LONGEST_INSPECTED, Settings
from headway.text.detection import Detected, detect
from headway.threads import current_threads, use_one_thread
from headway.translator import Translator
from headway.translator.alignments import Links
from headway.translator.glossary import Glossary

log = logging.getLogger("headway.service")

Result = TypeVar("Result")

AUTO = "auto"
NEAR = 0.5
"""Share of the highest confidence that a translatable language needs to be preferred."""
STUCK_AFTER = 120.0
"""Seconds after which a call of the model counts as never ending."""
TIDY_EVERY = 10.0
"""Seconds after which a call of the model is followed by returning freed memory."""
DONE_AT_ONCE = 500
"""Characters of a request that are parsed, and whose tags are placed, on the event loop: that takes less time than to
change threads."""
ALIGNED_TOKEN = 100
"""Characters that take as much memory in the cache as the alignment of a token."""
MOST_CHARACTERS = 5_000_000
"""Of all that the cache keeps: bounds the memory, however long the sentences are and however many translations each
has."""
MOST_INSPECTIONS = 4
"""Requests to inspect and to align that are worked on or wait; further ones are refused."""
WARMING = "A sentence of a usual length, as many people would write it one day."


@dataclass(frozen=True)
class Search:
    """The model and the options of a call: what may share one."""

    translator: Translator
    beam_size: int
    n_best: int
    glossary: Glossary | None = None
    confidence: bool = False
    alignments: bool = False


class LatestCache:
    """Keeps the answers that were used last, `size` of them, with `characters` together."""

    def __init__(self, size: int, characters: int = MOST_CHARACTERS) -> None:
        self._size, self._characters = size, characters
        self._values: OrderedDict[tuple[Search, str], tuple[NBest[str], int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: tuple[Search, str]) -> NBest[str] | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: tuple[Search, str], value: NBest[str], characters: int) -> None:
        """Keeps a value that has so many characters, its key's among them."""
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = value, characters
        self._characters += before - characters
        while len(self._values) > self._size or self._characters < 0:
            _, (_, gone) = self._values.popitem(last=False)
            self._characters += gone


class Service:
    """Models, their batcher, the cache and the counts. Everything is called on one event loop."""

    def __init__(self, pairs: Pairs, settings: Settings) -> None:
        self.pairs, self.settings = pairs, settings
        self.draining = False
        """Whether the server is about to end."""
        self._tidied = time.perf_counter()
        on_cpu = pairs.first.translator.device == "cpu"
        self._batcher = Batcher[Search, NBest[str]](
            self._call,
            workers=current_threads() if on_cpu else 1,
            batch_size=settings.batch_size,
            queue=settings.queue,
            linger=settings.linger,
            initializer=use_one_thread if on_cpu else None,
            on_failure=self._note_failure,
        )
        self.metrics = Metrics(lambda: self._batcher.waiting)
        self._cache = LatestCache(settings.cache_size)
        self._text_work = ThreadPoolExecutor(1, "text")
        self._inspecting = ThreadPoolExecutor(1, "inspect", initializer=use_one_thread)
        self._inspections = threading.BoundedSemaphore(MOST_INSPECTIONS)

    @property
    def is_ready(self) -> bool:
        """Whether requests are answered: not ending, and the model isn't stuck."""
        return not self.draining and self._batcher.longest_call < STUCK_AFTER

    @property
    def is_full(self) -> bool:
        """Whether a request to translate would be refused."""
        return self._batcher.is_full

    def warm_up(self) -> None:
        """Translates with every model, so that the first requests are as fast as later ones; with torch as much as is
        translated at once, so that they take no more memory either."""
        for translator, pair in {one.translator: one for one in self.pairs}.items():
            texts = [pair.prefix + WARMING] * (self.settings.batch_size if translator.engine == "torch" else 1)
            self._batcher.warm_up(partial(translator.translate, texts, n_best=1))
        return_freed_memory()

    async def choose(
        self, wanted: TranslateRequest | InspectRequest | AlignRequest, texts: Sequence[str]
    ) -> tuple[list[LanguagePair | None], list[Detected] | None]:
        """The pair for each text, None for one that stays as it is, and with `auto` the language detected in each. A
        single text in a language that isn't translated is refused; in a list it stays as it is, so that the others get
        their translations. Raises UserError."""
        target = same_language(wanted.target, self.pairs.targets())
        if target is None:
            raise UserError(f"target: unknown; choose one of {', '.join(self.pairs.targets())}")
        candidates = self.pairs.sources(target)
        if wanted.source.lower() != AUTO:
            pair = self.pairs.find(same_language(wanted.source, candidates) or wanted.source, target)
            if pair is None:
                raise UserError(f"source: into {target} there are {', '.join(candidates)}, and {AUTO}")
            return [pair] * len(texts), None
        chosen, detected = [], []
        for found in await self.detect(texts, wanted.format if isinstance(wanted, TranslateRequest) else "text"):
            try:
                best, pair = _judged(found, self.pairs, target)
            except UserError as error:
                if isinstance(wanted.q, str):
                    raise UserError(f"source: {error}") from None
                best, pair = found[0] if found else Detected("und", 0.0), None  # ISO 639's code for undetermined
            chosen.append(pair)
            detected.append(best)
        return chosen, detected

    async def translate(
        self, wanted: TranslateRequest, texts: Sequence[tuple[str, LanguagePair | None]]
    ) -> list[NBest[str]]:
        """For each text its translation and alternatives, or the text itself where it has no pair. Raises
        QueueFullError, and UserError where a model can't follow the glossary, or isn't calibrated if `confidence` is
        asked for."""
        glossary, n_best = wanted.terms(), 1 + wanted.alternatives
        for translator in {pair.translator for _, pair in texts if pair is not None}:
            if glossary is not None:
                translator.check_glossary(glossary)
            if wanted.confidence:
                translator.calibration()
        is_short = sum(len(text) for text, _ in texts) <= DONE_AT_ONCE

        async def work(function: Callable[[], Result]) -> Result:
            return function() if is_short else await self._in_thread(function)

        def parsed() -> list[Document]:
            return [
                Document(wanted.format, [text])
                if pair is None
                else parse_document(text, wanted.format, pair.source, pair.is_readable)
                for text, pair in texts
            ]

        def sentence(asked: SentenceRequest) -> tuple[Search, str]:
            pair = texts[asked.document][1]
            assert pair is not None, "the others have no sentences"
            beam = max(pair.translator.search_options(beam_size=wanted.beam_size).beam_size, n_best)
            return Search(pair.translator, beam, n_best, glossary, wanted.confidence, asked.aligned), asked.text

        pending = PendingDocuments(await work(parsed), ["" if pair is None else pair.prefix for _, pair in texts])
        await work(partial(pending.take_wholes, await self._ask([*map(sentence, pending.wholes)])))
        return pending.joined(await self._ask([*map(sentence, pending.runs)], admitted=True), n_best)

    async def detect(self, texts: Sequence[str], format_: TextFormat = "text") -> list[list[Detected] | None]:
        """For each text the languages that it may be in, of those that the server knows; None for one without words."""
        return await self._in_thread(lambda: [detect(_words(text, format_), self.pairs.codes) for text in texts])

    def close(self) -> None:
        self._batcher.close()
        for pool in (self._text_work, self._inspecting):
            pool.shutdown(wait=False, cancel_futures=True)

    async def beside(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """A call of the model beside those that translate. Raises QueueFullError."""
        if not self._inspections.acquire(blocking=False):
            raise QueueFullError
        call = self._inspecting.submit(function, *arguments)
        call.add_done_callback(lambda _: self._inspections.release())  # it works on when nobody waits any more
        return await asyncio.wrap_future(call)

    async def _ask(self, sentences: Sequence[tuple[Search, str]], *, admitted: bool = False) -> list[NBest[str]]:
        """The translations of each sentence, from the cache or the model; `admitted` as in `Batcher.submit`. What has a
        glossary isn't kept: each request brings one of its own, and the cache would keep that too."""
        found = {one: kept for one in sentences if (kept := self._cache.get(one)) is not None}
        self.metrics.cache_hits.inc(len(found))
        missing = [one for one in dict.fromkeys(sentences) if one not in found]
        for one, answer in zip(missing, await self._batcher.submit(missing, admitted=admitted), strict=True):
            found[one] = answer
            if one[0].glossary is None:
                aligned = ALIGNED_TOKEN * sum(map(len, answer.alignments))
                self._cache.put(one, answer, len(one[1]) + sum(map(len, answer.texts)) + aligned)
        return [found[one] for one in sentences]

    def _call(self, search: Search, texts: list[str]) -> list[NBest[str]]:
        """One call of the model, in a thread of its own."""
        start = time.perf_counter()
        options = {name: value for name, value in vars(search).items() if name != "translator"}
        translations = search.translator.translate(texts, **options)
        self.metrics.model_seconds.observe(time.perf_counter() - start)
        self.metrics.batches.observe(len(texts))
        self.metrics.tokens.labels("source").inc(sum(len(one.source_tokens) for one in translations))
        self.metrics.tokens.labels("target").inc(sum(len(one.tokens) for one in translations))
        self.metrics.truncated.inc(sum(one.stopped == "max_length" for one in translations))
        if time.perf_counter() - self._tidied > TIDY_EVERY:
            self._tidied = time.perf_counter()
            return_freed_memory()
        return [n_best_of(one, aligned=search.alignments) for one in translations]

    def _note_failure(self, error: BaseException) -> None:
        self.metrics.failed_calls.inc()
        log.error("a call of the model has failed; its sentences are tried one by one", extra={"fields": places(error)})

    async def _in_thread(self, function: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._text_work, function)


def _words(text: str, format_: TextFormat) -> str:
    """The text without tags and protected text, from which its language is detected."""
    blocks = blocks_of(text) if format_ == "html" else [elements_of(text)]
    elements = (one for block in blocks if not isinstance(block, str) for one in block)
    return " ".join(one for one in elements if isinstance(one, str))


def _judged(found: Sequence[Detected] | None, pairs: Pairs, target: str) -> tuple[Detected, LanguagePair | None]:
    """The language of a text, from those that `detect` found, and the pair that translates it: the first one for text
    without letters, none for text in the target language. Raises UserError if the language is unclear or isn't
    translated."""
    candidates = pairs.sources(target)
    if found is None:
        return Detected(candidates[0], 0.0), pairs.find(candidates[0], target)
    if not found:
        raise UserError(f"the text is in none of the languages that are translated: {', '.join(candidates)}")
    possible = [one for one in found if one.language in candidates and one.confidence >= NEAR * found[0].confidence]
    equal = [one.language for one in possible if one.confidence == possible[0].confidence]
    if len(equal) > 1:
        raise UserError(f"the text's script doesn't tell {', '.join(equal)} apart; name the language")
    if possible:
        return possible[0], pairs.find(possible[0].language, target)
    if read_code(found[0].language).language == read_code(target).language:
        return found[0], None
    raise UserError(f"the text seems to be {found[0].language}; what is translated is {', '.join(candidates)}")


def record(pair: LanguagePair, text: str, options: dict[str, Any], arrays: Arrays) -> bytes:
    """The record of one translation, as JSON; `options` are those of `Translator.inspect`. Raises UserError."""
    sources, targets = [text], [options["target"] or ""]
    for request in options["analyses"]:
        other_sources, other_targets = request.texts()
        sources, targets = sources + other_sources, targets + other_targets
    longest = LONGEST_ANALYSED if options["analyses"] else LONGEST_INSPECTED
    is_readable = pair.translator.is_readable
    readable = [is_readable(one, longest) for one in sources]
    if not all(readable + [is_readable(one, longest, side="target") for one in targets]):
        raise UserError(f"the text is too long to look into: {longest} tokens at most")
    return pair.translator.inspect(pair.prefix + text, **options).to_json(arrays).encode()


def links_of(texts: Sequence[tuple[LanguagePair | None, str, str]]) -> list[Links]:
    """The links between the words of each text and its translation; none without a pair. Raises UserError."""
    found: list[Links] = [[] for _ in texts]
    for pair in dict.fromkeys(pair for pair, _, _ in texts if pair is not None):
        some = [number for number, text in enumerate(texts) if text[0] == pair]
        sources, translations = [texts[number][1] for number in some], [texts[number][2] for number in some]
        readable = [pair.translator.is_readable(one, side="target") for one in translations]
        if not all([*readable, *map(pair.is_readable, sources)]):
            raise UserError("the text is too long to align; give one sentence at a time")
        tagged = [pair.prefix + source for source in sources]
        for number, links in zip(some, pair.translator.align(tagged, translations), strict=True):
            found[number] = links
    return found
