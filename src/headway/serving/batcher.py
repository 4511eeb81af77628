"""Batches the waiting sentences of all requests into few calls of the model.

Sentences wait in groups of the same options, each text once. When a worker is free, the sentence whose turn it is goes,
with those of its group most like it in length: a worker's fair part of all that wait and run. Clients that were just
answered are likely to ask again, so an idle worker waits a moment until its part is complete. Clients take turns by the
work that was done for them, and the requests of a client by sentences; no client has more than its share of the
places, however many requests it sends, nor all workers while others ask, too. Only the calls of the model run in
threads, everything else on the event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

Group = TypeVar("Group", bound=Hashable)
Answer = TypeVar("Answer")

WORK_PER_BATCH = 16_384  # maximum of one call, with padding: bounds its time and its memory
OVERHEAD = 41  # work of a sentence besides its bytes: half the tokens that its translation may have in excess
FEWEST_TO_SHARE = 8  # fewer sentences aren't divided among workers
SHARES = 8  # a client has at most 1/SHARES of the places, and no more than are free; its others follow
CALL_SECONDS = 0.25  # that a client's sentences of a call should take, as the last such call tells
FIRST_PACE = 8_000.0  # work in a second, for a client without such a call
SLOW = 2 * CALL_SECONDS  # a call takes longer only if a sentence of it does
RECENT, LATELY = 3.0, 60.0  # seconds for which a client that has asked keeps a worker free of others; of slow ones
PATIENCE = 8  # lingers that an idle worker waits at most, while more sentences come or are likely to


class QueueFullError(Exception):
    """The queue has no place for a request."""


@dataclass(slots=True, eq=False)
class _Client(Generic[Group, Answer]):
    """A client that waits or has asked of late."""

    asked: float = 0.0  # the time of its latest request
    served: float = 0.0  # work, beginning with the mean of others
    places: int = 0  # its sentences that wait for a worker
    pace: float = FIRST_PACE  # work that was done in a second of its last call
    slow_until: float = math.inf  # while it counts as slow: until its first call is over, and LATELY after a slow one
    jobs: deque[_Job[Group, Answer]] = field(default_factory=deque)  # with sentences without a place

    def note_call(self, work: int, seconds: float, now: float) -> None:
        self.pace = work / seconds
        if seconds > SLOW or self.slow_until == math.inf:
            self.slow_until = now + LATELY * (seconds > SLOW)


@dataclass(slots=True, eq=False)
class _Job(Generic[Group, Answer]):
    """The sentences of one request."""

    client: _Client[Group, Answer]
    turn: int  # of its first sentence
    rest: Iterator[tuple[int, tuple[Group, str]]]  # the sentences without a place, with their numbers
    size: int
    done: asyncio.Future[None]
    on_answer: Callable[[], None]
    answers: dict[tuple[Group, str], Answer] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Item(Generic[Group, Answer]):
    """A waiting sentence."""

    group: Group
    text: str
    work: int
    client: _Client[Group, Answer]  # the first that asked for it
    turn: tuple[int, int]  # among those of its client, then its order of arrival
    takers: list[_Job[Group, Answer]] = field(default_factory=list)
    alone: bool = False  # whether it needs a call of its own, because a shared one has failed


class Batcher(Generic[Group, Answer]):
    """Batches calls of `translate(group, texts)`, which run in `workers` threads. `work_of` gives the work of
    translating a text of the group. `on_failure` gets the error of a failed call, whose sentences are then tried one by
    one."""

    def __init__(
        self,
        translate: Callable[[Group, list[str]], Sequence[Answer]],
        *,
        workers: int,
        batch_size: int,
        queue: int,
        linger: float = 0.0,
        work_of: Callable[[Group, str], int] = lambda _, text: OVERHEAD + len(text),
        initializer: Callable[[], None] | None = None,
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self._translate, self._work_of, self._on_failure = translate, work_of, on_failure
        self._workers, self._batch_size, self._queue, self._linger = workers, batch_size, queue, linger
        self._share = max(1, queue // SHARES)
        self._pool = ThreadPoolExecutor(workers, "model", initializer=initializer)
        self._items: dict[tuple[Group, str], _Item[Group, Answer]] = {}  # with a place, waiting for a worker
        self._clients: dict[Hashable, _Client[Group, Answer]] = {}  # the one that has asked last is last
        self._arrivals = count()
        self._turn = 0  # of the latest sentence that went; a new request begins with it
        self._served = 0.0  # by which clients are compared; one that didn't wait begins with it
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0  # latest time for the timer to ring
        self._started: dict[asyncio.Future[Sequence[Answer]], tuple[float, list[_Item[Group, Answer]]]] = {}
        """Start time and batch of each call that runs."""
        self._expected = 0  # sentences to wait for if all clients of the latest call ask again

    @property
    def waiting(self) -> int:
        """Number of sentences with a place that wait for a worker."""
        return len(self._items)

    @property
    def is_full(self) -> bool:
        return self.waiting >= self._queue

    @property
    def longest_call(self) -> float:
        """Seconds since the start of the oldest call that runs; 0 without one."""
        now = asyncio.get_running_loop().time()
        return max((now - start for start, _ in self._started.values()), default=0.0)

    async def submit(
        self,
        asked: Sequence[tuple[Group, str]],
        *,
        client: Hashable,
        admitted: bool = False,
        on_answer: Callable[[], None] = lambda: None,
    ) -> list[Answer]:
        """The answer of each text; `on_answer` is called as each arrives. Raises QueueFullError if there is no place,
        unless the request was `admitted` before. Cancelling the waiting task removes its sentences."""
        if not asked:
            return []
        if not admitted and self.is_full:
            raise QueueFullError
        known = self._clients.pop(client, None) or _Client[Group, Answer]()
        self._clients[client] = known
        known.asked = asyncio.get_running_loop().time()
        if not known.places and not known.jobs:
            known.served = max(known.served, self._served)
        done = asyncio.get_running_loop().create_future()
        once = dict.fromkeys(asked)
        job = _Job[Group, Answer](known, self._turn, iter(enumerate(once)), len(once), done, on_answer)
        known.jobs.append(job)
        self._place(known)
        self._wake()
        try:
            await done
        except BaseException:
            if job in known.jobs:
                known.jobs.remove(job)
            for place, item in list(self._items.items()):
                if job in item.takers:
                    known.places -= 1
                    item.takers.remove(job)
                    if not item.takers:
                        del self._items[place]
                    elif item.client is known:
                        item.client = item.takers[0].client
            self._place(known)
            self._wake()
            raise
        return [job.answers[one] for one in asked]

    def warm_up(self, call: Callable[[], object]) -> None:
        """Makes a first call in every worker at once, and waits for it."""
        for one in [self._pool.submit(call) for _ in range(self._workers)]:
            one.result()

    def close(self) -> None:
        """Refuses further calls, without waiting for those that run."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _place(self, client: _Client[Group, Answer]) -> None:
        """Gives places to the client's next sentences, one of each request in turn."""
        while client.places < min(self._share, max(1, self._queue - self.waiting)) and client.jobs:
            job = client.jobs.popleft()
            for number, asked in job.rest:
                if asked not in self._items:
                    self._items[asked] = _Item(
                        *asked, self._work_of(*asked), client, (job.turn + number, next(self._arrivals))
                    )
                item = self._items[asked]
                item.takers.append(job)
                if client.served < item.client.served:
                    item.client = client
                client.places += 1
                client.jobs.append(job)
                break

    def _wake(self) -> None:
        """Gives work to idle workers: at once for a whole batch or all that is expected, else after a moment."""
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
        """A worker's part of the sentences that run, wait or are expected."""
        running = sum(_owed(batch) for _, batch in self._started.values())
        return -(-(running + max(_owed(self._items.values()), self._expected)) // self._workers)

    def _dispatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while len(self._started) < self._workers and (waiting := self._eligible()):
            batch = self._take(waiting)
            call = loop.run_in_executor(self._pool, self._translate, batch[0].group, [item.text for item in batch])
            self._started[call] = loop.time(), batch
            call.add_done_callback(self._finish)

    def _eligible(self) -> list[_Item[Group, Answer]]:
        """The sentences that may go to a worker. The last idle one isn't for the client that has all the others, if
        another client may soon ask: it would wait for the end of a call."""
        now = asyncio.get_running_loop().time()
        for name, client in list(self._clients.items()):
            if client.asked > now - LATELY:
                break
            if not client.places and not client.jobs:
                del self._clients[name]
        if len(self._started) == self._workers - 1 > 0:
            running = Counter(item.client for _, batch in self._started.values() for item in batch)
            [(busy, count)] = running.most_common(1)
            awaited = LATELY if now < busy.slow_until else RECENT
            other = next((one for one in reversed(self._clients.values()) if one is not busy), None)
            if count > running.total() / 2 and other and (other.places or other.asked > now - awaited):
                return [item for item in self._items.values() if item.client is not busy]
        return [*self._items.values()]

    def _take(self, waiting: Sequence[_Item[Group, Answer]]) -> list[_Item[Group, Answer]]:
        """The next batch: the sentence whose turn it is, and those of its group of similar length."""
        head = min(waiting, key=lambda one: (one.client.served, one.turn))
        self._turn, self._served = max(self._turn, head.turn[0]), max(self._served, head.client.served)
        idle = self._workers - len(self._started)
        most = min(self._batch_size, max(FEWEST_TO_SHARE, min(self._fair_part(), -(-self.waiting // idle))))
        batch, largest = [head], head.work
        works = Counter({id(head.client): head.work})  # of each client
        group = [item for item in waiting if item.group == head.group]
        for item in sorted(group, key=lambda one: (abs(len(one.text) - len(head.text)), one.turn)):
            if head.alone or len(batch) >= most or largest * (len(batch) + 1) > WORK_PER_BATCH:
                break
            own, larger = works[id(item.client)], max(largest, item.work)
            if item is head or item.alone or larger * (len(batch) + 1) > WORK_PER_BATCH:
                continue
            if not own or own + item.work <= item.client.pace * CALL_SECONDS:
                batch.append(item)
                works[id(item.client)] += item.work
                largest = larger
        for item in batch:
            del self._items[item.group, item.text]
            item.client.served += item.work
            for job in item.takers:
                job.client.places -= 1
        waiting_clients = len({id(item.client) for item in (*batch, *self._items.values())})
        self._served += sum(works.values()) / waiting_clients  # as if all that wait were served alike
        for client in {id(job.client): job.client for item in batch for job in item.takers}.values():
            self._place(client)
        return batch

    def _finish(self, call: asyncio.Future[Sequence[Answer]]) -> None:
        start, batch = self._started.pop(call)
        seconds = max(asyncio.get_running_loop().time() - start, 1e-3)
        head, total = batch[0].client, sum(item.work for item in batch)
        if sum(item.work for item in batch if item.client is head) > total / 2:
            head.note_call(total, seconds, start + seconds)
        self._expected = _owed([*self._items.values(), *batch])
        error = QueueFullError() if call.cancelled() else call.exception()
        if error is None:
            for item, answer in zip(batch, call.result(), strict=True):
                for job in item.takers:
                    job.answers[item.group, item.text] = answer
                    job.on_answer()
                    if len(job.answers) == job.size and not job.done.done():
                        job.done.set_result(None)
        elif len(batch) > 1 and not call.cancelled():
            self._on_failure(error)
            for one in batch:  # each goes again in a call of its own
                if takers := [job for job in one.takers if not job.done.done()]:
                    fresh = _Item(one.group, one.text, one.work, takers[0].client, one.turn)
                    again = self._items.setdefault((one.group, one.text), fresh)
                    again.takers, again.alone = again.takers + takers, True
                    for job in takers:
                        job.client.places += 1
        else:
            for job in (job for item in batch for job in item.takers):
                if not job.done.done():
                    job.done.set_exception(error)
        self._wake()


def _owed(items: Iterable[_Item[Group, Answer]]) -> int:
    """Number of awaited answers: a text of two requests counts twice."""
    return sum(len(item.takers) for item in items)
