"""Encodes chunks of text in several processes: the same result, in the same order, as by one.

The processes load no torch. This process alone has seen all earlier pairs, so it says which hashes are new.
"""

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.data.corpus import Chunk
from headway.data.encoding import ChunkEncoder, EncodedChunk, EncodingSettings, FirstOf
from headway.errors import UserError

FEW = 2
"""Chunks that aren't worth starting processes for."""
IN_HAND = 2
"""Chunks that each process holds: the one that it works on, and the next."""
AHEAD = 4
"""Chunks per process that may be started before the next one in order is done."""
LOOK_AROUND_EVERY = 0.2
"""Seconds between calls of `look_around`."""


def encode_chunks(
    chunks: Iterator[Chunk],
    settings: EncodingSettings,
    processes: int,
    first_of: FirstOf,
    look_around: Callable[[], None] = lambda: None,
) -> Generator[EncodedChunk]:
    """The chunks as ids, in their order. This process encodes them itself if `processes` is 1 or there are few chunks.
    look_around: called several times a second, and may raise. Raises UserError."""
    few = list(islice(chunks, FEW + 1)) if processes > 1 else []
    if len(few) <= FEW:
        encoder = ChunkEncoder(settings)
        for chunk in chain(few, chunks):
            look_around()
            yield encoder.encode(chunk, first_of)
        return
    workers = _Workers(settings, processes)
    try:
        yield from workers.encode(chain(few, chunks), first_of, look_around)
    finally:
        workers.end()


class _Workers:
    """Processes that encode. Each works on one chunk and already holds the next, so it never waits for the disk."""

    def __init__(self, settings: EncodingSettings, count: int) -> None:
        """Starts all processes. They get the settings later: a start waits until the arguments are read."""
        self._settings = settings
        context = get_context("spawn")
        self._chunks: dict[Any, Any] = {}
        """The connection for chunks of each worker, by its connection for answers."""
        self._processes: dict[Any, Any] = {}
        for _ in range(count):
            (chunks_end, chunks), (answers, answers_end) = context.Pipe(duplex=False), context.Pipe()
            process = context.Process(target=_work, args=(chunks_end, answers_end), daemon=True)
            process.start()
            chunks_end.close()
            answers_end.close()  # the pipe then ends when the process does
            self._chunks[answers], self._processes[answers] = chunks, process

    def encode(
        self, chunks: Iterator[Chunk], first_of: FirstOf, look_around: Callable[[], None]
    ) -> Iterator[EncodedChunk]:
        for worker, connection in self._chunks.items():
            with self._talking_to(worker):
                connection.send(self._settings)
        in_hand = {worker: deque[int]() for worker in self._processes}  # the numbers of the chunks that each holds
        asking: dict[int, tuple[Any, NDArray[np.uint64]]] = {}
        results: dict[int, EncodedChunk | UserError] = {}
        given = answered = turn = 0
        upcoming = next(chunks, None)
        while upcoming is not None or turn < given:
            look_around()
            while upcoming is not None and given < turn + AHEAD * len(in_hand):
                worker = min(in_hand, key=lambda one: len(in_hand[one]))
                if len(in_hand[worker]) == IN_HAND:
                    break
                with self._talking_to(worker):
                    self._chunks[worker].send(upcoming)
                in_hand[worker].append(given)
                given += 1
                upcoming = next(chunks, None)
            ready: list[Any] = wait([one for one, held in in_hand.items() if held], timeout=LOOK_AROUND_EVERY)
            for worker in ready:
                with self._talking_to(worker):
                    message = worker.recv()
                if isinstance(message, np.ndarray):
                    asking[in_hand[worker][0]] = worker, message
                else:
                    results[in_hand[worker].popleft()] = message
            while answered in asking:
                worker, hashes = asking.pop(answered)
                with self._talking_to(worker):
                    worker.send(first_of(hashes))
                answered += 1
            while turn in results:
                result = results.pop(turn)
                if isinstance(result, UserError):
                    raise result
                turn += 1
                yield result

    def end(self) -> None:
        for connection, process in self._processes.items():
            connection.close()
            self._chunks[connection].close()
            process.kill()
        for process in self._processes.values():
            process.join()

    @contextmanager
    def _talking_to(self, worker: Any) -> Iterator[None]:
        """Raises UserError if the process has ended."""
        try:
            yield
        except (EOFError, OSError):
            process = self._processes[worker]
            process.join(1)
            raise UserError(
                f"a process that prepares text was ended (exit code {process.exitcode}), perhaps because memory ran "
                "out; try again with fewer processes"
            ) from None


def _work(chunks: Connection, answers: Connection) -> None:
    """The main function of a worker: receives the settings, then encodes chunks until its connections close."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    received: Queue[Chunk | None] = Queue(1)

    def receive() -> None:
        with suppress(EOFError, OSError):
            while True:
                received.put(chunks.recv())
        received.put(None)

    def first_of(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        answers.send(hashes)
        return answers.recv()

    with suppress(EOFError, OSError):
        encoder = ChunkEncoder(chunks.recv())
        Thread(target=receive, daemon=True).start()
        while (chunk := received.get()) is not None:
            try:
                answers.send(encoder.encode(chunk, first_of))
            except UserError as error:
                answers.send(error)
