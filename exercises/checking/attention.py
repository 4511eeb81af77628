"""Exercise 1: cases, the right answer by torch, and mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from checking.judging import Exercise, Mistake, numbers, said

Pair = tuple[Tensor, Tensor]


def by_torch(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
    """The weights are the output for values that tell each key from the others."""
    each = torch.eye(key.size(-2)).expand(*key.shape[:-1], -1)
    output, weights = (F.scaled_dot_product_attention(query, key, one, mask) for one in (value, each))
    return output, weights


def from_scores(change: Callable[[Tensor], Tensor]) -> Callable[..., Pair]:
    """Attention whose scores become weights in another way; `change` gets Q K^T / sqrt(d_k), hidden keys as -inf."""

    def wrong(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Pair:
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
        weights = change(scores if mask is None else scores.masked_fill(~mask, -math.inf))
        return weights @ value, weights

    return wrong


def from_masked_scores(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Pair]:
    """Attention with another way of masking; `change` gets Q K^T / sqrt(d_k) and the mask."""

    def wrong(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Pair:
        return from_scores(lambda scores: change(scores, mask))(query, key, value)

    return wrong


D_K = 4
PLAIN = [(numbers(1, 2, 3, D_K), numbers(2, 2, 5, D_K), numbers(3, 2, 5, 6)), tuple(numbers(4, 3, 2, 4, D_K))]
WRONG_AXIS = said(
    "softmax runs over the wrong axis: the weights of each query must have the sum 1, so take dim=-1, the keys.",
    "소프트맥스를 잘못된 축에 적용했습니다. 쿼리마다 가중치의 합이 1이어야 하므로 키의 축, dim=-1을 쓰세요.",
)
ATTEND = Exercise(
    PLAIN,
    by_torch,
    [
        Mistake(
            from_scores(lambda scores: (scores * math.sqrt(D_K)).softmax(-1)),
            said(
                "the scale is missing: divide the scores by sqrt(d_k) before softmax.",
                "스케일이 빠졌습니다. 소프트맥스 전에 점수를 sqrt(d_k)로 나누세요.",
            ),
        ),
        Mistake(
            from_scores(lambda scores: (scores / math.sqrt(D_K)).softmax(-1)),
            said(
                "the scores are divided by d_k: divide by its square root.",
                "점수를 d_k로 나눴습니다. d_k의 제곱근으로 나눠야 합니다.",
            ),
        ),
        Mistake(
            from_scores(lambda scores: (scores * D_K).softmax(-1)),
            said(
                "the scores are multiplied by sqrt(d_k): divide by it.",
                "점수에 sqrt(d_k)를 곱했습니다. 나눠야 합니다.",
            ),
        ),
        Mistake(
            from_scores(lambda scores: (scores * math.sqrt(D_K)).softmax(-1) / math.sqrt(D_K)),
            said(
                "the weights are divided by sqrt(d_k): divide the scores instead, before softmax.",
                "가중치를 sqrt(d_k)로 나눴습니다. 소프트맥스 전의 점수를 나누세요.",
            ),
        ),
        Mistake(from_scores(lambda scores: scores.softmax(-2)), WRONG_AXIS),
        Mistake(from_scores(lambda scores: scores.softmax(0)), WRONG_AXIS),
        Mistake(
            from_scores(lambda scores: scores),
            said(
                "softmax is missing: the scores must become weights with the sum 1.",
                "소프트맥스가 빠졌습니다. 점수를 합이 1인 가중치로 바꿔야 합니다.",
            ),
        ),
        Mistake(
            lambda *case: (by_torch(*case)[0], from_scores(lambda scores: scores)(*case)[1]),
            said(
                "the output is right, but it returns the scores: return the weights, which are after softmax.",
                "출력은 맞지만 점수를 돌려줍니다. 소프트맥스를 거친 가중치를 돌려주세요.",
            ),
        ),
        Mistake(
            lambda *case: by_torch(*case)[::-1],
            said(
                "output and weights are exchanged: the output comes first.", "순서가 바뀌었습니다. 출력이 먼저입니다."
            ),
        ),
        Mistake(
            lambda *case: by_torch(*case)[0],
            said(
                "only the output is returned: return (output, weights).",
                "출력만 돌려줍니다. (출력, 가중치)를 돌려주세요.",
            ),
        ),
    ],
)
INVERTED = said(
    "the mask is inverted: True means that the key may be read, so fill where it is False (~mask).",
    "마스크가 뒤집혔습니다. True는 읽어도 되는 키이므로 False인 곳(~mask)을 채우세요.",
)
SOME = torch.tensor([[True, True, False, False, True], [False, True, True, True, False], [True] * 5])
MASKED = Exercise(
    [(*PLAIN[0], SOME), (*PLAIN[0], torch.stack([SOME[1:2], SOME[:1]])), (*PLAIN[1], torch.ones(4, 4).tril().bool())],
    by_torch,
    [
        Mistake(
            from_masked_scores(lambda scores, mask: scores.softmax(-1)),
            said(
                "the mask has no effect: hidden keys need the score -inf before softmax.",
                "마스크가 적용되지 않았습니다. 가릴 키의 점수를 소프트맥스 전에 -inf로 바꾸세요.",
            ),
        ),
        Mistake(from_masked_scores(lambda scores, mask: scores.masked_fill(mask, -math.inf).softmax(-1)), INVERTED),
        Mistake(from_masked_scores(lambda scores, mask: scores.masked_fill(mask, -1e9).softmax(-1)), INVERTED),
        Mistake(
            from_masked_scores(lambda scores, mask: (scores + mask).softmax(-1)),
            said(
                "the mask is added as numbers (True is 1): fill the scores with -inf where it is False.",
                "마스크를 숫자로 더했습니다(True는 1). 마스크가 False인 곳의 점수를 -inf로 채우세요.",
            ),
        ),
        Mistake(
            from_masked_scores(lambda scores, mask: scores.softmax(-1).masked_fill(~mask, 0)),
            said(
                "the mask comes after softmax: the other weights then don't have the sum 1. Hide the scores instead.",
                "소프트맥스 뒤에 가렸습니다. 그러면 남은 가중치의 합이 1이 아닙니다. 점수를 가리세요.",
            ),
        ),
        Mistake(
            from_masked_scores(lambda scores, mask: scores.masked_fill(~mask, 0).softmax(-1)),
            said(
                "hidden keys have the score 0, which is a score like any other (e^0 = 1): use -inf.",
                "가릴 키의 점수를 0으로 했습니다. 0도 점수입니다(e^0 = 1). -inf를 쓰세요.",
            ),
        ),
        *ATTEND.mistakes,
    ],
)
