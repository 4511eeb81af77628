"""Contenders of a benchmark, each a process of its own, so that none sees another's threads, memory or settings."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from headway.errors import UserError

SETTLED = 0.3
"""Seconds between two contenders: the threads of one wait busily for a while when its work is done."""
Worker = Callable[..., Any]
"""A function that does one round of work."""


def serve(make: Callable[..., Worker], arguments: tuple[Any, ...], pipe: Connection, device: str) -> None:
    """Does rounds of work as they are asked for, until None is. A round that fails ends the process."""
    try:
        worker = make(*arguments)
        gc.freeze()  # else each collection goes through all that is loaded, and leaves a cold cache to the round
        while (request := pipe.recv()) is not None:
            gc.collect()
            start = time.perf_counter()
            result = worker(*request)
            finish_work(device)
            pipe.send((time.perf_counter() - start, result))
        pipe.send(most_memory(device))
    except (UserError, RuntimeError, MemoryError, OSError) as error:
        pipe.send(UserError(next(iter(str(error).splitlines()), repr(error))))


def finish_work(device: str) -> None:
    """Waits until an accelerator has done all that it was given."""
    kind, torch = device.partition(":")[0], sys.modules.get("torch")
    if torch is not None and kind != "cpu":
        torch.mps.synchronize() if kind == "mps" else torch.cuda.synchronize(device)


def most_memory(device: str) -> float | None:
    """MiB: the most of its device's memory that the process had, on mps what it has, on CPU the most that was resident.
    None if unknown."""
    if device == "cpu":
        try:
            import resource
        except ImportError:  # Windows
            return None
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    import torch

    on_mps = device.startswith("mps")
    return (torch.mps.driver_allocated_memory() if on_mps else torch.cuda.max_memory_allocated(device)) / 2**20


class Contender:
    """A process that works when it is asked to."""

    _last: Contender | None = None

    def __init__(self, name: str, make: Callable[..., Worker], *arguments: Any, device: str = "cpu") -> None:
        """`make(*arguments)` gives the worker, in the process. device: the one that it works on."""
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=serve, args=(make, arguments, far_end, device), daemon=True)
        self._process.start()
        far_end.close()

    def work(self, *request: Any) -> tuple[float, Any]:
        """A round of work: its seconds and its result. Raises UserError if the process couldn't do it."""
        if Contender._last is not self:
            time.sleep(SETTLED)
            Contender._last = self
        return self._ask(request)

    def end(self) -> float | None:
        """The most memory that it had, in MiB. None if unknown."""
        memory = self._ask(None)
        self._process.join()
        return memory

    def _ask(self, request: Any) -> Any:
        try:
            self._pipe.send(request)
            answer = self._pipe.recv()
        except (EOFError, OSError):
            answer = UserError("its process died")
        if isinstance(answer, UserError):
            raise UserError(f"{self.name}: {answer}")
        return answer


def race(
    contenders: Sequence[Contender],
    requests: Callable[[Contender], tuple[Any, ...]],
    rounds: int,
    warm_up: int,
    tell: Callable[[str], None],
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The seconds of each contender's rounds, which alternate, after so many of which the time doesn't count; and what
    went wrong with those that failed. requests: what a contender is asked for in each round. tell: is
    called with a line before each round."""
    seconds: dict[str, list[float]] = {one.name: [] for one in contenders}
    failures: dict[str, str] = {}
    for round_ in range(-warm_up, rounds):
        left = [one for one in contenders if one.name not in failures]
        tell(f"round {round_ + warm_up + 1} of {rounds + warm_up}: {', '.join(one.name for one in left)}")
        for one in left:
            try:
                spent, _ = one.work(*requests(one))
            except UserError as error:
                failures[one.name] = str(error)
                continue
            if round_ >= 0:
                seconds[one.name].append(spent)
    return seconds, failures
