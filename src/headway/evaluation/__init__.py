"""Text in, numbers out."""

from headway.evaluation.calibration import area_under_curve, expected_calibration_error
from headway.evaluation.metrics import Measured, MetricFunction, NamedMetric, load_metric
from headway.evaluation.scores import (
    Comparison,
    Scores,
    alignment_error_rate,
    check_tokenize,
    chrf_between,
    compare_measured,
    compare_translations,
    parse_pharaoh,
    score_margins,
    score_translations,
    sentence_bleu,
    sentence_chrf,
    tokenization,
)

__all__ = [
    "Comparison",
    "Measured",
    "MetricFunction",
    "NamedMetric",
    "Scores",
    "alignment_error_rate",
    "area_under_curve",
    "check_tokenize",
    "chrf_between",
    "compare_measured",
    "compare_translations",
    "expected_calibration_error",
    "load_metric",
    "parse_pharaoh",
    "score_margins",
    "score_translations",
    "sentence_bleu",
    "sentence_chrf",
    "tokenization",
]
