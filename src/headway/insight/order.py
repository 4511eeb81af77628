"""Does the order of words matter? Two sentences of the same words in another order, which a model without positions
can't tell apart: for some languages they differ by where "not" stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.insight.what_if import Outcome

ORDER_PAIRS = {
    "de": ("Der Mann ist nicht alt, aber groß.", "Der Mann ist alt, aber nicht groß."),
    "en": ("The man is not old but tall.", "The man is old but not tall."),
    "es": ("El niño no come, pero bebe.", "El niño come, pero no bebe."),
    "fr": ("L'enfant préfère ne pas dormir et jouer.", "L'enfant préfère dormir et ne pas jouer."),
    "ko": ("아이가 밥은 안 먹고 물은 마셔요.", "아이가 밥은 먹고 물은 안 마셔요."),
}


@dataclass(frozen=True)
class WordOrder:
    """Two sentences, and, where they were tried, what a model makes of each."""

    kind: Literal["not", "reversed"]
    """`not`: they differ by where "not" stands. `reversed`: the words of the one, from last to first, are the other."""
    sentences: tuple[str, str]
    with_positions: tuple[Outcome, ...] = ()
    without_positions: tuple[Outcome, ...] = ()


def word_order(language: str, text: str) -> WordOrder | None:
    """The two sentences of a source language; where there are none the text and its words reversed. None where that is
    the same."""
    if language in ORDER_PAIRS:
        return WordOrder("not", ORDER_PAIRS[language])
    backwards = " ".join(reversed(text.split()))
    return None if backwards == " ".join(text.split()) else WordOrder("reversed", (text, backwards))
