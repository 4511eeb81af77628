"""What a run tells of itself as it goes: log.jsonl, and TensorBoard's files where they are asked for."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headway.errors import UserError
from headway.storage.atomic import write_file

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class RunLog:
    """The log of a run, open for more; what was logged after step `step` is taken back, because it comes again.
    `tensorboard` needs what `check_tensorboard` looks for."""

    def __init__(self, run: Path, step: int, *, tensorboard: bool) -> None:
        _cut(run / "log.jsonl", step)
        self._board = _open_board(run / "tensorboard", step) if tensorboard else None
        self._file = open(run / "log.jsonl", "a", encoding="utf-8")  # noqa: SIM115

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()

    def write(self, entry: dict[str, Any]) -> None:
        """One line, and a point of each of its curves."""
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()
        if self._board is not None:
            for name in entry.keys() - {"step", "epoch"}:
                self._board.add_scalar(name, entry[name], entry["step"])


def check_tensorboard() -> None:
    """Raises UserError where it isn't installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: F401
    except ImportError:
        raise UserError("training.tensorboard needs a package more: pip install 'headway[track]'") from None


def _open_board(folder: Path, step: int) -> SummaryWriter:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)


def _cut(log: Path, step: int) -> None:
    if log.exists():
        kept = []
        for line in log.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n") or json.loads(line)["step"] > step:
                break
            kept.append(line)
        write_file(log, "".join(kept).encode("utf-8"))
