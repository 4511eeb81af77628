"""Checks the answers to the exercises. It knows the right ones: write yours before you read it.

`hint("attend", attend)` is empty if the function is right; `check("attend", attend)` prints the verdict. Both speak
English ("en") and Korean ("ko").
"""

from collections.abc import Callable
from typing import Any

from checking.attention import ATTEND, MASKED
from checking.judging import judge
from checking.layers import LAYER
from checking.masks import CAUSAL, PADDING, TARGET
from checking.positions import TABLE
from checking.searching import GREEDY

EXERCISES = {
    "attend": ATTEND,
    "attend with a mask": MASKED,
    "padding_mask": PADDING,
    "causal_mask": CAUSAL,
    "target_mask": TARGET,
    "sinusoidal_table": TABLE,
    "decoder_layer": LAYER,
    "greedy": GREEDY,
}
RIGHT = {"en": "right.", "ko": "맞았습니다."}


def hint(name: str, answer: Callable[..., Any], language: str = "en") -> str:
    """What is wrong with the answer to an exercise."""
    found = judge(EXERCISES[name], answer)
    return "" if found is None else f"{name}: {found[language]}"


def check(name: str, answer: Callable[..., Any], language: str = "en") -> None:
    """Prints the hint, or that the answer is right."""
    print(hint(name, answer, language) or f"{name}: {RIGHT[language]}")


def require(name: str, answer: Callable[..., Any]) -> None:
    """The same as a test of pytest, which fails with the hint in both languages."""
    import pytest

    if hint(name, answer):
        pytest.fail("\n".join(hint(name, answer, language) for language in RIGHT), pytrace=False)
