"""Signals and processes: a run is stopped by a signal, after the step that it is in, and saved; `headway train
--processes N` starts and watches the ranks of a training on one machine."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
GRACE = 20.0
"""Seconds that the other ranks have to notice a failed one and to save."""
PARENT = "HEADWAY_PARENT"
"""Environment variable of a rank: the descriptor of a pipe that closes when its parent dies."""


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


def launch(arguments: Sequence[str], count: int) -> int:
    """Runs `headway` with these arguments as `count` ranks, forwards signals, and returns the exit code: that of the
    first rank that failed, or 0. The first rank's standard error is shown at once, another rank's only if the training
    fails."""
    ends = os.pipe()
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    ranks: list[tuple[subprocess.Popen[bytes], IO[bytes] | None]] = []

    def forward(number: int, _: Any) -> None:
        for process, _ in ranks:
            process.send_signal(number)

    handlers = {number: signal.signal(number, forward) for number in SIGNALS}
    try:
        for rank in range(count):
            of_rank = {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count), PARENT: str(ends[0])}
            complaints = tempfile.TemporaryFile() if rank else None  # noqa: SIM115 closed with this process
            process = subprocess.Popen(
                [sys.executable, "-m", "headway", *arguments],
                env={**os.environ, **place, **of_rank},
                stderr=complaints,
                pass_fds=[ends[0]],
                start_new_session=True,  # a signal of the terminal reaches the ranks once, forwarded by this process
            )
            ranks.append((process, complaints))
        return _watch(ranks)
    finally:
        for process, _ in ranks:
            process.kill()
            process.wait()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for end in ends:
            os.close(end)


def end_with_parent() -> None:
    """Sends this process SIGTERM when the process that launched it dies. Does nothing if `launch` didn't start it."""
    end = os.environ.get(PARENT)
    if end is None:
        return

    def wait() -> None:
        os.read(int(end), 1)  # nothing is ever written
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _watch(ranks: Sequence[tuple[subprocess.Popen[bytes], IO[bytes] | None]]) -> int:
    failed, deadline = None, 0.0
    while running := [process for process, _ in ranks if process.poll() is None]:
        if failed is None:
            failed = next((process for process, _ in ranks if process.returncode), None)
            deadline = time.monotonic() + GRACE
        elif time.monotonic() > deadline:
            for process in running:
                process.kill()
        time.sleep(0.05)
    failed = failed or next((process for process, _ in ranks if process.returncode), None)
    lead = ranks[0][0]
    if lead.returncode not in [128 + number for number in SIGNALS]:
        for process, complaints in ranks[1:]:
            if complaints is not None and (process is failed or lead.returncode < 0):
                complaints.seek(0)
                sys.stderr.write(complaints.read().decode("utf-8", "replace"))
                break
    if failed is None:
        return 0
    return failed.returncode if failed.returncode > 0 else 128 - failed.returncode


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
