"""Joins what waits, of all requests, into few calls of the model.

Sentences wait in groups of the same options. Whenever the model has a worker free, the sentence that has waited longest
goes, with those of its group that are most like it in length. All of this happens on the event loop; only the calls of
the model run in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)
Answer = TypeVar("Answer")

CHARACTERS_PER_BATCH = 16_384
"""Padded characters that are given to the model together, at most: bounds the time of one call."""
FEWEST_TO_SHARE = 8
"""Fewer sentences than this aren't divided among workers."""
PATIENCE = 8
"""Times the linger that an idle worker waits at most, while more sentences keep coming."""


class QueueFullError(Exception):
    """So much waits already that no more is taken."""


@dataclass(slots=True)
class _Job(Generic[Answer]):
    """The sentences of one request."""

    answers: list[Answer | None]
    left: int
    done: asyncio.Future[None]


@dataclass(slots=True, eq=False)
class _Item(Generic[Answer]):
    """One sentence that waits."""

    text: str
    number: int
    """Its place in the job, and in the order of arrival."""
    arrival: int
    job: _Job[Answer]
    alone: bool = False
    """Whether it may share no call any more, because one that it shared has failed."""


class Batcher(Generic[Group, Answer]):
    """`translate(group, texts)` gives the answers of many texts; it is called in threads, `workers` at a time."""

    def __init__(
        self,
        translate: Callable[[Group, list[str]], Sequence[Answer]],
        *,
        workers: int,
        batch_size: int,
        queue: int,
        linger: float = 0.0,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self._translate = translate
        self._workers, self._batch_size, self._queue, self._linger = workers, batch_size, queue, linger
        self._pool = ThreadPoolExecutor(workers, "model", initializer=initializer)
        self._groups: dict[Group, list[_Item[Answer]]] = {}
        self._arrivals = 0
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0
        """When the timer rings at the latest."""
        self._started: dict[asyncio.Future[Sequence[Answer]], float] = {}
        self.waiting = 0
        """Sentences that no worker has taken yet."""

    @property
    def is_full(self) -> bool:
        return self.waiting >= self._queue

    @property
    def longest_call(self) -> float:
        """Seconds that the oldest call of the model has run for by now; 0 where none runs."""
        now = asyncio.get_running_loop().time()
        return max((now - start for start in self._started.values()), default=0.0)

    async def submit(self, group: Group, texts: Sequence[str]) -> list[Answer]:
        """The answer of each text. Raises QueueFullError. Where the task that waits is cancelled, its sentences go."""
        if not texts:
            return []
        if self.is_full:
            raise QueueFullError
        job = _Job[Answer]([None] * len(texts), len(texts), asyncio.get_running_loop().create_future())
        items = self._groups.setdefault(group, [])
        for number, text in enumerate(texts):
            self._arrivals += 1
            items.append(_Item(text, number, self._arrivals, job))
        self.waiting += len(texts)
        self._wake()
        try:
            await job.done
        finally:
            if job.left:
                self._forget(job)
        return job.answers  # type: ignore[return-value]

    def warm_up(self, group: Group, texts: Sequence[str]) -> None:
        """Lets every worker have a batch once, and waits for it: what a first call makes is made then."""
        for call in [self._pool.submit(self._translate, group, list(texts)) for _ in range(self._workers)]:
            call.result()

    def close(self) -> None:
        """Takes no more; does not wait for a call that runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _wake(self) -> None:
        """Gives work to idle workers: at once where there is a whole batch, else when no more has come for a moment."""
        if not self.waiting or len(self._started) >= self._workers:
            return
        if not self._linger or self.waiting >= self._batch_size:
            self._dispatch()
            return
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._latest = loop.time() + PATIENCE * self._linger
        else:
            self._timer.cancel()
        self._timer = loop.call_at(min(self._latest, loop.time() + self._linger), self._dispatch)

    def _dispatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self.waiting and len(self._started) < self._workers:
            group = min(self._groups, key=lambda one: self._groups[one][0].arrival)
            self._start(group, self._take(group))

    def _take(self, group: Group) -> list[_Item[Answer]]:
        """The batch that goes next: the oldest of the group, and those of like length."""
        items = self._groups[group]
        oldest = items[0]
        idle = self._workers - len(self._started)
        most = min(self._batch_size, max(FEWEST_TO_SHARE, -(-len(items) // idle)))
        batch: list[_Item[Answer]] = []
        longest = 0
        for item in sorted(items, key=lambda one: abs(len(one.text) - len(oldest.text))):
            longest = max(longest, len(item.text))
            if batch and (len(batch) >= most or longest * (len(batch) + 1) > CHARACTERS_PER_BATCH or oldest.alone):
                break
            if item is oldest or not item.alone:
                batch.append(item)
        taken = set(map(id, batch))
        self._keep(group, [item for item in items if id(item) not in taken])
        self.waiting -= len(batch)
        return batch

    def _start(self, group: Group, batch: list[_Item[Answer]]) -> None:
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._pool, self._translate, group, [item.text for item in batch])
        self._started[call] = loop.time()
        call.add_done_callback(lambda done: self._finish(group, batch, done))

    def _finish(self, group: Group, batch: list[_Item[Answer]], call: asyncio.Future[Sequence[Answer]]) -> None:
        del self._started[call]
        error = None if call.cancelled() else call.exception()
        if error is not None and len(batch) > 1:
            self._try_alone(group, batch)
        elif error is not None or call.cancelled():
            for item in batch:
                _fail(item.job, error or QueueFullError())
        else:
            for item, answer in zip(batch, call.result(), strict=True):
                _answer(item, answer)
        self._wake()

    def _try_alone(self, group: Group, batch: list[_Item[Answer]]) -> None:
        """A call has failed: each of its sentences comes again by itself, so that the others are answered."""
        again = [item for item in batch if not item.job.done.done()]
        for item in again:
            item.alone = True
        self._keep(group, sorted(again + self._groups.get(group, []), key=lambda one: one.arrival))
        self.waiting += len(again)

    def _forget(self, job: _Job[Answer]) -> None:
        """Nobody waits for the job any more."""
        for group, items in list(self._groups.items()):
            left = [item for item in items if item.job is not job]
            self.waiting -= len(items) - len(left)
            self._keep(group, left)

    def _keep(self, group: Group, items: list[_Item[Answer]]) -> None:
        if items:
            self._groups[group] = items
        else:
            self._groups.pop(group, None)


def _answer(item: _Item[Answer], answer: Answer) -> None:
    job = item.job
    job.answers[item.number] = answer
    job.left -= 1
    if not job.left and not job.done.done():
        job.done.set_result(None)


def _fail(job: _Job[Answer], error: BaseException) -> None:
    if not job.done.done():
        job.done.set_exception(error)
