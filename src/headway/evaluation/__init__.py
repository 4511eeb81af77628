"""Text in, numbers out."""

from headway.evaluation.scores import Scores, check_tokenize, score_translations

__all__ = ["Scores", "check_tokenize", "score_translations"]
