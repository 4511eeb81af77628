"""Translates a file of any length into another, chunk by chunk, so that a killed job can continue.

Until the job is done, `out.en` is `out.en.partial`, and the journal `out.en.partial.json` says how much of it counts.
The output of a chunk, in whole lines, reaches the disk before the journal that counts it. A job that continues cuts off
the rest, reads its input from the start and skips the chunks that are done. So all other chunks are those of an
undisturbed job.
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from headway.data.compressed import compress
from headway.data.lines import Line, chunks
from headway.errors import UserError
from headway.storage.atomic import TEMPORARY_SUFFIX, sync, try_lock, write_json
from headway.storage.changes import first_change
from headway.storage.untrusted import read_json
from headway.translator.lines import JobNotice, Written

FORMAT_VERSION = 1

_OfChunks = Callable[[Iterable[list[Line]]], Iterable[tuple[list[Line], Written]]]
"""Gives chunks with what is written of them, in order."""


@dataclass(frozen=True)
class Done:
    """Progress of a job, as its journal records it."""

    chunks: int = 0
    lines: int = 0
    output_bytes: int = 0
    """Bytes of the partial file that count. They end with a whole line, in a compressed file with a whole member."""
    input_sha256: str = ""
    """Hash of the lines that were read, each with its line end."""
    failed: int = 0
    """Lines that were left blank."""
    complete: bool = False
    """Whether only the rename is left to do."""


class Job:
    """The writing of one output file. Only one process at a time works on it."""

    def __init__(
        self,
        output: Path,
        identity: dict[str, Any],
        how_to_continue: str = "the same command with --resume",
        how_to_restart: str = "start again without --resume",
        state_of: Callable[[Path], Any] = lambda file: [file.stat().st_size, file.stat().st_mtime_ns],
        *,
        in_place: bool = False,
    ) -> None:
        """identity: what must stay the same for a job to continue. Maps names to values that JSON can hold.
        how_to_continue, how_to_restart: what the user does to continue the job or to begin it again, as messages tell
        it. state_of: by which a change of the finished output is noticed. in_place: the output replaces the input, so
        that of a finished job nothing is left to compare."""
        self.output, self._identity, self._state_of, self._in_place = output, identity, state_of, in_place
        self._how_to_continue, self._how_to_restart = how_to_continue, how_to_restart
        self._partial = output.with_name(output.name + TEMPORARY_SUFFIX)
        self._journal = output.with_name(output.name + TEMPORARY_SUFFIX + ".json")
        self._record = output.with_name(output.name + ".done.json")
        self._done = Done()

    def run(
        self,
        lines: Iterable[Line],
        translate: Callable[[list[Line]], Written],
        *,
        resume: bool,
        notice: Callable[[JobNotice], None],
        at_once: int = 1,
        stop: Callable[[], None] = lambda: None,
    ) -> int:
        """Translates the lines, `at_once` chunks at a time, and returns how many were left blank. `stop` makes
        `translate` raise an error in other threads, when the job ends early. With `resume` it continues where a job was
        killed, or begins if there is none. The output appears when all of it is written. If the job ends early, the
        partial file stays to be continued. Raises UserError if that, or the finished output, is of another job or
        input."""
        compress(self.output, b"")  # raises if a package is missing
        if resume:
            if finished := self._finished():
                refuse_other_job(self._record, finished["job"], self._identity, self._how_to_restart)
                self._compare(finished.get("input_sha256", ""), lines)
                self._journal.unlink(missing_ok=True)
                notice(JobNotice(f"notice: {self.output}: is complete already"))
                return finished["failed"]
            self._done = self._read_journal()
            if self._done.complete:
                self._compare(self._done.input_sha256, lines)
        else:
            self._record.unlink(missing_ok=True)
        was_renamed = self._done.complete and not self._partial.exists() and self.output.exists()
        if not was_renamed:
            self._write(lines, partial(_in_order, translate, at_once=at_once, stop=stop), notice)
        self._end(resume=resume)
        return self._done.failed

    @property
    def is_begun(self) -> bool:
        """Whether this very job was completed with `resume` before, or there is one that was stopped."""
        return self._journal.exists() or self._finished().get("job") == self._identity

    def _write(self, lines: Iterable[Line], translate: _OfChunks, notice: Callable[[JobNotice], None]) -> None:
        """Writes what is left to write, and gives the output its name."""
        with open(self._partial, "ab") as file:
            if not try_lock(file.fileno()) or not self._is_partial(file):
                raise UserError(f"{self.output}: another process is writing it; wait until it ends, or stop it")
            self._cut(file)
            if self._done.chunks:
                notice(JobNotice(f"notice: {self.output}: continues after line {self._done.lines:,}"))
            if not self._done.complete:
                self._write_chunks(file, lines, translate, notice)
        self._partial.replace(self.output)
        sync(self.output.parent)

    def _write_chunks(
        self, file: IO[bytes], lines: Iterable[Line], translate: _OfChunks, notice: Callable[[JobNotice], None]
    ) -> None:
        chunked, read = chunks(lines, lambda line: len(line.text)), hashlib.sha256()
        for chunk in islice(chunked, self._done.chunks):
            read.update(_hashed(chunk))
        if self._done.chunks and read.hexdigest() != self._done.input_sha256:
            raise UserError(
                f"{self._journal}: the first {self._done.lines:,} lines of the input are not those that were "
                f"translated; give the same input, or {self._how_to_restart}"
            )
        try:
            for chunk, written in translate(chunked):
                read.update(_hashed(chunk))
                for one in written.notices:
                    notice(one)
                data = compress(self.output, written.text.encode())
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                self._set(
                    chunks=self._done.chunks + 1,
                    lines=self._done.lines + len(chunk),
                    output_bytes=self._done.output_bytes + len(data),
                    input_sha256=read.hexdigest(),
                    failed=self._done.failed + written.failed,
                )
            self._set(input_sha256=read.hexdigest(), complete=True)
        except BaseException:
            self._leave(file, notice)
            raise

    def _end(self, *, resume: bool) -> None:
        """Leaves a record for a scheduler that starts the same command once more."""
        self._record.unlink(missing_ok=True)
        if resume:
            document = {
                "format_version": FORMAT_VERSION,
                "job": self._identity,
                "output": self._state_of(self.output),
                "failed": self._done.failed,
                "input_sha256": self._done.input_sha256,
            }
            write_json(self._record, document)
        self._journal.unlink()

    def _finished(self) -> dict[str, Any]:
        """The record of the job that wrote the current output; empty without one."""
        if not (self._record.exists() and self.output.exists()):
            return {}
        document = read_json(self._record)
        whole = isinstance(document.get("job"), dict) and "failed" in document
        return document if whole and document.get("output") == self._state_of(self.output) else {}

    def _compare(self, input_sha256: str, lines: Iterable[Line]) -> None:
        """Raises UserError if the lines aren't those of the finished job. An older record may have no hash."""
        if self._in_place or not input_sha256:
            return
        read = hashlib.sha256()
        for line in lines:
            read.update(_hashed([line]))
        if read.hexdigest() != input_sha256:
            raise UserError(
                f"{self.output}: is complete, but the input has changed since then; give the input that was "
                f"translated, or {self._how_to_restart}"
            )

    def _cut(self, file: IO[bytes]) -> None:
        """Cuts the partial file to what the journal counts."""
        if self._done == Done():  # a journal must not outlive the file that it describes
            self._journal.unlink(missing_ok=True)
            sync(self._journal.parent)
        size = file.tell()
        if size < self._done.output_bytes:
            raise UserError(
                f"{self._partial}: has {size:,} bytes, but {self._journal.name} counts {self._done.output_bytes:,}; "
                f"{self._how_to_restart}"
            )
        file.truncate(self._done.output_bytes)

    def _is_partial(self, file: IO[bytes]) -> bool:
        """Whether the locked file is still the partial file. If not, the previous owner of the lock has renamed it."""
        return self._partial.exists() and os.path.samestat(os.fstat(file.fileno()), self._partial.stat())

    def _leave(self, file: IO[bytes], notice: Callable[[JobNotice], None]) -> None:
        """Keeps what is done, if anything is."""
        if self._journal.exists():
            done = f"{self._done.lines:,} lines are done"
            notice(JobNotice(f"notice: {self.output}: {done}; {self._how_to_continue} continues"))
            return
        try:
            self._partial.unlink(missing_ok=True)
        except PermissionError:  # Windows removes no open file, so none that another job has opened since
            file.close()
            with suppress(PermissionError):
                self._partial.unlink(missing_ok=True)

    def _set(self, **changes: Any) -> None:
        """Records in the journal how far the job has come."""
        done = replace(self._done, **changes)
        write_json(self._journal, {"format_version": FORMAT_VERSION, "job": self._identity, "done": asdict(done)})
        self._done = done

    def _read_journal(self) -> Done:
        """Raises UserError if the journal is of another job."""
        if not self._journal.exists():
            return Done()
        document = read_json(self._journal)
        try:
            before, done = document["job"], Done(**document["done"])
        except (KeyError, TypeError):
            raise UserError(f"{self._journal}: isn't a journal of this version; {self._how_to_restart}") from None
        same_version = document.get("format_version") == FORMAT_VERSION
        refuse_other_job(self._journal, before, self._identity, self._how_to_restart, same_version=same_version)
        return done


