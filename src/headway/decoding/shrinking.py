"""How a batch shrinks: which sentences stay in it while others of it are done."""

from __future__ import annotations

from collections.abc import Sequence

LOT = 4
"""The number of sentences in a batch is a multiple of this as long as it is more."""


def those_who_stay(going_on: Sequence[int], count: int) -> list[int]:
    """Which of `count` sentences stay in the batch: all, or those that go on, which then come first, and a few that are
    done. They leave some at a time and by lots, because each new number of rows costs: the state is copied, and oneDNN
    compiles its products anew, and keeps them."""
    spare = -len(going_on) % LOT
    if not going_on or count - len(going_on) <= max(count // 8, spare):
        return list(range(count))
    done = sorted(set(range(count)).difference(going_on))
    return [*going_on, *done[:spare]]
