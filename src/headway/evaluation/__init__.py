"""Text in, numbers out."""

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
    "check_tokenize",
    "chrf_between",
    "compare_translations",
    "score_translations",
    "tokenization",
]
