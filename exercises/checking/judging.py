"""Judges an answer: right, or a hint by the kind of mistake."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Hint = dict[str, str]
"""The same in English (`en`) and Korean (`ko`)."""


def said(english: str, korean: str) -> Hint:
    return {"en": english, "ko": korean}


class Mistake(NamedTuple):
    """A wrong answer that many give, and what to say to it."""

    wrong: Callable[..., Any]
    hint: Hint


class Exercise(NamedTuple):
    """Arguments to try an answer with, the right answer, and mistakes."""

    cases: Sequence[tuple[Any, ...]]
    right: Callable[..., Any]
    mistakes: Sequence[Mistake]


def numbers(seed: int, *shape: int) -> Tensor:
    """The same for the same seed."""
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


NOT_WRITTEN = {"en": "Not written yet.", "ko": "아직 쓰지 않았습니다."}


def judge(exercise: Exercise, answer: Callable[..., Any]) -> Hint | None:
    """None if the answer is right. A mistake is named if the answer is wrong in the same way in every case."""
    given = [attempt(answer, case) for case in exercise.cases]
    if any(isinstance(one, NotImplementedError) for one in given):
        return NOT_WRITTEN
    wanted = [exercise.right(*case) for case in exercise.cases]
    if all(same(*pair) for pair in zip(given, wanted, strict=True)):
        return None
    for mistake in exercise.mistakes:
        wrong = [attempt(mistake.wrong, case) for case in exercise.cases]
        if all(same(*pair) for pair in zip(given, wrong, strict=True)):
            return mistake.hint
    return next(difference(*pair) for pair in zip(given, wanted, strict=True) if not same(*pair))


def attempt(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """The result, or the exception that it raised. An answer may change what it is given, so it gets copies."""
    try:
        return function(*copy.deepcopy(case))
    except Exception as error:
        return error


def same(one: Any, other: Any) -> bool:
    """Equal, numbers up to rounding. Two exceptions are the same if they have the same type."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or (one.dtype == torch.bool) != (other.dtype == torch.bool):
            return False
        return torch.allclose(one.double(), other.double(), atol=1e-4, equal_nan=True)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Exception):
        return type(one) is type(other)
    return type(one) is type(other) and one == other


def difference(given: Any, wanted: Any) -> Hint:
    """What can be said of a mistake that isn't known."""
    if isinstance(given, Exception):
        error = f"{type(given).__name__}: {given}".splitlines()[0].rstrip(".")
        return {
            "en": f"It stopped with {error}. Write the shape of each tensor beside its line.",
            "ko": f"{error} 오류로 멈췄습니다. 줄마다 텐서의 모양을 옆에 적어 보세요.",
        }
    if isinstance(wanted, tuple) and isinstance(given, tuple) and len(given) == len(wanted):
        return next(difference(*pair) for pair in zip(given, wanted, strict=True) if not same(*pair))
    if not isinstance(given, type(wanted)):
        kinds = [type(one).__name__ for one in (given, wanted)]
        return {
            "en": f"It returns {kinds[0]}, it should return {kinds[1]}.",
            "ko": f"{kinds[1]}을(를) 돌려줘야 하는데 {kinds[0]}을(를) 돌려줍니다.",
        }
    if not (isinstance(wanted, Tensor) and isinstance(given, Tensor)):
        return {"en": f"It returns {given}, not {wanted}.", "ko": f"{wanted}이(가) 아니라 {given}을(를) 돌려줍니다."}
    return difference_of_tensors(given, wanted)


def difference_of_tensors(given: Tensor, wanted: Tensor) -> Hint:
    if given.shape != wanted.shape:
        shapes = [tuple(one.shape) for one in (given, wanted)]
        return {
            "en": f"The shape is {shapes[0]}, it should be {shapes[1]}.",
            "ko": f"모양이 {shapes[0]}입니다. {shapes[1]}여야 합니다.",
        }
    if (given.dtype == torch.bool) != (wanted.dtype == torch.bool):
        kinds = [str(one.dtype).removeprefix("torch.") for one in (given, wanted)]
        return {
            "en": f"The numbers are {kinds[0]}, they should be {kinds[1]}.",
            "ko": f"자료형이 {kinds[0]}입니다. {kinds[1]}이어야 합니다.",
        }
    wrong = ~torch.isclose(given.double(), wanted.double(), atol=1e-4)
    count, place = int(wrong.sum()), tuple(wrong.nonzero()[0].tolist())
    found, right = (f"{one[place].item():.4g}" for one in (given, wanted))
    return {
        "en": f"{count} of {wrong.numel()} numbers are wrong; at {place} it has {found}, not {right}.",
        "ko": f"숫자 {wrong.numel()}개 중 {count}개가 틀립니다. {place}에 {right} 대신 {found}이(가) 있습니다.",
    }
