"""What a model's confidence is computed by, `calibration.json`, which a stranger may have written."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.storage.untrusted import check_version, clipped, parse_json
from headway.text.domain import Domain

FORMAT_VERSION = 1
FEATURES = (
    "mean_log_probability",
    "least_log_probability",
    "mean_entropy",
    "log_length_ratio",
    "log_source_length",
)
"""What a translation is judged by: the mean and the least log-probability of its tokens, the mean entropy of what the
model expected in their places, the tokens of the translation for each of the source's, and those of the source."""


@dataclass(frozen=True)
class Calibration:
    """A logistic regression on the features of a translation, and the domain of the sources that it was fitted on."""

    weights: tuple[float, ...]
    """One for each of FEATURES."""
    bias: float
    domain: Domain

    def to_dict(self) -> dict[str, Any]:
        domain = self.domain
        return {
            "format_version": FORMAT_VERSION,
            "weights": dict(zip(FEATURES, self.weights, strict=True)),
            "bias": self.bias,
            "domain": {
                "mean": list(domain.mean),
                "precision": list(domain.precision),
                "farthest": domain.farthest,
                "counts": {str(id_): count for id_, count in sorted(domain.counts.items())},
            },
        }


def parse_calibration(data: bytes, file: Path, vocab_size: int) -> Calibration:
    """Of a model with such a source vocabulary. Raises UserError."""
    document = parse_json(data, file)
    check_version(document.get("format_version"), FORMAT_VERSION, file)
    try:
        return _calibration(document, vocab_size)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = clipped(f"{type(error).__name__}: {error}")
        raise UserError(f"{file}: is not the calibration of this model ({problem})") from None


def _calibration(document: dict[str, Any], vocab_size: int) -> Calibration:
    weights, domain = document["weights"], document["domain"]
    if set(weights) != set(FEATURES):
        raise ValueError(f"weights must be of {', '.join(FEATURES)}")
    first, second = _numbers(domain["mean"], 2)
    of_first, between, of_second = _numbers(domain["precision"], 3)
    [farthest] = _numbers([domain["farthest"]], 1)
    counts = {int(id_): count for id_, count in domain["counts"].items()}
    if farthest <= 0:
        raise ValueError("farthest must be above 0")
    if not all(0 <= id_ < vocab_size and type(count) is int and 0 < count < 2**53 for id_, count in counts.items()):
        raise ValueError("counts must be whole numbers of tokens in the vocabulary")
    return Calibration(
        tuple(_numbers([weights[name] for name in FEATURES], len(FEATURES))),
        _numbers([document["bias"]], 1)[0],
        Domain(counts, vocab_size, (first, second), (of_first, between, of_second), farthest),
    )


def _numbers(values: list[Any], count: int) -> list[float]:
    if len(values) != count or not all(type(one) in (int, float) and math.isfinite(one) for one in values):
        raise ValueError(f"must be {count} finite numbers")
    return [float(one) for one in values]
