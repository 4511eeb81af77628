"""Exercise 3: cases, the right table number by number, and mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from checking.judging import Exercise, Mistake, said


def sines(angle: Callable[[int, int, int], float], *, exchanged: bool = False) -> Callable[..., Tensor]:
    """A table by scalars. angle: of position, dimension and d_model; exchanged: cosines in even dimensions."""
    first, other = (math.cos, math.sin) if exchanged else (math.sin, math.cos)

    def table(length: int, d_model: int) -> Tensor:
        rows = range(length)
        values = [[(other if i % 2 else first)(angle(pos, i, d_model)) for i in range(d_model)] for pos in rows]
        return torch.tensor(values)

    return table


def paper(pos: float, i: int, d_model: int) -> float:
    return pos / 10000 ** ((i - i % 2) / d_model)


TABLE = Exercise(
    [(5, 8), (3, 4)],
    sines(paper),
    [
        Mistake(
            lambda length, d_model: torch.cat([sines(paper)(length, d_model)[:, i::2] for i in (0, 1)], dim=1),
            said(
                "sines fill the first half and cosines the second: in the paper they take turns (0::2 and 1::2).",
                "앞 절반이 사인, 뒤 절반이 코사인입니다. 논문에서는 번갈아 놓입니다(0::2와 1::2).",
            ),
        ),
        Mistake(
            sines(paper, exchanged=True),
            said(
                "sine and cosine are exchanged: even dimensions have the sine.",
                "사인과 코사인이 바뀌었습니다. 짝수 차원이 사인입니다.",
            ),
        ),
        Mistake(
            sines(lambda pos, i, d_model: paper(pos + 1, i, d_model)),
            said("off by one: the first position is 0.", "하나 어긋났습니다. 첫 위치는 0입니다."),
        ),
        Mistake(
            sines(lambda pos, i, d_model: pos / 10000 ** (i / d_model)),
            said(
                "each dimension has its own wave: a sine and the cosine beside it share the exponent 2i / d_model.",
                "차원마다 파장이 다릅니다. 이웃한 사인과 코사인은 지수 2i / d_model을 함께 씁니다.",
            ),
        ),
        Mistake(
            sines(lambda pos, i, d_model: pos / 10000 ** (i // 2 / d_model)),
            said(
                "the exponent is half of the paper's: i counts pairs, and the exponent is 2i / d_model.",
                "지수가 논문의 절반입니다. i는 쌍의 번호이고 지수는 2i / d_model입니다.",
            ),
        ),
        *(
            Mistake(
                sines(wrong),
                said(
                    "the dimension is doubled: an even dimension is already the paper's 2i.",
                    "차원을 두 배로 했습니다. 짝수 차원의 번호가 이미 논문의 2i입니다.",
                ),
            )
            for wrong in (
                lambda pos, i, d_model: pos / 10000 ** (2 * i / d_model),
                lambda pos, i, d_model: pos / 10000 ** (2 * (i - i % 2) / d_model),
            )
        ),
        Mistake(
            sines(lambda pos, i, d_model: pos * 10000 ** ((i - i % 2) / d_model)),
            said(
                "the position is multiplied: divide it by 10000^(2i / d_model).",
                "곱했습니다. 10000^(2i / d_model)로 나누세요.",
            ),
        ),
        Mistake(
            lambda length, d_model: sines(paper)(length, d_model).T,
            said("rows and columns are exchanged: a row is a position.", "행과 열이 바뀌었습니다. 행이 위치입니다."),
        ),
        Mistake(
            lambda length, d_model: (
                sines(paper)(length, d_model).repeat_interleave(2, 1)[:, 0::4].repeat_interleave(2, 1)
            ),
            said("the cosine is missing: odd dimensions have it.", "코사인이 빠졌습니다. 홀수 차원이 코사인입니다."),
        ),
    ],
)
