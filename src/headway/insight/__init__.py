"""What happened inside a translation."""

from headway.insight.beams import BeamTree, Finished
from headway.insight.maps import KINDS, AttentionKind, AttentionMaps, HeadMeasures, attention_names, measure_heads
from headway.insight.order import WordOrder, find_word_order
from headway.insight.record import Moment, Text, TranslationRecord, log_probabilities
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
    changes_model,
    edited_model,
    edited_text,
    read_edits,
    sees_ahead,
    usual_cases,
)
from headway.translator.aligning import align, choose_aligner
from headway.translator.confidence import confidence_features, fit_weights, probabilities

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
    "align",
    "attention_names",
    "changes_model",
    "choose_aligner",
    "confidence_features",
    "draw_map",
    "edited_model",
    "edited_text",
    "find_word_order",
    "fit_weights",
    "log_probabilities",
    "measure_heads",
    "probabilities",
    "read_edits",
    "record_pass",
    "sees_ahead",
    "usual_cases",
]
