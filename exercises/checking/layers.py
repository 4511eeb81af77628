"""Exercise 4: cases, the right layer, and mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from checking.judging import Exercise, Mistake, numbers, said
from checking.masks import past
from checking.parts import Parts

WIDTH = 6


def parts() -> Parts:
    """Parts that differ from each other, with numbers that are drawn at random."""
    first, second, third = (numbers(seed, WIDTH, WIDTH) for seed in (10, 11, 12))
    gains = [1 + numbers(seed, WIDTH).abs() for seed in (13, 14, 15)]
    attention = F.scaled_dot_product_attention
    return Parts(
        lambda query, key, value, mask: attention(query, key @ first, value, mask),
        lambda query, key, value, mask: attention(query, key, value @ second, mask),
        lambda x: (x @ third).relu() @ first,
        *(lambda x, gain=gain: F.layer_norm(x, (WIDTH,), gain) for gain in gains),
    )


def layer_case(target: int, source: int) -> tuple[Any, ...]:
    memory_mask = torch.ones(2, 1, source).bool()
    memory_mask[1, 0, -1] = False
    return numbers(20, 2, target, WIDTH), numbers(21, 2, source, WIDTH), past(target), memory_mask, parts()


def sublayers(memory: Tensor, causal: Tensor | None, memory_mask: Tensor | None, given: Parts) -> list[Any]:
    """The three, with their normalisations."""
    return [
        (lambda x: given.self_attention(x, x, x, causal), given.norm1),
        (lambda x: given.cross_attention(x, memory, memory, memory_mask), given.norm2),
        (given.feed_forward, given.norm3),
    ]


def layer(
    x: Tensor,
    memory: Tensor,
    causal: Tensor | None,
    memory_mask: Tensor | None,
    given: Parts,
    around: Callable[[Tensor, Any, Any], Tensor] = lambda x, sublayer, norm: norm(x + sublayer(x)),
    order: Sequence[int] = (0, 1, 2),
    without_residual: Sequence[int] = (),
    without_norm: int | None = None,
    norms_in_turn: bool = False,
) -> Tensor:
    """around: what is done with a sublayer; without_residual, without_norm: numbers of sublayers.
    norms_in_turn: the first sublayer has norm1, whichever it is."""
    of_layer = sublayers(memory, causal, memory_mask, given)
    for place, number in enumerate(order):
        sublayer, norm = of_layer[number]
        if norms_in_turn:
            norm = of_layer[place][1]
        if number == without_norm:
            norm = Tensor.clone
        x = norm(sublayer(x)) if number in without_residual else around(x, sublayer, norm)
    return x


def from_the_start(x: Tensor, memory: Tensor, causal: Tensor, memory_mask: Tensor, given: Parts) -> Tensor:
    start = x
    for sublayer, norm in sublayers(memory, causal, memory_mask, given):
        x = norm(start + sublayer(x))
    return x


def one_norm(x: Tensor, memory: Tensor, causal: Tensor, memory_mask: Tensor, given: Parts) -> Tensor:
    return layer(x, memory, causal, memory_mask, given._replace(norm2=given.norm1, norm3=given.norm1))


def with_cross(change: Callable[[Any], Any]) -> Callable[..., Tensor]:
    """A layer whose attention to the memory gets other arguments; `change` makes its function from the given one."""
    return lambda x, memory, causal, memory_mask, given: layer(
        x, memory, causal, memory_mask, given._replace(cross_attention=change(given.cross_attention))
    )


SUBLAYERS = ("self-attention", "attention to the memory", "feed-forward network")
KOREAN_SUBLAYERS = ("셀프 어텐션", "메모리 어텐션", "피드포워드 신경망")
LAYER = Exercise(
    [layer_case(3, 3), layer_case(3, 4)],
    layer,
    [
        Mistake(
            lambda *case: layer(*case, without_residual=(0, 1, 2)),
            said(
                "the residual connections are missing: add each sublayer's input to its output.",
                "잔차 연결이 빠졌습니다. 각 하위 층의 출력에 그 입력을 더하세요.",
            ),
        ),
        *(
            Mistake(
                lambda *case, number=number: layer(*case, without_residual=(number,)),
                said(
                    f"the residual connection around the {english} is missing.",
                    f"{korean}의 잔차 연결이 빠졌습니다.",
                ),
            )
            for number, (english, korean) in enumerate(zip(SUBLAYERS, KOREAN_SUBLAYERS, strict=True))
        ),
        Mistake(
            lambda *case: layer(*case, around=lambda x, sublayer, norm: x + sublayer(norm(x))),
            said(
                "it normalises before each sublayer (pre-norm): the paper does it after, norm(x + sublayer(x)).",
                "하위 층 앞에서 정규화했습니다(pre-norm). 논문은 뒤에서 합니다: norm(x + sublayer(x)).",
            ),
        ),
        Mistake(
            lambda *case: layer(*case, around=lambda x, sublayer, norm: x + norm(sublayer(x))),
            said(
                "the residual is added after the normalisation: normalise the sum, norm(x + sublayer(x)).",
                "정규화한 뒤에 더했습니다. 합을 정규화하세요: norm(x + sublayer(x)).",
            ),
        ),
        Mistake(
            lambda *case: layer(*case, around=lambda x, sublayer, norm: x + sublayer(x)),
            said("the normalisations are missing.", "정규화가 빠졌습니다."),
        ),
        *(
            Mistake(
                lambda *case, number=number: layer(*case, without_norm=number),
                said(
                    f"the normalisation after the {english} is missing.",
                    f"{korean} 뒤의 정규화가 빠졌습니다.",
                ),
            )
            for number, (english, korean) in enumerate(zip(SUBLAYERS, KOREAN_SUBLAYERS, strict=True))
        ),
        Mistake(
            one_norm,
            said(
                "norm1 is used three times: each sublayer has its own.",
                "norm1을 세 번 썼습니다. 하위 층마다 따로 있습니다.",
            ),
        ),
        Mistake(
            from_the_start,
            said(
                "each residual adds the layer's input: add the sublayer's own input, the output of the one before.",
                "잔차로 늘 층의 입력을 더합니다. 그 하위 층의 입력, 곧 앞 하위 층의 출력을 더하세요.",
            ),
        ),
        Mistake(
            with_cross(lambda attention: lambda x, key, value, mask: attention(key, x, x, mask)),
            said(
                "query and memory are exchanged: x is the query, the memory is key and value.",
                "쿼리와 메모리가 바뀌었습니다. x가 쿼리이고 메모리가 키와 밸류입니다.",
            ),
        ),
        Mistake(
            with_cross(lambda attention: lambda x, key, value, mask: attention(x, x, x, mask)),
            said(
                "the second attention never reads the memory: pass the memory as key and value.",
                "두 번째 어텐션이 메모리를 읽지 않습니다. 메모리를 키와 밸류로 넘기세요.",
            ),
        ),
        Mistake(
            with_cross(lambda attention: lambda x, key, value, mask: attention(x, key, x, mask)),
            said(
                "the value of the second attention must be the memory, too.",
                "두 번째 어텐션의 밸류도 메모리여야 합니다.",
            ),
        ),
        Mistake(
            lambda x, memory, causal, memory_mask, given: layer(x, memory, None, memory_mask, given),
            said(
                "the self-attention has no mask, so a token sees the future: give it `causal`.",
                "셀프 어텐션에 마스크가 없어 토큰이 미래를 봅니다. `causal`을 주세요.",
            ),
        ),
        Mistake(
            lambda x, memory, causal, memory_mask, given: layer(x, memory, causal, None, given),
            said(
                "the attention to the memory has no mask, so it reads padding: give it `memory_mask`.",
                "메모리 어텐션에 마스크가 없어 패딩을 읽습니다. `memory_mask`를 주세요.",
            ),
        ),
        Mistake(
            lambda x, memory, causal, memory_mask, given: layer(x, memory, memory_mask, causal, given),
            said(
                "the masks are exchanged: `causal` belongs to the self-attention.",
                "두 마스크가 바뀌었습니다. `causal`은 셀프 어텐션의 것입니다.",
            ),
        ),
        *(
            Mistake(
                lambda *case, order=order, turn=turn: layer(*case, order=order, norms_in_turn=turn),
                said(
                    "the order is wrong: self-attention, then the attention to the memory, then feed-forward.",
                    "순서가 틀렸습니다. 셀프 어텐션, 메모리 어텐션, 피드포워드 순서입니다.",
                ),
            )
            for order in ((1, 0, 2), (0, 2, 1), (2, 0, 1))
            for turn in (False, True)
        ),
        *(
            Mistake(
                lambda *case, order=order, turn=turn: layer(*case, order=order, norms_in_turn=turn),
                said(f"the {english} is missing.", f"{korean}이(가) 빠졌습니다."),
            )
            for english, korean, order in zip(SUBLAYERS, KOREAN_SUBLAYERS, ((1, 2), (0, 2), (0, 1)), strict=True)
            for turn in (False, True)
        ),
    ],
)
