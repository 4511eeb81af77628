"""Contenders of a benchmark, each a process of its own, so that none sees another's threads, memory or settings."""

from __future__ import annotations

import gc
import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

SETTLED = 0.3
"""Seconds between two contenders: the threads of one wait busily for a while when its work is done."""
Worker = Callable[..., Any]
"""Does one round of work."""


def _serve(make: Callable[..., Worker], arguments: tuple[Any, ...], pipe: Connection) -> None:
    worker = make(*arguments)
    gc.freeze()  # else each collection goes through all that is loaded, and leaves a cold cache to the round
    while (request := pipe.recv()) is not None:
        gc.collect()
        start = time.perf_counter()
        result = worker(*request)
        pipe.send((time.perf_counter() - start, result))
    pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


class Contender:
    """A process that works when it is asked to."""

    _last: Contender | None = None

    def __init__(self, name: str, make: Callable[..., Worker], *arguments: Any) -> None:
        """`make(*arguments)` gives the worker, in the process."""
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(make, arguments, theirs), daemon=True)
        self._process.start()

    def work(self, *request: Any) -> tuple[float, Any]:
        """A round of work: its seconds and its result."""
        if Contender._last is not self:
            time.sleep(SETTLED)
            Contender._last = self
        self._pipe.send(request)
        return self._pipe.recv()

    def end(self) -> float:
        """The most memory that it had, in MiB."""
        self._pipe.send(None)
        memory = self._pipe.recv()
        self._process.join()
        return memory
