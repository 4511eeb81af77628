"""Exercise 5: greedy search. The model says how likely each token is to come next; always take the likeliest."""

from collections.abc import Callable

from torch import Tensor


def greedy(next_scores: Callable[[list[int]], Tensor], start: int, end: int, longest: int) -> list[int]:
    """The translation's ids, without `start` and `end`.

    `next_scores(ids)` gives a score for each token of the vocabulary as the next one, shape (vocabulary,); a higher
    score is likelier. `ids` are all ids so far, beginning with `start`. The search stops at `end`, or when it has
    written `longest` ids, not counting `start`.
    """
    raise NotImplementedError
