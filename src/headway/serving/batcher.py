"""Joins what waits, of all requests, into few calls of the model.

Sentences wait in groups of the same options, each text once. Whenever the model has a worker free, the sentence whose
turn it is goes, with those of its group that are most like it in length: a worker's fair part of all that waits and
runs. Who has just been answered is likely to ask again, so that an idle worker waits a moment until its part is there.
Requests take turns: the first sentences of all go before the second ones, and no request has more than its share of the
places. All of this happens on the event loop; only the calls of the model run in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)
Answer = TypeVar("Answer")

CHARACTERS_PER_BATCH = 16_384
"""Padded characters that are given to the model together, at most: bounds the time of one call."""
FEWEST_TO_SHARE = 8
"""Fewer sentences than this aren't divided among workers."""
SHARES = 8
"""A request has at most one of so many parts of the places; its other sentences follow as those go."""
PATIENCE = 8
"""Times the linger that an idle worker waits at most, while more sentences keep coming, or are likely to."""


class QueueFullError(Exception):
    """So much waits already that no more is taken."""


@dataclass(slots=True, eq=False)
class _Job(Generic[Group, Answer]):
    """The sentences of one request."""

    turn: int
    """That of its first sentence."""
    rest: Iterator[tuple[int, tuple[Group, str]]]
    """The sentences that have no place yet, with their numbers."""
    size: int
    done: asyncio.Future[None]
    answers: dict[int, Answer] = field(default_factory=dict)
    """By the numbers of the sentences."""


@dataclass(slots=True, eq=False)
class _Item(Generic[Group, Answer]):
    """One sentence that waits."""

    group: Group
    text: str
    turn: tuple[int, int]
    """When it goes, and where turns are equal, the order of arrival."""
    takers: list[tuple[_Job[Group, Answer], int]] = field(default_factory=list)
    """The jobs that it is of, and its number in each."""
    alone: bool = False
    """Whether it may share no call any more, because one that it shared has failed."""


