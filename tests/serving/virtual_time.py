"""An event loop whose clock is moved on by whoever waits, so that what takes time is told exactly and at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualTime(asyncio.SelectorEventLoop):
    """Calls in threads are made in this one; each takes `seconds` of the loop's time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now, self.seconds = 0.0, seconds
        super().__init__(_Clock(self))

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Result], *args: Any) -> asyncio.Future[Result]:
        future = self.create_future()

        def end() -> None:
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(self.seconds, end)
        return future


class _Clock(selectors.DefaultSelector):
    """Where the loop would sleep until something is due, it is due now."""

    def __init__(self, loop: VirtualTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits, for nothing that is due"
            self._loop.now += timeout
        return found


def run_in_virtual_time(work: Coroutine[Any, Any, Result], seconds: float = 0.0) -> Result:
    """As asyncio.run, in no time."""
    with asyncio.Runner(loop_factory=lambda: VirtualTime(seconds)) as runner:
        return runner.run(work)
