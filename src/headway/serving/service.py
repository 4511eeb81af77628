"""What the server does, without HTTP: documents in, translated documents out."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch

from headway.devices import return_freed_memory
from headway.documents import Asked, Document, Drafts, Found, TextFormat, parse_document
from headway.documents.elements import elements_of
from headway.documents.markup import blocks_of
from headway.documents.translator import found_in
from headway.errors import UserError
from headway.glass import Arrays
from headway.insight.analyses import LONGEST_ANALYSED
from headway.serving.batcher import Batcher, QueueFullError
from headway.serving.cache import LatestCache
from headway.serving.metrics import Metrics
from headway.serving.pairs import Pair, Pairs
from headway.serving.settings import LONGEST_INSPECTED, Settings
from headway.serving.watch import places
from headway.text.detection import Detected, detect
from headway.text.glossary import Glossary
from headway.translator import Translator
from headway.translator.alignments import Links

log = logging.getLogger("headway.service")

Result = TypeVar("Result")
STUCK_AFTER = 120.0
"""Seconds after which a call of the model counts as never ending."""
TIDY_EVERY = 10.0
"""Seconds after which a call of the model is followed by returning freed memory."""
DONE_AT_ONCE = 500
"""Characters of a request that are parsed, and whose tags are placed, on the event loop: that takes less time than to
change threads."""
ALIGNED_TOKEN = 100
"""Characters that take as much memory in the cache as the alignment of a token."""
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


class Service:
    """Models, their batcher, the cache and the counts. Everything is called on one event loop."""

    def __init__(self, pairs: Pairs, settings: Settings) -> None:
        self.pairs, self.settings = pairs, settings
        self.draining = False
        """Whether the server is about to end."""
        self._tidied = time.perf_counter()
        on_cpu = pairs.first.translator.device.type == "cpu"
        self._batcher = Batcher[Search, Found](
            self._call,
            workers=torch.get_num_threads() if on_cpu else 1,
            batch_size=settings.batch_size,
            queue=settings.queue,
            linger=settings.linger,
            initializer=_one_thread if on_cpu else None,
            on_failure=self._note_failure,
        )
        self.metrics = Metrics(lambda: self._batcher.waiting)
        self._cache = LatestCache[tuple[Search, str], Found](settings.cache_size)
        self._text_work = ThreadPoolExecutor(1, "text")
        self._inspecting = ThreadPoolExecutor(1, "inspect", initializer=_one_thread)
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
        """Translates with every model as much as is translated at once, so that the first requests are as fast, and
        take no more memory, than later ones."""
        for translator, pair in {one.translator: one for one in self.pairs}.items():
            texts = [pair.prefix + WARMING] * self.settings.batch_size
            self._batcher.warm_up(partial(translator.translate, texts, n_best=1))

    async def translate(
        self,
        texts: Sequence[tuple[str, Pair | None]],
        format_: TextFormat,
        beam_size: int | None,
        n_best: int,
        glossary: Glossary | None = None,
        *,
        confidence: bool = False,
    ) -> list[Found]:
        """For each text its translation and up to `n_best - 1` others, or the text itself where it has no pair. Raises
        QueueFullError, and UserError where a model can't follow the glossary, or isn't calibrated if `confidence` is
        asked for."""
        translators = {pair.translator for _, pair in texts if pair is not None}
        if glossary is not None:
            for translator in translators:
                translator.check_glossary(glossary)
        if confidence:
            for translator in translators:
                translator.calibration()
        is_short = sum(len(text) for text, _ in texts) <= DONE_AT_ONCE

        async def work(function: Callable[..., Result], *arguments: Any) -> Result:
            return function(*arguments) if is_short else await self._in_thread(function, *arguments)

        documents = await work(self._parse, texts, format_)
        searches = {
            number: _search(pair, beam_size, n_best, glossary, confidence)
            for number, (_, pair) in enumerate(texts)
            if pair is not None
        }

        def sentences(asked: Sequence[Asked]) -> list[tuple[Search, str]]:
            return [(replace(searches[one.document], alignments=one.aligned), one.text) for one in asked]

        drafts = Drafts(documents, ["" if pair is None else pair.prefix for _, pair in texts])
        await work(drafts.take_wholes, await self._ask(sentences(drafts.wholes)))
        drafts.take_runs(await self._ask(sentences(drafts.runs), admitted=True))
        return drafts.joined(n_best)

    async def detect(
        self, texts: Sequence[str], candidates: Sequence[str], format_: TextFormat = "text"
    ) -> list[list[Detected] | None]:
        """For each text the languages that it may be in; None for one without words."""
        return await self._in_thread(lambda: [detect(_words(text, format_), candidates) for text in texts])

    async def inspect(self, pair: Pair, text: str, options: dict[str, Any], arrays: Arrays) -> bytes:
        """The record of one translation, as JSON; `options` are those of `Translator.inspect`. Raises QueueFullError,
        UserError."""
        return await self._beside(_record, pair, text, options, arrays)

    async def align(self, texts: Sequence[tuple[Pair | None, str, str]]) -> list[Links]:
        """The links between the words of each text and its translation; none without a pair. Raises QueueFullError,
        UserError."""
        return await self._beside(_links, texts)

    def close(self) -> None:
        self._batcher.close()
        for pool in (self._text_work, self._inspecting):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _beside(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """A call of the model beside those that translate. Raises QueueFullError."""
        if not self._inspections.acquire(blocking=False):
            raise QueueFullError
        call = self._inspecting.submit(function, *arguments)
        call.add_done_callback(lambda _: self._inspections.release())  # it works on when nobody waits any more
        return await asyncio.wrap_future(call)

    async def _ask(self, sentences: Sequence[tuple[Search, str]], *, admitted: bool = False) -> list[Found]:
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

    def _parse(self, texts: Sequence[tuple[str, Pair | None]], format_: TextFormat) -> list[Document]:
        return [
            Document(format_, [text]) if pair is None else parse_document(text, format_, pair.source, pair.is_readable)
            for text, pair in texts
        ]

    def _call(self, search: Search, texts: list[str]) -> list[Found]:
        """One call of the model, in a thread of its own."""
        start = time.perf_counter()
        translations = search.translator.translate(
            texts,
            beam_size=search.beam_size,
            n_best=search.n_best,
            glossary=search.glossary,
            alignments=search.alignments,
            confidence=search.confidence,
        )
        self.metrics.model_seconds.observe(time.perf_counter() - start)
        self.metrics.batches.observe(len(texts))
        self.metrics.tokens.labels("source").inc(sum(len(one.source_tokens) for one in translations))
        self.metrics.tokens.labels("target").inc(sum(len(one.tokens) for one in translations))
        self.metrics.truncated.inc(sum(one.stopped == "max_length" for one in translations))
        if time.perf_counter() - self._tidied > TIDY_EVERY:
            self._tidied = time.perf_counter()
            return_freed_memory()
        return [found_in(one, aligned=search.alignments) for one in translations]

    def _note_failure(self, error: BaseException) -> None:
        self.metrics.failed_calls.inc()
        log.error("a call of the model has failed; its sentences are tried one by one", extra={"fields": places(error)})

    async def _in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._text_work, function, *arguments)


def _words(text: str, format_: TextFormat) -> str:
    """The text without tags and protected text, from which its language is detected."""
    blocks = blocks_of(text) if format_ == "html" else [elements_of(text)]
    elements = (one for block in blocks if not isinstance(block, str) for one in block)
    return " ".join(one for one in elements if isinstance(one, str))


def _one_thread() -> None:
    """Each worker is one core's."""
    torch.set_num_threads(1)


