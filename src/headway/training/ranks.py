"""The processes that train one model together, each of them a rank. A process alone has all the work, and agrees with
itself.

The loop asks here wherever ranks must act as one. Whatever a run writes goes through `keeping`, the log and the
reporter, which are called from the loop alone.
"""

from __future__ import annotations

from headway.text.batches import MicroBatch


class Alone:
    """One process."""

    def mine(self, micro_batches: list[MicroBatch]) -> list[MicroBatch]:
        """Those of a step that are this rank's work: as many on every rank."""
        return micro_batches

    def total(self, value: float) -> float:
        """The sum of the value over all ranks."""
        return value

    def agreed(self, request: int | None) -> int | None:
        """The signal that all ranks stop for, if one of them was asked to stop."""
        return request
