"""Sequences in batches of similar length, so that little of a batch is padding."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Lengths = tuple[int, ...]
"""The lengths of an item's sequences, such as source and target."""
TOKENS_PER_BATCH = 4096
"""Maximum number of padded source tokens in a batch of a search."""


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


def search_batches(numbers: Sequence[int], length_of: Callable[[int], int], most: int) -> list[list[int]]:
    """The numbers in batches of similar length, at most `most` in each, longest first. Lengths don't count <eos>."""
    return batches_by_length(
        numbers,
        lambda i: (length_of(i) + 1,),
        lambda count, longest: count <= most and count * longest[0] <= TOKENS_PER_BATCH,
        longest_first=True,
    )
