"""Solution of exercise 5."""

from collections.abc import Callable

from torch import Tensor


def greedy(next_scores: Callable[[list[int]], Tensor], start: int, end: int, longest: int) -> list[int]:
    ids = [start]
    while len(ids) <= longest:
        likeliest = int(next_scores(ids).argmax())
        if likeliest == end:
            break
        ids.append(likeliest)
    return ids[1:]
