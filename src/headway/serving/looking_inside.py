"""Calls of a model beside translation: records of its inside, and alignments. A thread makes one after the other."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from headway.errors import UserError
from headway.insight.analyses.analysis import LONGEST_ANALYSED
from headway.page import Arrays
from headway.serving.admission import Places
from headway.serving.pairs import LanguagePair
from headway.serving.settings import LONGEST_INSPECTED
from headway.threads import use_one_thread
from headway.translator.aligning import Links

Result = TypeVar("Result")

MOST_CALLS, MOST_OF_A_CLIENT = 8, 2  # requests to inspect, or to align, that run or wait; others are refused


class SideThread:
    """A thread for calls of the model beside translation, one after the other, a few of each client."""

    def __init__(self, name: str) -> None:
        self.pool = ThreadPoolExecutor(1, name, initializer=use_one_thread)
        self._places = Places(MOST_CALLS, MOST_OF_A_CLIENT)  # of the calls that run or wait

    async def call(self, client: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """The result of the function. Raises HTTPException: 429 for a client that waits already, 503 for others."""
        self._places.take(client, f"{MOST_OF_A_CLIENT} of your requests of this kind wait already")
        work = [partial(function, *arguments)]
        call = self.pool.submit(lambda: work[0]())  # noqa: PLW0108  # so that the pool doesn't keep the arguments
        call.add_done_callback(lambda _: self._places.count(client, -1))  # it may run longer than its request
        try:
            return await asyncio.wrap_future(call)
        except asyncio.CancelledError:
            if call.cancel():
                work.clear()  # the pool keeps the call until its turn comes
            raise


def record(pair: LanguagePair, text: str, options: dict[str, Any], arrays: Arrays) -> bytes:
    """The record of one translation, as JSON; `options` are those of `Translator.inspect`. Raises UserError."""
    longest = LONGEST_ANALYSED if options["analyses"] else LONGEST_INSPECTED
    is_readable = pair.translator.is_readable
    for sources, targets in ([text], [options["target"] or ""]), *(one.texts() for one in options["analyses"]):
        readable = [is_readable(one, longest) for one in sources]
        if not all(readable + [is_readable(one, longest, side="target") for one in targets]):
            raise UserError(f"the text is too long to look into: {longest} tokens at most")
    return pair.translator.inspect(pair.prefix + text, **options).to_json(arrays).encode()


def links_of(texts: Sequence[tuple[LanguagePair | None, str, str]]) -> list[Links]:
    """Links between the words of each text and its translation; none without a pair. Raises UserError."""
    found: list[Links] = [[] for _ in texts]
    for pair in dict.fromkeys(pair for pair, _, _ in texts if pair is not None):
        numbers = [number for number, text in enumerate(texts) if text[0] == pair]
        sources, translations = [pair.prefix + texts[one][1] for one in numbers], [texts[one][2] for one in numbers]
        is_readable = pair.translator.is_readable
        if not all([*map(is_readable, sources), *(is_readable(one, side="target") for one in translations)]):
            raise UserError("the text is too long to align; give one sentence at a time")
        for number, links in zip(numbers, pair.translator.align(sources, translations), strict=True):
            found[number] = links
    return found
