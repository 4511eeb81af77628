"""Stopping a run by a signal: after the step that it is in, and saved."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class Interrupted(Exception):
    """Training was asked to stop by a signal, and has saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


class StopRequests:
    """Signals that ask a run to stop; none comes in until they are listened to."""

    def __init__(self, *, alone: bool = True) -> None:
        """alone: not one of several ranks, which stop only together."""
        self._alone = alone
        self._received: int | None = None
        self._at_once = False

    def __call__(self) -> int | None:
        """The signal that came, if one did."""
        return self._received

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Meanwhile SIGINT, SIGTERM and, where nobody ignores it, SIGHUP are requests; a second one acts as if nobody
        listened. What a handler interrupts may be in the midst of anything, so it prints nothing."""
        previous = {}

        def remember(number: int, frame: Any) -> None:
            self._received = number
            signal.signal(number, previous[number])
            if self._at_once:
                raise Interrupted(number)

        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` has it
                previous[number] = signal.signal(number, remember)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Meanwhile a request is not remembered alone, but raises Interrupted there and then: for what may end
        anywhere, because it changes nothing. One of several ranks only remembers it."""
        self._at_once = self._alone
        try:
            if self._at_once and (number := self()) is not None:
                raise Interrupted(number)
            yield
        finally:
            self._at_once = False
