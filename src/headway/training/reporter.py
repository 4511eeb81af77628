"""What a person sees of a run, on standard error: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PLAIN_LINE_EVERY = 30.0
"""Seconds between lines where standard error is not a terminal."""


class Reporter:
    """Shows loss, speed and remaining time of a training or preparation."""

    def __init__(self, what: str = "training", *, quiet: bool = False) -> None:
        """what: it says until there is more to say."""
        self._what = what
        self._console = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, quiet=quiet)
        self._bar: Progress | None = None
        self._last_line = time.monotonic()

    def __enter__(self) -> Reporter:
        if self._console.is_terminal and not self._console.quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TaskProgressColumn(),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=self._console,
                transient=True,
            )
            self._bar.add_task(self._what, total=1.0)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self._console.print(text, markup=False)

    def step(
        self, step: int, loss: float, tokens_per_second: float, done: float | None, minutes_left: float | None
    ) -> None:
        """`done` is the finished share of the run, 0 to 1, or None if it isn't known."""
        text = f"step {step:,}  loss {loss:.3f}  {tokens_per_second:,.0f} tokens/s"
        self._progress(text, done, minutes_left)

    def preparing(self, pairs: int, pairs_per_second: float, done: float, minutes_left: float) -> None:
        """`done` is the finished share of the text, 0 to 1."""
        self._progress(f"{pairs:,} pairs  {pairs_per_second:,.0f} pairs/s", done, minutes_left)

    def _progress(self, text: str, done: float | None, minutes_left: float | None) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text, completed=done or 0.0)
        elif time.monotonic() - self._last_line > PLAIN_LINE_EVERY:
            self._last_line = time.monotonic()
            self.line(text + (f"  {minutes_left:.1f} min left" if minutes_left is not None else ""))
