"""Sequences in batches of similar length, so that little of a batch is padding."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Lengths = tuple[int, ...]
"""Of an item's sequences, such as source and target."""


def batches_by_length(
    items: Iterable[Item],
    lengths_of: Callable[[Item], Lengths],
    fits: Callable[[int, Lengths], bool],
    *,
    longest_first: bool = False,
) -> list[list[Item]]:
    """All items, sorted by their lengths, in batches of as many as fit. fits: whether so many items, padded to these
    lengths, may be in one batch; an item alone always may."""
    batches: list[list[Item]] = []
    padded: Lengths = ()
    for item in sorted(items, key=lengths_of, reverse=longest_first):
        lengths = lengths_of(item)
        together = tuple(map(max, padded, lengths))
        if batches and fits(len(batches[-1]) + 1, together):
            batches[-1].append(item)
            padded = together
        else:
            batches.append([item])
            padded = lengths
    return batches
