"""Does the place of "not" matter? For some languages two sentences of the same words, in which it stands elsewhere. A
model without positions can't tell them apart."""

from __future__ import annotations

from dataclasses import dataclass

from headway.insight.what_if import Outcome

ORDER_PAIRS = {
    "de": ("Das Kind schläft nicht und spielt.", "Das Kind schläft und spielt nicht."),
    "en": ("The dog is not hungry and tired.", "The dog is hungry and not tired."),
    "es": ("El niño no duerme y juega.", "El niño duerme y no juega."),
    "fr": ("L'enfant est pas fatigué mais content.", "L'enfant est fatigué mais pas content."),
    "ko": ("아이가 안 자고 놀아요.", "아이가 자고 안 놀아요."),
}


@dataclass(frozen=True)
class WordOrder:
    """What a model makes of the two sentences of its source language."""

    sentences: tuple[str, str]
    with_positions: tuple[Outcome, Outcome]
    without_positions: tuple[Outcome, Outcome]
