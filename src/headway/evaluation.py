"""Scores of translations: sacreBLEU's BLEU, chrF and TER, metrics of the user's own, alignment errors."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result, _bootstrap_resample, estimate_ci

from headway.errors import UserError
from headway.languages import script_family
from headway.lazy import described_error, load_named

RESAMPLES = 1000
_TOKENIZATIONS = {
    **dict.fromkeys(("Bopo", "Hani", "Hans", "Hant"), "zh"),
    **dict.fromkeys(("Jpan", "Khmr", "Lana", "Laoo", "Mymr", "Tale", "Talu", "Thai", "Tibt"), "char"),
}
"""sacreBLEU's tokenisers for scripts without spaces between words; for others it is `13a`."""

Link = tuple[int, int]
"""Number of the source word, number of the target word, from 0."""
T = TypeVar("T")


@dataclass(frozen=True)
class Scores:
    """Corpus scores with the signatures that make them comparable: BLEU and chrF from 0 to 100, more is better; TER in
    edits per hundred reference words, less is better. TER is None unless asked for: it takes longest."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    ter: float | None = None
    ter_signature: str | None = None


@dataclass(frozen=True)
class Comparison:
    """One score of two systems, by paired bootstrap resampling (Koehn, 2004)."""

    metric: str
    score: float
    other: float
    p_value: float | None
    """Probability that chance alone makes a difference as large. None for a metric that gives no scores of lines."""
    signature: str


@dataclass(frozen=True)
class Measured:
    """Scores of a test set's translations by a metric."""

    metric: str
    score: float
    """Score of all lines; their mean if each line has a score."""
    line_scores: tuple[float, ...] | None


@dataclass(frozen=True)
class NamedMetric:
    """A metric and the name that it was loaded by."""

    name: str
    function: Callable[[list[str], list[str], list[str]], float | Sequence[float]]
    """Takes sources, translations and references, line for line. Returns one score, or a score for each line."""

    def measure(self, sources: Sequence[str], translations: Sequence[str], references: Sequence[str]) -> Measured:
        """Raises UserError where the function fails, or returns neither a finite number nor one for each line."""
        try:
            with redirect_stdout(sys.stderr):
                result: Any = self.function(list(sources), list(translations), list(references))
        except (Exception, SystemExit) as error:
            raise UserError(f"metric {self.name}: fails: {described_error(error)}") from None
        scores = _numbers(result)
        if scores is None or scores.shape not in ((), (len(sources),)):
            wanted = f"a number, or a list of {len(sources)} numbers, one for each line"
            raise UserError(f"metric {self.name}: returned {result!r:.100}; it must return {wanted}")
        if not np.isfinite(scores).all():
            place = "" if scores.ndim == 0 else f" for line {int(np.argmin(np.isfinite(scores))) + 1}"
            raise UserError(f"metric {self.name}: returned a score that is not finite{place}")
        return Measured(self.name, float(scores.mean()), tuple(scores.tolist()) if scores.ndim else None)


def load_metric(name: str) -> NamedMetric:
    """Imports a metric by its name, `module:function`, as `load_named` does. Raises UserError."""
    return NamedMetric(name, load_named(name, "metric", "function"))


def _numbers(result: Any) -> NDArray[np.float64] | None:
    """The result of a metric as numbers, or None for anything else."""
    try:
        if hasattr(result, "is_floating_point") and result.is_floating_point():  # a tensor, with gradients or without
            result = result.detach().cpu().double()
        array = np.asarray(result)
    except (ValueError, TypeError, RuntimeError):  # lists of several lengths, or of tensors that numpy doesn't take
        return None
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def check_tokenize(tokenize: str) -> None:
    """Raises UserError for a tokenisation that sacreBLEU doesn't have, or that lacks a package of its own."""
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"tokenisation {tokenize!r} is unknown to sacreBLEU; it has {', '.join(BLEU.TOKENIZERS)}")
    try:
        BLEU(tokenize=tokenize)
    except Exception as error:
        raise UserError(f"tokenisation {tokenize!r} can't be used: {' '.join(str(error).split())}") from None


def tokenization(*languages: str, tokenized: bool = False) -> str:
    """sacreBLEU's tokenisation for text in one language or several; none if the text is `tokenized` already."""
    if tokenized:
        return "none"
    found = [_TOKENIZATIONS.get(script_family(language), "13a") for language in languages]
    return max(found, key=["13a", "zh", "char"].index)  # the finest that one of them needs


