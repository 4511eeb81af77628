"""What happened inside a translation."""

from headway.insight.record import TranslationRecord, record_translation
from headway.insight.terminal import draw_map

__all__ = ["TranslationRecord", "draw_map", "record_translation"]
