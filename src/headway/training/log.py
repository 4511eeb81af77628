"""What a run tells of itself as it goes: log.jsonl, and TensorBoard's files where they are asked for."""

from __future__ import annotations

import errno
import json
import os
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

    def __init__(self, run: Path, step: int, validated_step: int, *, tensorboard: bool) -> None:
        _cut(run / "log.jsonl", step, validated_step)
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


def check_tensorboard() -> None:
    """Raises UserError where it isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError:
        raise UserError("training.tensorboard needs a package more: pip install 'headway[track]'") from None


def _open_board(folder: Path, step: int) -> SummaryWriter:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)


def _cut(log: Path, step: int, validated_step: int) -> None:
    if log.exists():
        kept = []
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
            try:
                entry = json.loads(line) if line.endswith("\n") else None
            except ValueError:
                entry = None
            if entry is None:
                break  # the last words of a process that was killed
            if entry["step"] <= (step if "loss" in entry else validated_step):
                kept.append(line)
        write_file(log, "".join(kept).encode("utf-8"))
