"""The standard streams of the program. Losing a notice never loses work: one that can't be written to standard error is
dropped, and a closed stream is an error only where a result has to go there."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

import typer

from headway.errors import UserError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Unfailing(io.RawIOBase):
    """A stream's bytes; those that it doesn't take, because it is full or has no reader, are dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            self._stream.buffer.write(data)
            self._stream.buffer.flush()
        except OSError:
            pass
        return memoryview(data).nbytes


class ClosedOutput(io.TextIOBase):
    """Standard output that is closed. Raises UserError for a result that should go there."""

    def write(self, text: str, /) -> int:
        raise UserError("standard output is closed; redirect it to a file or to /dev/null")


def tell(text: str) -> None:
    """Prints a line on standard error, where everything goes that is no result."""
    typer.echo(text, err=True)


def prepare_streams() -> None:
    """Makes the standard streams ready for a command: in UTF-8, with standard error that never fails."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:  # a file would be opened in a closed stream's place
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")  # Hangul and shades, whatever the system's encoding
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
    elif isinstance(sys.stderr, io.TextIOWrapper):
        errors = "backslashreplace"  # names of files that aren't UTF-8
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(Unfailing(sys.stderr)), encoding="utf-8", errors=errors, line_buffering=True
        )
