"""Exercise 5: models of which the path is known, the right search, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from checking.judging import Exercise, Mistake, said

START, END, SIZE = 1, 2, 8


class Endless(Exception):
    """The model was asked far more often than a translation is long."""


class Model:
    """Continues what begins with <start> along the path, and never ends anything else."""

    def __init__(self, *path: int) -> None:
        self.path = list(path)
        self.times = 0

    def __call__(self, ids: list[int]) -> Tensor:
        self.times += 1
        if self.times > 500:
            raise Endless
        written = [int(id_) for id_ in ids]
        count = len(written) - 1
        known = written[:1] == [START] and count < len(self.path) and written[1:] == self.path[:count]
        likeliest = self.path[count] if known else 3 + sum(written) % 5
        return torch.tensor([-0.1 if id_ == likeliest else -5.0 - id_ for id_ in range(SIZE)])


def search(
    next_scores: Callable[[list[int]], Tensor],
    start: int,
    end: int,
    longest: int,
    *,
    shown: Callable[[list[int]], list[int]] = lambda ids: ids,
    choose: Callable[[Tensor], Tensor] = torch.argmax,
    stops: bool = True,
) -> list[int]:
    """shown: what the model sees of the ids so far."""
    written: list[int] = []
    while len(written) < longest:
        best = int(choose(next_scores(shown([start, *written]))))
        if best == end and stops:
            return written
        written.append(best)
    return written


def keeps_end(next_scores: Callable[[list[int]], Tensor], start: int, end: int, longest: int) -> list[int]:
    found = search(next_scores, start, end, longest)
    ended = len(found) < longest and int(next_scores([start, *found]).argmax()) == end
    return [*found, end] if ended else found


def as_case(*path: int, longest: int = 6) -> tuple[Any, ...]:
    return Model(*path), START, END, longest


WITH_START = said("<start> is no part of the translation: leave it out.", "시작 기호는 번역문이 아닙니다. 빼세요.")
GREEDY = Exercise(
    [
        as_case(5, 4, 7, END),
        as_case(6, 6, 3, 4, 5, 7, 3, 4),
        as_case(END),
        as_case(4, 5, END, longest=3),
        as_case(5, 4, END, longest=2),
    ],
    search,
    [
        Mistake(lambda *case: [START, *search(*case)], WITH_START),
        Mistake(lambda *case: [START, *keeps_end(*case)], WITH_START),
        Mistake(
            keeps_end,
            said("<end> is no part of the translation: leave it out.", "끝 기호는 번역문이 아닙니다. 빼세요."),
        ),
        Mistake(
            lambda *case: search(*case, choose=torch.argmin),
            said(
                "it takes the least likely token: the highest score is the likeliest (argmax).",
                "가장 낮은 점수를 고릅니다. 점수가 가장 높은 토큰을 고르세요(argmax).",
            ),
        ),
        Mistake(
            lambda *case: search(*case, stops=False),
            said("it doesn't stop at `end`.", "`end`에서 멈추지 않습니다."),
        ),
        Mistake(
            lambda next_scores, start, end, longest: search(next_scores, start, end, 10**6),
            said(
                "it never stops if the model doesn't: stop after `longest` ids.",
                "모델이 끝내지 않으면 멈추지 않습니다. `longest`개에서 멈추세요.",
            ),
        ),
        Mistake(
            lambda next_scores, start, end, longest: search(next_scores, start, end, longest - 1),
            said(
                "off by one: it writes `longest` - 1 ids at most. Does it count <start>?",
                "하나 모자랍니다. 최대 `longest` - 1개를 씁니다. 시작 기호까지 세고 있나요?",
            ),
        ),
        Mistake(
            lambda next_scores, start, end, longest: search(next_scores, start, end, longest + 1),
            said("off by one: it writes `longest` + 1 ids.", "하나 많습니다. `longest` + 1개를 씁니다."),
        ),
        Mistake(
            lambda *case: search(*case, shown=lambda ids: ids[-1:]),
            said(
                "the model sees only the last id: give it all ids so far.",
                "모델이 마지막 ID만 봅니다. 지금까지의 ID를 모두 주세요.",
            ),
        ),
        Mistake(
            lambda *case: search(*case, shown=lambda ids: ids[:1]),
            said(
                "the model always sees the same: append what was chosen.",
                "모델이 늘 같은 것을 봅니다. 고른 토큰을 덧붙이세요.",
            ),
        ),
        Mistake(
            lambda *case: search(*case, shown=lambda ids: ids[1:]),
            said(
                "the model doesn't see <start>: it is the first id.",
                "모델이 시작 기호를 보지 못합니다. 첫 ID는 시작 기호입니다.",
            ),
        ),
    ],
)
