"""The log: JSON, one line per event, written by a thread, so that a reader that blocks stops nothing else."""

import json
import logging
import os
import queue
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

MOST_LINES = 10_000  # that wait to be written; further ones are dropped
LAST_LINES = 1.0  # seconds that the end waits for lines to be written


class JsonLines(logging.Formatter):
    """One JSON object per line. An exception's message is left out, because it may quote a text."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


class LogWriter(logging.Handler):
    """Writes to standard error."""

    def __init__(self, on_drop: Callable[[], None]) -> None:
        """on_drop: called for each line that can't be written."""
        super().__init__()
        self.setFormatter(JsonLines())
        self._on_drop = on_drop
        self._lines: queue.Queue[bytes | None] = queue.Queue(MOST_LINES)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self.format(record).encode(errors="backslashreplace") + b"\n")  # as JSON has it
        except queue.Full:
            self._on_drop()

    def stop(self) -> None:
        """Waits a moment until all is written."""
        with suppress(queue.Full):
            self._lines.put(None, timeout=LAST_LINES)
            self._thread.join(LAST_LINES)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                while line:
                    line = line[os.write(2, line) :]
            except OSError:  # the disk is full, or the reader has gone
                self._on_drop()


def places(error: BaseException) -> dict[str, object]:
    """The loggable parts of an exception: its type, and its places in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "places": [f"{one.filename}:{one.lineno} {one.name}" for one in frames]}
