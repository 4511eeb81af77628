"""Looking inside a translation: its record, attention maps, measures of heads, what-ifs and analyses."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.insight.beams import BeamTree, Finished
    from headway.insight.editing import edited_model
    from headway.insight.maps import KINDS, AttentionKind, AttentionMaps, HeadMeasures, attention_names, measure_heads
    from headway.insight.order import WordOrder, find_word_order
    from headway.insight.record import Moment, Text, TranslationRecord
    from headway.insight.recording import record_pass
    from headway.insight.terminal import draw_map
    from headway.insight.what_if import (
        Edit,
        HeadOff,
        LookAheadOff,
        Outcome,
        PositionsOff,
        ScalingOff,
        SwapWords,
        Tried,
        WhatIf,
        Word,
        read_edits,
        usual_cases,
    )

__all__ = [
    "KINDS",
    "AttentionKind",
    "AttentionMaps",
    "BeamTree",
    "Edit",
    "Finished",
    "HeadMeasures",
    "HeadOff",
    "LookAheadOff",
    "Moment",
    "Outcome",
    "PositionsOff",
    "ScalingOff",
    "SwapWords",
    "Text",
    "TranslationRecord",
    "Tried",
    "WhatIf",
    "Word",
    "WordOrder",
    "attention_names",
    "draw_map",
    "edited_model",
    "find_word_order",
    "measure_heads",
    "read_edits",
    "record_pass",
    "usual_cases",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    beams="BeamTree Finished",
    editing="edited_model",
    maps="KINDS AttentionKind AttentionMaps HeadMeasures attention_names measure_heads",
    order="WordOrder find_word_order",
    record="Moment Text TranslationRecord",
    recording="record_pass",
    terminal="draw_map",
    what_if="Edit HeadOff LookAheadOff Outcome PositionsOff ScalingOff SwapWords Tried WhatIf Word "
    "read_edits usual_cases",
)
