"""Looking inside a translation: its record, attention maps, measures of heads, what-ifs and analyses."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.insight.maps import AttentionMaps, measure_heads
    from headway.insight.terminal import draw_map

__all__ = ["AttentionMaps", "draw_map", "measure_heads"]

__getattr__, __dir__ = lazy_names(__name__, maps="AttentionMaps measure_heads", terminal="draw_map")
