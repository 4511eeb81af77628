"""Everything that a model directory holds beside the weights and their config: tokenizers, languages, search options,
and what was measured of the model."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, NonNegativeInt, with_config

from headway.errors import UserError
from headway.storage.untrusted import STRICT, check_version, parse_json, parse_record
from headway.text.domain import Domain
from headway.text.shortlist import Shortlist
from headway.text.subwords import Tokenizer
from headway.text.tokenizer import language_tag

SURE = 0.05
"""A p-value below this makes a difference certain, at 95%."""
NEGLIGIBLE = 0.3
"""BLEU that int8 may lose even where the loss is certain."""
INT8_OPENING = "On CPU in int8 "
"""The first words of the card's sentence on int8."""
CALIBRATION_VERSION, LARGEST = 1, 1e50
"""LARGEST bounds the numbers of a calibration, so that all that is computed from them is finite."""
FEATURES = ("mean_log_probability", "least_log_probability", "mean_entropy", "log_length_ratio", "log_source_length")
"""The features that confidence is computed from: the mean and the least log-probability of the translation's tokens,
the mean entropy of the model's predictions in their places, the tokens of the translation for each of the source's, and
those of the source."""

Score = Annotated[float, Field(ge=0, le=100)]
PValue = Annotated[float, Field(ge=0, le=1)]
Info = TypeVar("Info", bound="ModelInfo")


@with_config(STRICT)
@dataclass(frozen=True)
class Aligner:
    """The attention that aligns target with source tokens; by default the mean of all layers and heads."""

    layer: NonNegativeInt | None = None
    """Layer of the decoder; None: the mean of all."""
    head: NonNegativeInt | None = None
    """Head of the layer; None: the mean of all."""
    shifted: bool = False
    """Whether a target token is aligned by the step that reads it, not by the step before, which gives it."""
    eos_is_nothing: bool = False
    """Whether a target token that looks at <eos> most is aligned with nothing. Otherwise <eos> is left out."""

    def __str__(self) -> str:
        heads = "the mean of its heads" if self.head is None else f"head {self.head}"
        where = "the mean of all layers and heads" if self.layer is None else f"layer {self.layer}, {heads}"
        when = "the step that reads a token" if self.shifted else "the step that gives a token"
        return f"{where}, in {when}" + ("; attention to <eos> doesn't count" if self.eos_is_nothing else "")


@with_config(STRICT)
@dataclass(frozen=True)
class Int8Check:
    """Scores of CTranslate2's translations of the same text in fp32 and in int8, by the model's own search options."""

    pairs: Annotated[int, Field(ge=1, le=2**53)]
    fp32_bleu: Score
    int8_bleu: Score
    bleu_p_value: PValue
    """Probability that chance alone makes a difference as large, by a paired bootstrap."""
    fp32_chrf: Score
    int8_chrf: Score
    chrf_p_value: PValue

    @property
    def accepted(self) -> bool:
        """Whether int8 is certainly worse by neither score, or loses a negligible amount of BLEU."""
        bleu, chrf = self.int8_bleu - self.fp32_bleu, self.int8_chrf - self.fp32_chrf
        is_worse = (bleu < 0 and self.bleu_p_value < SURE) or (chrf < 0 and self.chrf_p_value < SURE)
        return not is_worse or bleu > -NEGLIGIBLE

    def __str__(self) -> str:
        return (
            f"{INT8_OPENING}it translates {'as well as' if self.accepted else 'worse than'} in fp32: BLEU "
            f"{self.int8_bleu:.2f} and {self.fp32_bleu:.2f} (p = {self.bleu_p_value:.2f}), chrF {self.int8_chrf:.2f} "
            f"and {self.fp32_chrf:.2f} (p = {self.chrf_p_value:.2f}), over {self.pairs:,} validation pairs."
        )


@with_config(STRICT)
@dataclass(frozen=True)
class Calibration:
    """A logistic regression on the features of a translation, and the domain of the sources that it was fitted on."""

    weights: tuple[float, ...]
    """One for each of FEATURES."""
    bias: float
    domain: Domain

    def document(self) -> dict[str, Any]:
        """The object in calibration.json."""
        domain = {name: getattr(self.domain, name) for name in ("mean", "precision", "farthest")}
        domain["counts"] = dict(sorted(self.domain.counts.items()))
        weights = dict(zip(FEATURES, self.weights, strict=True))
        return {"format_version": CALIBRATION_VERSION, "weights": weights, "bias": self.bias, "domain": domain}


def parse_calibration(data: bytes, file: Path, vocab_size: int) -> Calibration:
    """Reads the calibration of a model with this source vocabulary. Raises UserError."""
    document = parse_json(data, file)
    check_version(document.pop("format_version", None), CALIBRATION_VERSION, file)
    weights, domain = document.get("weights"), document.get("domain")
    if not isinstance(weights, dict) or weights.keys() != set(FEATURES):
        raise UserError(f"{file}: weights must be of {', '.join(FEATURES)}")
    document["weights"] = [weights[name] for name in FEATURES]
    if isinstance(domain, dict):
        domain["vocab_size"] = vocab_size
    found = parse_record(Calibration, document, file)
    if found.domain.farthest <= 1 / LARGEST:
        raise UserError(f"{file}: domain.farthest must be above 0")
    if max(map(abs, (*found.weights, found.bias, *found.domain.mean, *found.domain.precision))) > LARGEST:
        raise UserError(f"{file}: has a number beyond {LARGEST:g}")
    if not all(0 <= id_ < vocab_size and 0 < count < 2**53 for id_, count in found.domain.counts.items()):
        raise UserError(f"{file}: domain.counts must be whole numbers of tokens in the vocabulary")
    return found


@dataclass(kw_only=True)
class ModelInfo:
    """All that a model directory holds beside the weights and their config."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    source_language: str
    target_language: str
    decoding: dict[str, Any] = field(default_factory=dict)
    """Default search options."""
    card: str = ""
    """The text of README.md."""
    domain: str = ""
    """The subject of its training text, in a few words; empty if unknown."""
    training_flops: float | None = None
    """The work of the matrix products of all its training; None if unknown."""
    name: str = ""
    """Name of the folder that it was read from."""
    shortlist: Shortlist | None = None
    """The target tokens that a translation of a source may have; None: any."""
    aligner: Aligner | None = None
    """The attention that aligns words best; None if it wasn't looked for."""
    calibration: Calibration | None = None
    """Gives the probability that a translation is acceptable; None if the model isn't calibrated."""
    int8: Int8Check | None = None
    """The loss of quality in int8; None if it wasn't measured. `with_int8` sets it."""

    @property
    def example_tag(self) -> str:
        """A tag that chooses one of several target languages, for a message: `>>ko<<`, with many source languages
        `>>en:ko<<`."""
        first, *_, last = [*self.source_tokenizer.target_tags[:1], *self.source_tokenizer.target_tags]
        return language_tag(f"{self.source_language}:{last}" if self.source_tokenizer.many_sources else first)


def with_int8(info: Info, check: Int8Check | None) -> Info:
    """The model with the comparison, in its card, too. None removes it, for a model that has changed since then."""
    card = "\n".join(line for line in info.card.split("\n") if not line.startswith(INT8_OPENING))
    return replace(info, int8=check, card=card if check is None else f"{card.rstrip()}\n\n{check}\n")
