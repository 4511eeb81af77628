"""Translating a file of any length into another, chunk by chunk, so that a killed job can go on.

Until all is done `out.en` is `out.en.partial`, and the journal `out.en.partial.json` says how much of it counts. The
output of a chunk, whole lines, reaches the disk before the journal that counts it. A job that goes on cuts off what
came after, reads its input from the start and skips the chunks that are done, so that all others are those of an
undisturbed job.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from headway.errors import UserError
from headway.storage.atomic import TEMPORARY_SUFFIX, sync, write_json
from headway.storage.locks import try_lock
from headway.storage.untrusted import read_json
from headway.text.compressed import compress
from headway.text.lines import LINES_AT_ONCE, Line, chunks
from headway.translator.lines import Written

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Done:
    """How far a job has come: what its journal holds."""

    chunks: int = 0
    lines: int = 0
    output_bytes: int = 0
    """Of the partial file; it ends with a whole line, and compressed with a whole member."""
    input_sha256: str = ""
    """Of the lines that were read, each with its line end."""
    failed: int = 0
    """Lines that were left blank."""
    complete: bool = False
    """Whether nothing but the rename is missing."""


class Job:
    """One file that is written. Only one process at a time works on it."""

    def __init__(self, output: Path, identity: dict[str, Any]) -> None:
        """`identity` is what must be the same for a job to go on: names to what JSON can hold."""
        self.output, self._identity = output, identity
        self._partial = output.with_name(output.name + TEMPORARY_SUFFIX)
        self._journal = output.with_name(output.name + TEMPORARY_SUFFIX + ".json")
        self.done = Done()

    def run(
        self,
        lines: Iterable[Line],
        translate: Callable[[list[Line]], Written],
        *,
        resume: bool,
        notice: Callable[[str], None],
        at_most: int = LINES_AT_ONCE,
    ) -> int:
        """Translates the lines and returns how many were left blank. With `resume` it goes on where a job was killed,
        and begins where there was none. The file appears when all is written; what ends the job before leaves the
        partial file to go on with. Raises UserError where that isn't of the same job."""
        compress(self.output, b"")  # complains where a package is missing
        if resume:
            self.done = self._read_journal()
        if self.done.complete and not self._partial.exists() and self.output.exists():  # killed just after the rename
            self._journal.unlink()
            return self.done.failed
        with open(self._partial, "ab") as file:
            if not try_lock(file.fileno()) or not self._is_partial(file):
                raise UserError(f"{self.output}: another process writes it; wait for its end, or stop it")
            self._cut(file)
            try:
                if self.done.chunks:
                    notice(f"notice: {self.output}: goes on after line {self.done.lines:,}")
                if not self.done.complete:
                    self._write_chunks(file, lines, translate, notice, at_most)
            except BaseException:
                self._leave(notice)
                raise
        self._partial.replace(self.output)
        sync(self.output.parent)
        self._journal.unlink()
        return self.done.failed

    def _write_chunks(
        self,
        file: IO[bytes],
        lines: Iterable[Line],
        translate: Callable[[list[Line]], Written],
        notice: Callable[[str], None],
        at_most: int,
    ) -> None:
        before = self.done
        read, count = hashlib.sha256(), 0
        for chunk in chunks(lines, lambda line: len(line.text), at_most):
            count += 1
            read.update("".join(f"{line.text}{line.fault}\n" for line in chunk).encode())
            if count > before.chunks:
                written = translate(chunk)
                for one in written.notices:
                    notice(one)
                self._add(file, written, chunk, read.hexdigest())
            elif count == before.chunks and read.hexdigest() != before.input_sha256:
                raise self._other_input()
        if count < before.chunks:
            raise self._other_input()
        self._set(Done(**{**asdict(self.done), "complete": True}))

    def _add(self, file: IO[bytes], written: Written, chunk: list[Line], input_sha256: str) -> None:
        data = compress(self.output, written.text.encode())
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        self._set(
            Done(
                chunks=self.done.chunks + 1,
                lines=self.done.lines + len(chunk),
                output_bytes=self.done.output_bytes + len(data),
                input_sha256=input_sha256,
                failed=self.done.failed + written.failed,
            )
        )

    def _cut(self, file: IO[bytes]) -> None:
        """Makes the partial file what the journal counts."""
        if self.done == Done():  # a journal must not outlive the file that it counts
            self._journal.unlink(missing_ok=True)
            sync(self._journal.parent)
        size = file.tell()
        if size < self.done.output_bytes:
            raise UserError(
                f"{self._partial}: has {size:,} bytes, but {self._journal.name} counts {self.done.output_bytes:,}; "
                "start again without --resume"
            )
        file.truncate(self.done.output_bytes)

    def _is_partial(self, file: IO[bytes]) -> bool:
        """False where the process that had the lock until now has given the file its name."""
        return self._partial.exists() and os.path.samestat(os.fstat(file.fileno()), self._partial.stat())

    def _leave(self, notice: Callable[[str], None]) -> None:
        """Keeps what is done, if there is any."""
        if self._journal.exists():
            notice(f"notice: {self.output}: {self.done.lines:,} lines are done; the same command with --resume goes on")
        else:
            self._partial.unlink(missing_ok=True)

    def _set(self, done: Done) -> None:
        document = {"format_version": FORMAT_VERSION, "job": self._identity, "done": asdict(done)}
        write_json(self._journal, document)
        self.done = done

    def _read_journal(self) -> Done:
        """Raises UserError where it is of another job."""
        if not self._journal.exists():
            return Done()
        document = read_json(self._journal)
        try:
            before, done = document["job"], Done(**document["done"])
        except (KeyError, TypeError):
            raise UserError(f"{self._journal}: is no journal of this version; start again without --resume") from None
        names = sorted({**before, **self._identity})
        if done.complete:  # the output may have taken the input's place
            names = [name for name in names if name != "input"]
        changed = [name for name in names if before.get(name) != self._identity.get(name)]
        if changed or document.get("format_version") != FORMAT_VERSION:
            raise UserError(
                f"{self._journal}: was begun with another {' and '.join(changed) or 'version of headway'}; "
                "give the same as before, or start again without --resume"
            )
        return done

    def _other_input(self) -> UserError:
        return UserError(
            f"{self._journal}: the first {self.done.lines:,} lines of the input are not those that were translated; "
            "give the same input, or start again without --resume"
        )