def evenly(items: Sequence[T], count: int) -> list[T]:
    """At most `count` of the items, at even distances."""
    count = min(count, len(items))
    return [items[place * len(items) // count] for place in range(count)]


def score_translations(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a", *, with_ter: bool = False
) -> Scores:
    """Scores of detokenised text, one reference a line. tokenize: for BLEU; "none" if it is tokenised already."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references")
    bleu, chrf, ter = BLEU(tokenize=tokenize, force=True), CHRF(), TER()
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        ter=ter.corpus_score(hypotheses, [references]).score if with_ter else None,
        ter_signature=str(ter.get_signature()) if with_ter else None,
    )


def bootstrap_seed() -> str:
    """The seed of sacreBLEU's bootstrap, a number or `none`, as the environment may set it. Raises UserError."""
    seed = os.environ.get("SACREBLEU_SEED", "12345").lower()
    if seed != "none" and not seed.isdecimal():
        raise UserError(f"SACREBLEU_SEED={seed}: the environment must have a whole number there, or none")
    return seed


def score_margins(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> tuple[float, float]:
    """Half the width of the 95% intervals of BLEU and chrF, by bootstrap resampling of the lines (Koehn, 2004).
    Raises UserError."""
    bootstrap_seed()

    def margin(metric: Metric) -> float:
        lines = metric._extract_corpus_statistics(hypotheses, [references])
        _, resampled = _bootstrap_resample(lines, metric, RESAMPLES)
        return float(estimate_ci(np.array([one.score for one in resampled], dtype=np.float64))[1])

    return margin(BLEU(tokenize=tokenize, force=True)), margin(CHRF())


def sentence_bleu(hypothesis: str, reference: str, tokenize: str = "13a") -> float:
    """BLEU of one sentence, 0 to 100: smoothed, over the n-grams that it has."""
    return BLEU(tokenize=tokenize, effective_order=True).sentence_score(hypothesis, [reference]).score


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF of one sentence, 0 to 100."""
    return CHRF().sentence_score(hypothesis, [reference]).score


def compare_translations(
    hypotheses: Sequence[str], others: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> list[Comparison]:
    """BLEU and chrF of two systems on the same references, and whether they differ by more than chance. Raises
    UserError."""
    bootstrap_seed()
    metrics = {"BLEU": BLEU(tokenize=tokenize, force=True), "chrF": CHRF()}
    systems: list[tuple[str, Sequence[str]]] = [("system", hypotheses), ("other", others)]
    signatures, results = PairedTest(systems, metrics, [references], test_type="bs", n_samples=RESAMPLES)()
    comparisons = []
    for metric, (name, signature) in zip(metrics, signatures.items(), strict=True):
        system, other = results[name]
        assert isinstance(system, Result)
        assert isinstance(other, Result)
        assert other.p_value is not None
        p_value = 1.0 if system.score == other.score else other.p_value  # sacreBLEU's is 1 / 1001 if no sample differs
        comparisons.append(Comparison(metric, system.score, other.score, p_value, str(signature)))
    return comparisons


def compare_measured(system: Measured, other: Measured) -> Comparison:
    """Two systems by another metric, with sacreBLEU's bootstrap over the scores of lines. Raises UserError."""
    if system.line_scores is None or other.line_scores is None:
        return Comparison(system.metric, system.score, other.score, None, "")
    seed = bootstrap_seed()
    count = len(system.line_scores)
    drawn = np.random.default_rng(None if seed == "none" else int(seed)).choice(count, (RESAMPLES, count))
    lines = np.array(system.line_scores) - np.array(other.line_scores)
    differences = np.abs(lines[drawn].mean(axis=1))
    larger = int(np.sum(differences - differences.mean() > abs(lines.mean())))
    p_value = 1.0 if system.score == other.score else (larger + 1) / (RESAMPLES + 1)
    return Comparison(system.metric, system.score, other.score, p_value, f"bs:{RESAMPLES}|seed:{seed}")


def alignment_error_rate(
    found: Sequence[Iterable[Link]], sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]] | None = None
) -> float:
    """1 - (|A and S| + |A and P|) / (|A| + |S|) over all pairs together (Och and Ney 2003, "A Systematic Comparison of
    Various Statistical Alignment Models"), from 0 to 1; 0 where nothing is linked and nothing should be.

    found, sure, possible: the links of each pair. Sure links are possible, too. Raises ValueError for sequences of
    different length.
    """
    right = total = 0
    for links, wanted, allowed in zip(found, sure, sure if possible is None else possible, strict=True):
        a, s = set(links), set(wanted)
        right += len(a & s) + len(a & (s | set(allowed)))
        total += len(a) + len(s)
    return 1 - right / total if total else 0.0


def parse_pharaoh(line: str) -> list[Link]:
    """`0-0 1-2` -> [(0, 0), (1, 2)]. Raises UserError."""
    links = []
    for link in line.split():
        source, _, target = link.partition("-")
        if not (source.isdecimal() and target.isdecimal()):
            raise UserError(f"{link!r} is no link of an alignment; it must look like 0-2")
        links.append((int(source), int(target)))
    return links