def _in_order(
    translate: Callable[[list[Line]], Written],
    chunks: Iterable[list[Line]],
    *,
    at_once: int,
    stop: Callable[[], None],
) -> Iterator[tuple[list[Line], Written]]:
    """Each chunk with its translation. While one is computed, `at_once` - 1 of the next are prepared."""
    if at_once == 1:  # in this thread, where Ctrl-C ends it at once
        yield from ((chunk, translate(chunk)) for chunk in chunks)
        return
    waiting = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for chunk in chunks:
                waiting.append((chunk, pool.submit(translate, chunk)))
                if len(waiting) == at_once:
                    done, written = waiting.popleft()
                    yield done, written.result()
            for done, written in waiting:
                yield done, written.result()
        except BaseException:
            stop()
            raise


def _hashed(lines: Iterable[Line]) -> bytes:
    return "".join(f"{line.text}{line.fault}\n" for line in lines).encode()


def refuse_other_job(
    file: Path, before: dict[str, Any], now: dict[str, Any], remedy: str, *, same_version: bool = True
) -> None:
    """Raises UserError unless the job that the file records is the one to do now. before, now: their identities."""
    if not same_version:
        raise UserError(f"{file}: was begun by another version of headway; use the same as before, or {remedy}")
    if changed := first_change(before, now):
        raise UserError(f"{file}: was begun with other settings: {changed}; give the same as before, or {remedy}")
