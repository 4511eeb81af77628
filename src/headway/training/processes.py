"""Signals and processes: a signal stops a run after its current step, saved; `headway train --processes N` starts and
watches the ranks of a training on one machine."""

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
    """Signals that ask a run to stop. A call returns the signal that came, if one did."""

    def __init__(self, *, alone: bool = True) -> None:
        """alone: not one of several ranks, which stop only together."""
        self._alone = alone
        self._received: int | None = None
        self._interruptible = False

    def __call__(self) -> int | None:
        return self._received

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes SIGINT, SIGTERM and, unless it is ignored, SIGHUP as requests. A second signal has its default effect.
        The handler prints nothing, because it may interrupt a print."""
        previous = {}

        def receive(number: int, frame: Any) -> None:
            self._received = number
            signal.signal(number, previous[number])
            if self._interruptible:
                raise Interrupted(number)

        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` sets it
                previous[number] = signal.signal(number, receive)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Lets a request raise Interrupted at once, for work that may end anywhere. Does nothing with several ranks."""
        self._interruptible = self._alone
        try:
            if self._interruptible and self._received is not None:
                raise Interrupted(self._received)
            yield
        finally:
            self._interruptible = False


def launch(arguments: Sequence[str], count: int) -> int:
    """Runs `headway` with these arguments as `count` ranks and forwards signals. Returns the exit code of the first
    rank that failed, or 0. Shows the first rank's standard error, and another rank's only if the training fails."""
    pipe = os.pipe()
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), PARENT: str(pipe[0])}
    shared |= {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    ranks: list[tuple[subprocess.Popen[bytes], IO[bytes] | None]] = []

    def forward(number: int, _: Any) -> None:
        for process, _ in ranks:
            process.send_signal(number)

    handlers = {number: signal.signal(number, forward) for number in SIGNALS}
    try:
        for rank in range(count):
            errors = tempfile.TemporaryFile() if rank else None  # noqa: SIM115 closed with this process
            process = subprocess.Popen(
                [sys.executable, "-m", "headway", *arguments],
                env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stderr=errors,
                pass_fds=[pipe[0]],
                start_new_session=True,  # a signal of the terminal reaches the ranks once, forwarded by this process
            )
            ranks.append((process, errors))
        return _watch(ranks)
    finally:
        for process, _ in ranks:
            process.kill()
            process.wait()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for end in pipe:
            os.close(end)


def end_with_parent() -> None:
    """Sends this process SIGTERM when the process that launched it dies. Does nothing if `launch` didn't start it."""
    if (end := os.environ.get(PARENT)) is not None:

        def wait() -> None:
            os.read(int(end), 1)  # nothing is ever written
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait, daemon=True).start()


def _watch(ranks: Sequence[tuple[subprocess.Popen[bytes], IO[bytes] | None]]) -> int:
    """Waits for all ranks. After `GRACE` seconds from a failure it kills the others."""
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
    lead = ranks[0][0].returncode
    if lead not in [128 + number for number in SIGNALS]:
        for process, errors in ranks[1:]:
            if errors is not None and (process is failed or lead < 0):
                errors.seek(0)
                sys.stderr.write(errors.read().decode("utf-8", "replace"))
                break
    if failed is None:
        return 0
    return failed.returncode if failed.returncode > 0 else 128 - failed.returncode


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
