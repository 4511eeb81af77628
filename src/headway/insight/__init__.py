"""Looking inside a translation: its record, attention maps, measures of heads, what-ifs and analyses."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.insight.maps import AttentionMaps
    from headway.insight.record import TranslationRecord
    from headway.insight.what_if import HeadOff, LookAheadOff, PositionsOff, ScalingOff, SwapWords

__all__ = [
    "AttentionMaps",
    "HeadOff",
    "LookAheadOff",
    "PositionsOff",
    "ScalingOff",
    "SwapWords",
    "TranslationRecord",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    maps="AttentionMaps",
    record="TranslationRecord",
    what_if="HeadOff LookAheadOff PositionsOff ScalingOff SwapWords",
)
