"""Prices of requests in units, by which the limits of clients count: in proportion to the work that each may take."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from headway.serving.pairs import AskedText
from headway.serving.schemas import InspectRequest, TranslateRequest
from headway.translator.required_phrases import MOST_PHRASES_IN_BEAM

UNIT = 1000  # characters of a text, as often as hypotheses are kept of it, that count as one
END = 20  # characters that the end of a line or a sentence, or a tag, counts as besides its own
FILE = 50_000  # bytes of a file to read that count as one
DETECTED, ALIGNED = 10_000, 200  # characters to detect, or to align, that count as one
ORDER = 4  # a record, each other translation in it and each other analysis count as one
ANALYSES = {"faithfulness": 4, "head_importance": 16}
_ENDS = (". ", "! ", "? ", "… ", "。", "！", "？", "।")
_OF_FORMAT = {"text": "\n", "html": "<"}


def of_translation(wanted: TranslateRequest, texts: Iterable[AskedText]) -> int:
    least, work = MOST_PHRASES_IN_BEAM + 1 if wanted.glossary else 1, 0
    for text, pair, format_ in texts:
        if pair is not None:
            ends = sum(map(text.count, (_OF_FORMAT[format_], *_ENDS)))
            work += max(least, pair.beam_size(wanted)) * (len(text) + END * ends)
    return _units(work, UNIT)


def of_file(data: bytes) -> int:
    """For reading a file; its text is charged as that of a request."""
    return _units(len(data), FILE)


def of_detection(texts: Iterable[str]) -> int:
    return _units(sum(map(len, texts)), DETECTED)


def of_alignment(texts: Sequence[str], translations: Sequence[str]) -> int:
    pairs = zip(texts, translations, strict=True)
    return sum(_units(len(text) + len(translation), ALIGNED) for text, translation in pairs)


def of_record(wanted: InspectRequest) -> int:
    return 1 + len(wanted.cases) + sum(map(_of_analysis, wanted.analyses)) + ORDER * wanted.order


def _of_analysis(analysis: Any) -> int:
    kind = analysis.get("kind") if isinstance(analysis, dict) else analysis
    return ANALYSES.get(str(kind), 1)


def _units(characters: int, unit: int) -> int:
    return max(1, math.ceil(characters / unit))
