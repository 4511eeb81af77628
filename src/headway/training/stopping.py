"""Stopping a run by a signal: after the step that it is in, and saved."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(Exception):
    """Training was asked to stop by a signal, and has saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


@contextmanager
def stop_requests(notice: Callable[[str], None]) -> Iterator[Callable[[], int | None]]:
    """Turns SIGINT and SIGTERM into a request that the loop asks for after each step; a second one acts at once."""
    received: list[int] = []
    previous = {}

    def remember(number: int, frame: Any) -> None:
        received.append(number)
        notice("stopping after this step; again to stop at once, unsaved")
        signal.signal(number, previous[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        previous[number] = signal.signal(number, remember)
    try:
        yield lambda: received[0] if received else None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
