"""The processes that train one model together, each of them a rank. A process alone does all the work and agrees with
itself.

The loop asks here wherever ranks must act as one. Whatever a run writes goes through `keeping`, the log and the
reporter, which the loop alone calls.
"""

from __future__ import annotations

from typing import TypeVar

from headway.text.batches import MicroBatch

Reason = TypeVar("Reason")


class Alone:
    """One process."""

    def mine(self, micro_batches: list[MicroBatch]) -> list[MicroBatch]:
        """Those of a step that are this rank's work: as many on every rank."""
        return micro_batches

    def total(self, value: float) -> float:
        """The sum of the value over all ranks."""
        return value

    def agreed(self, reason: Reason | None) -> Reason | None:
        """Why all ranks stop, if one of them has a reason to."""
        return reason
