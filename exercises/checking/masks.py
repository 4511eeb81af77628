"""Exercise 2: cases, the right answers by their definitions, and mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from checking.judging import Exercise, Mistake, said

BOOLEAN = said(
    "a mask is boolean here: True and False, not numbers.",
    "여기서 마스크는 불리언입니다. 숫자가 아니라 True와 False를 쓰세요.",
)
INVERTED = said(
    "it is inverted: True means that the key may be read.",
    "뒤집혔습니다. True는 읽어도 된다는 뜻입니다.",
)


def as_numbers(right: Callable[..., Tensor]) -> list[Mistake]:
    """Ones and zeros, 0 and -inf, and what is inverted."""
    added = lambda *case: torch.zeros(right(*case).shape).masked_fill(~right(*case), -math.inf)  # noqa: E731
    return [
        Mistake(lambda *case: ~right(*case), INVERTED),
        Mistake(lambda *case: right(*case).float(), BOOLEAN),
        Mistake(lambda *case: (~right(*case)).float(), BOOLEAN),
        Mistake(added, BOOLEAN),
    ]


def real(ids: Tensor, pad_id: int) -> Tensor:
    rows = [[[id_ != pad_id for id_ in row]] for row in ids.tolist()]
    return torch.tensor(rows)


def past(length: int) -> Tensor:
    return torch.tensor([[key <= query for key in range(length)] for query in range(length)])


def real_past(ids: Tensor, pad_id: int) -> Tensor:
    return real(ids, pad_id) & past(ids.size(1))


IDS = [(torch.tensor([[5, 6, 0, 0], [7, 8, 9, 0]]), 0), (torch.tensor([[4, 0, 6, 1, 1], [0, 3, 1, 1, 1]]), 1)]
PADDING = Exercise(
    IDS,
    real,
    [
        *as_numbers(real),
        Mistake(
            lambda ids, pad_id: ids != pad_id,
            said(
                "the axis of the queries is missing: (batch, 1, length), by mask[:, None, :].",
                "쿼리의 축이 빠졌습니다. mask[:, None, :]으로 (batch, 1, length)를 만드세요.",
            ),
        ),
        Mistake(
            lambda ids, pad_id: (ids != pad_id)[:, :, None],
            said(
                "it hides queries: keys are the last axis, so the new one comes before it.",
                "쿼리를 가립니다. 마지막 축이 키이므로 새 축은 그 앞에 와야 합니다.",
            ),
        ),
        Mistake(
            lambda ids, pad_id: (ids != 0)[:, None, :],
            said("padding isn't always 0: compare with pad_id.", "패딩이 언제나 0은 아닙니다. pad_id와 비교하세요."),
        ),
    ],
)
CAUSAL = Exercise(
    [(1,), (4,)],
    past,
    [
        *as_numbers(past),
        Mistake(
            lambda length: torch.ones(length, length).triu().bool(),
            said(
                "it shows the future and hides the past: the lower triangle is the past (tril).",
                "미래를 보여 주고 과거를 가립니다. 과거는 아래 삼각형(tril)입니다.",
            ),
        ),
        Mistake(
            lambda length: torch.ones(length, length).tril(-1).bool(),
            said(
                "off by one: a query also reads itself, the diagonal.",
                "하나 어긋났습니다. 쿼리는 자기 자신(대각선)도 읽습니다.",
            ),
        ),
        Mistake(
            lambda length: torch.ones(length, length).tril(1).bool(),
            said(
                "off by one: a query reads the token after it, which is its answer.",
                "하나 어긋났습니다. 쿼리가 바로 다음 토큰, 곧 정답을 읽습니다.",
            ),
        ),
        Mistake(
            lambda length: torch.ones(length, length).bool(),
            said("nothing is hidden: hide the future.", "아무것도 가리지 않습니다. 미래를 가려야 합니다."),
        ),
    ],
)
TARGET = Exercise(
    IDS,
    real_past,
    [
        *as_numbers(real_past),
        Mistake(
            lambda ids, pad_id: real(ids, pad_id) | past(ids.size(1)),
            said(
                "the masks are joined by `or`: a key must be real *and* past.",
                "두 마스크를 `or`로 묶었습니다. 패딩이 아니면서 *동시에* 과거여야 합니다.",
            ),
        ),
        *(
            Mistake(wrong, said("padding is still visible.", "패딩이 아직 보입니다."))
            for wrong in (
                lambda ids, pad_id: past(ids.size(1)),
                lambda ids, pad_id: past(ids.size(1)).expand(len(ids), -1, -1),
            )
        ),
        *(
            Mistake(wrong, said("the future is still visible.", "미래가 아직 보입니다."))
            for wrong in (real, lambda ids, pad_id: real(ids, pad_id).expand(-1, ids.size(1), -1))
        ),
        Mistake(
            lambda ids, pad_id: real(ids, pad_id).transpose(1, 2) & past(ids.size(1)),
            said(
                "padding is hidden as a query: hide it as a key, the last axis.",
                "패딩을 쿼리로서 가렸습니다. 키, 곧 마지막 축에서 가리세요.",
            ),
        ),
    ],
)