def _search(pair: Pair, beam_size: int | None, n_best: int, glossary: Glossary | None, confidence: bool) -> Search:
    usual = pair.translator.search_options(beam_size=beam_size).beam_size
    return Search(pair.translator, max(usual, n_best), n_best, glossary, confidence)


def _record(pair: Pair, text: str, options: dict[str, Any], arrays: Arrays) -> bytes:
    asked = options["analyses"]
    sources = [text, *(source for one in asked for source in one.sources)]
    targets = [options["target"] or "", *(target for one in asked for target in one.targets)]
    longest = LONGEST_ANALYSED if asked else LONGEST_INSPECTED
    is_readable = pair.translator.is_readable
    if not (
        all(is_readable(one, longest) for one in sources)
        and all(is_readable(one, longest, side="target") for one in targets)
    ):
        raise UserError(f"the text is too long to look into: {longest} tokens at most")
    return pair.translator.inspect(pair.prefix + text, **options).to_json(arrays).encode()


def _links(texts: Sequence[tuple[Pair | None, str, str]]) -> list[Links]:
    found: list[Links] = [[] for _ in texts]
    for pair in dict.fromkeys(pair for pair, _, _ in texts if pair is not None):
        some = [number for number, text in enumerate(texts) if text[0] == pair]
        sources, translations = [texts[number][1] for number in some], [texts[number][2] for number in some]
        if not (
            all(map(pair.is_readable, sources))
            and all(pair.translator.is_readable(one, side="target") for one in translations)
        ):
            raise UserError("the text is too long to align; give one sentence at a time")
        tagged = [pair.prefix + source for source in sources]
        for number, links in zip(some, pair.translator.align(tagged, translations), strict=True):
            found[number] = links
    return found