class Batcher(Generic[Group, Answer]):
    """`translate(group, texts)` gives the answers of many texts; it is called in threads, `workers` at a time.
    `on_failure` hears of a call that has failed and whose sentences are tried one by one."""

    def __init__(
        self,
        translate: Callable[[Group, list[str]], Sequence[Answer]],
        *,
        workers: int,
        batch_size: int,
        queue: int,
        linger: float = 0.0,
        initializer: Callable[[], None] | None = None,
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self._translate, self._on_failure = translate, on_failure
        self._workers, self._batch_size, self._queue, self._linger = workers, batch_size, queue, linger
        self._share = max(1, queue // SHARES)
        self._pool = ThreadPoolExecutor(workers, "model", initializer=initializer)
        self._items: dict[tuple[Group, str], _Item[Group, Answer]] = {}
        """Those that have a place, and that no worker has taken yet."""
        self._arrivals = count()
        self._turn = 0
        """Of the sentence that went last: a new request is as if it had been there until now."""
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0
        """When the timer rings at the latest."""
        self._started: dict[asyncio.Future[Sequence[Answer]], tuple[float, list[_Item[Group, Answer]]]] = {}
        """The calls that run, each with its beginning and its batch."""
        self._expected = 0
        """Answers that are to be waited for soon, if all who were answered by the latest call ask again."""

    @property
    def waiting(self) -> int:
        """Sentences that have a place, and that no worker has taken yet."""
        return len(self._items)

    @property
    def is_full(self) -> bool:
        return self.waiting >= self._queue

    @property
    def longest_call(self) -> float:
        """Seconds that the oldest call of the model has run for by now; 0 where none runs."""
        now = asyncio.get_running_loop().time()
        return max((now - start for start, _ in self._started.values()), default=0.0)

    async def submit(self, asked: Sequence[tuple[Group, str]], *, admitted: bool = False) -> list[Answer]:
        """The answer of each text. Raises QueueFullError where there is no place for them, or for their share of it,
        unless the request was `admitted` before. Where the task that waits is cancelled, its sentences go."""
        if not asked:
            return []
        if not admitted and self.waiting + min(len(asked), self._share) > self._queue:
            raise QueueFullError
        done = asyncio.get_running_loop().create_future()
        job = _Job[Group, Answer](self._turn, iter(enumerate(asked)), len(asked), done)
        self._place(job, self._share)
        self._wake()
        try:
            await job.done
        except BaseException:
            self._forget(job)
            raise
        return [job.answers[number] for number in range(job.size)]

    def warm_up(self, call: Callable[[], object]) -> None:
        """Makes the call in every worker at once, and waits for it: what a first call makes is made then."""
        for one in [self._pool.submit(call) for _ in range(self._workers)]:
            one.result()

    def close(self) -> None:
        """Takes no more; does not wait for a call that runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _place(self, job: _Job[Group, Answer], most: int) -> None:
        """Gives places to the next sentences of the job."""
        for number, asked in islice(job.rest, most):
            if asked not in self._items:
                self._items[asked] = _Item(*asked, (job.turn + number, next(self._arrivals)))
            self._items[asked].takers.append((job, number))

    def _wake(self) -> None:
        """Gives work to idle workers: at once where there is a whole batch, or as much as can be expected; else when no
        more has come for a moment."""
        if not self._items or len(self._started) >= self._workers:
            return
        awaited, fair = _owed(self._items.values()), self._fair_part()
        if not self._linger or awaited >= min(self._batch_size, max(FEWEST_TO_SHARE, fair)):
            self._dispatch()
            return
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._latest = loop.time() + PATIENCE * self._linger
        else:
            self._timer.cancel()
        ring = self._latest if awaited < fair else min(self._latest, loop.time() + self._linger)
        self._timer = loop.call_at(ring, self._dispatch)

    def _fair_part(self) -> int:
        """A worker's part of the sentences that are there, or likely to come again."""
        running = sum(_owed(batch) for _, batch in self._started.values())
        return -(-(running + max(_owed(self._items.values()), self._expected)) // self._workers)

    def _dispatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._items and len(self._started) < self._workers:
            batch = self._take()
            texts = [item.text for item in batch]
            call = loop.run_in_executor(self._pool, self._translate, batch[0].group, texts)
            self._started[call] = loop.time(), batch
            call.add_done_callback(self._finish)

    def _take(self) -> list[_Item[Group, Answer]]:
        """The batch that goes next: the sentence whose turn it is, and those of its group and of like length. Others
        get their places."""
        head = min(self._items.values(), key=lambda one: one.turn)
        self._turn = max(self._turn, head.turn[0])
        idle = self._workers - len(self._started)
        most = min(self._batch_size, max(FEWEST_TO_SHARE, min(self._fair_part(), -(-self.waiting // idle))))
        batch, longest = [head], len(head.text)
        group = [item for item in self._items.values() if item.group == head.group]
        for item in sorted(group, key=lambda one: (abs(len(one.text) - len(head.text)), one.turn)):
            longest = max(longest, len(item.text))
            if head.alone or len(batch) >= most or longest * (len(batch) + 1) > CHARACTERS_PER_BATCH:
                break
            if item is not head and not item.alone:
                batch.append(item)
        for item in batch:
            del self._items[item.group, item.text]
        for item in batch:
            for job, _ in item.takers:
                self._place(job, 1)
        return batch

    def _finish(self, call: asyncio.Future[Sequence[Answer]]) -> None:
        _, batch = self._started.pop(call)
        self._expected = _owed([*self._items.values(), *batch])
        error = QueueFullError() if call.cancelled() else call.exception()
        if error is None:
            for item, answer in zip(batch, call.result(), strict=True):
                for job, number in item.takers:
                    job.answers[number] = answer
                    if len(job.answers) == job.size and not job.done.done():
                        job.done.set_result(None)
        elif len(batch) > 1 and not call.cancelled():
            self._on_failure(error)
            for item in batch:  # each comes again by itself, so that the others are answered
                if takers := [taker for taker in item.takers if not taker[0].done.done()]:
                    again = self._items.setdefault((item.group, item.text), _Item(item.group, item.text, item.turn))
                    again.takers += takers
                    again.alone = True
        else:
            for job, _ in (taker for item in batch for taker in item.takers):
                if not job.done.done():
                    job.done.set_exception(error)
        self._wake()

    def _forget(self, job: _Job[Group, Answer]) -> None:
        """Nobody waits for the job any more."""
        for place, item in list(self._items.items()):
            item.takers = [taker for taker in item.takers if taker[0] is not job]
            if not item.takers:
                del self._items[place]


def _owed(items: Iterable[_Item[Group, Answer]]) -> int:
    """Answers that are waited for: a text that two requests wait for counts twice."""
    return sum(len(item.takers) for item in items)
