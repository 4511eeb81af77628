"""Text in, numbers out."""

from headway.evaluation.scores import (
    Comparison,
    Scores,
    check_tokenize,
    compare_translations,
    score_translations,
    tokenization,
)

__all__ = ["Comparison", "Scores", "check_tokenize", "compare_translations", "score_translations", "tokenization"]
