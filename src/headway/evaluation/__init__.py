"""Text in, numbers out."""

from headway.evaluation.alignments import alignment_error_rate, parse_pharaoh
from headway.evaluation.chrf import chrf_between
from headway.evaluation.scores import (
    Comparison,
    Scores,
    check_tokenize,
    compare_translations,
    score_translations,
    tokenization,
)

__all__ = [
    "Comparison",
    "Scores",
    "alignment_error_rate",
    "check_tokenize",
    "chrf_between",
    "compare_translations",
    "parse_pharaoh",
    "score_translations",
    "tokenization",
]
