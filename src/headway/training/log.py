"""What a run tells of itself as it goes: log.jsonl, and TensorBoard's files where they are asked for."""

from __future__ import annotations

import errno
import json
import operator
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headway.errors import UserError
from headway.storage.atomic import write_file

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class RunLog:
    """The log of a run, open for more; what was logged after step `step`, or of validations after `validated_step`, is
    taken back, because it comes again. `tensorboard` needs what `check_tensorboard` looks for."""

    def __init__(
        self, run: Path, step: int, validated_step: int, notice: Callable[[str], None], *, tensorboard: bool
    ) -> None:
        _cut(run / "log.jsonl", step, validated_step, notice)
        self._board = _open_board(run / "tensorboard", step) if tensorboard else None
        self._file = open(run / "log.jsonl", "ab", buffering=0)  # noqa: SIM115

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()

    def write(self, entry: dict[str, Any]) -> None:
        """One line, and a point of each of its curves. Raises UserError where the disk is full."""
        line, fault = f"{json.dumps(entry)}\n".encode(), None
        try:
            if self._file.write(line) < len(line):
                fault = os.strerror(errno.ENOSPC)
        except OSError as error:
            fault = error.strerror
        if fault:
            raise UserError(f"{self._file.name}: can't be written ({fault}); the last checkpoint is intact")
        if self._board is not None:
            for name in entry.keys() - {"step", "epoch"}:
                self._board.add_scalar(name, entry[name], entry["step"])

    def settle(self) -> None:
        """What was written is on the disk then, not only with the system."""
        os.fsync(self._file.fileno())


class NoLog(RunLog):
    """That of a rank which doesn't lead."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass

    def write(self, entry: dict[str, Any]) -> None:
        pass

    def settle(self) -> None:
        pass


def check_tensorboard() -> None:
    """Raises UserError where it isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError:
        raise UserError("training.tensorboard needs an extra package: pip install 'headway[track]'") from None


def _open_board(folder: Path, step: int) -> SummaryWriter:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)


def read_log(log: Path, damaged: Callable[[int], None]) -> Iterator[tuple[int, tuple[bytes, dict[str, Any]]]]:
    """The number of each line, the line itself and its entry, whose step is a number. Those of lines that can't be read
    go to `damaged`; the unfinished last words of a killed process are no line."""
    for number, line in enumerate(log.read_bytes().split(b"\n")[:-1], 1):
        try:
            entry = json.loads(line)
            operator.index(entry["step"])
        except (ValueError, TypeError, KeyError):
            damaged(number)
            continue
        yield number, (line, entry)


def _cut(log: Path, step: int, validated_step: int, notice: Callable[[str], None]) -> None:
    """Leaves the entries of steps up to `step` and of validations up to `validated_step`, each once. A line that can't
    be read is named and left out, and costs no other."""
    if not log.exists():
        return
    kept: dict[tuple[bool, int], bytes] = {}
    for _, (line, entry) in read_log(
        log, lambda number: notice(f"warning: {log}, line {number}: is damaged, what it said is lost")
    ):
        place = "loss" in entry, entry["step"]
        if place[1] <= (step if place[0] else validated_step):
            kept.setdefault(place, line + b"\n")
    write_file(log, b"".join(kept.values()))
