"""What happened inside a translation."""

from headway.insight.beams import BeamTree
from headway.insight.maps import KINDS, AttentionKind, AttentionMaps, attention_names, measure_heads
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
    edited_model,
    read_edits,
    usual_cases,
)

__all__ = [
    "KINDS",
    "AttentionKind",
    "AttentionMaps",
    "BeamTree",
    "Edit",
    "HeadOff",
    "LookAheadOff",
    "Moment",
    "Outcome",
    "PositionsOff",
    "ScalingOff",
    "SwapWords",
    "Text",
    "TranslationRecord",
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
