"""Translation scores on text, all of them sacreBLEU's own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric, Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from headway.errors import UserError
from headway.evaluation.metrics import Measured
from headway.languages import script_family

RESAMPLES = 1000
_TOKENIZATIONS = {
    **dict.fromkeys(("Bopo", "Hani", "Hans", "Hant"), "zh"),
    **dict.fromkeys(("Jpan", "Khmr", "Lana", "Laoo", "Mymr", "Tale", "Talu", "Thai", "Tibt"), "char"),
}
"""sacreBLEU's tokenisers for scripts without spaces between words; for others it is `13a`."""
ORDER = 6
"""The longest n-grams of characters that chrF counts."""
BETA = 2
"""How much more recall counts than precision."""

Link = tuple[int, int]
"""Number of the source word, number of the target word, from 0."""


@dataclass(frozen=True)
class Scores:
    """Corpus scores with the signatures that make them comparable: BLEU and chrF from 0 to 100, more is better; TER in
    edits a hundred reference words, less is better."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str
    ter: float | None = None
    """None where it wasn't asked for: it takes longer than the others together."""
    ter_signature: str | None = None


@dataclass(frozen=True)
class Comparison:
    """One score of two systems, by paired bootstrap resampling (Koehn, 2004)."""

    metric: str
    score: float
    other: float
    p_value: float | None
    """How likely chance alone makes a difference as large; below 0.05 is commonly called significant. None for a metric
    that gives no scores of lines to draw from."""
    signature: str


def check_tokenize(tokenize: str) -> None:
    """Raises UserError for a tokenisation that sacreBLEU doesn't have, or that lacks a package of its own."""
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"tokenisation {tokenize!r} is unknown to sacreBLEU; it has {', '.join(BLEU.TOKENIZERS)}")
    try:
        BLEU(tokenize=tokenize)
    except Exception as error:
        raise UserError(f"tokenisation {tokenize!r} can't be used: {' '.join(str(error).split())}") from None


def tokenization(*languages: str, tokenized: bool = False) -> str:
    """sacreBLEU's tokenisation for text of a language, or of several; `tokenized`: the text is words with spaces
    already."""
    if tokenized:
        return "none"
    found = [_TOKENIZATIONS.get(script_family(language), "13a") for language in languages]
    return max(found, key=["13a", "zh", "char"].index)  # the finest that one of them needs


def score_translations(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a", *, with_ter: bool = False
) -> Scores:
    """Scores of detokenised text, one reference a line. `tokenize` is sacreBLEU's, of BLEU alone; "none" for text that
    is tokenised already."""
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


def score_margins(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> tuple[float, float]:
    """Half the width of the 95% intervals of BLEU and chrF, by bootstrap resampling of the lines (Koehn, 2004)."""
    bleu, chrf = (
        metric.corpus_score(hypotheses, [references], n_bootstrap=RESAMPLES)._ci
        for metric in (BLEU(tokenize=tokenize, force=True), CHRF())
    )
    return bleu, chrf


def sentence_bleu(hypothesis: str, reference: str, tokenize: str = "13a") -> float:
    """BLEU of one sentence, 0 to 100: smoothed, over the n-grams that it has."""
    return BLEU(tokenize=tokenize, effective_order=True).sentence_score(hypothesis, [reference]).score


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF of one sentence, 0 to 100."""
    return CHRF().sentence_score(hypothesis, [reference]).score


def compare_translations(
    hypotheses: Sequence[str], others: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> list[Comparison]:
    """BLEU and chrF of two systems on the same references, and whether they differ by more than chance."""
    metrics = {"BLEU": BLEU(tokenize=tokenize, force=True), "chrF": CHRF()}
    return _bootstrapped(metrics, hypotheses, others, references)


def compare_measured(ours: Measured, other: Measured) -> Comparison:
    """The same of another metric, by its scores of the lines."""
    if ours.line_scores is None or other.line_scores is None:
        return Comparison(ours.metric, ours.score, other.score, None, "")
    lines, other_lines = (list(map(repr, one)) for one in (ours.line_scores, other.line_scores))
    [comparison] = _bootstrapped({ours.metric: _MeanOfLines()}, lines, other_lines, [""] * len(lines))
    return comparison


def _bootstrapped(
    metrics: Mapping[str, Metric], hypotheses: Sequence[str], others: Sequence[str], references: Sequence[str]
) -> list[Comparison]:
    """Each of the metrics by sacreBLEU's bootstrap, which draws the same lines for all of them."""
    systems: list[tuple[str, Sequence[str]]] = [("ours", hypotheses), ("other", others)]
    signatures, results = PairedTest(systems, metrics, [references], test_type="bs", n_samples=RESAMPLES)()
    comparisons = []
    for metric, (name, signature) in zip(metrics, signatures.items(), strict=True):
        ours, other = results[name]
        assert isinstance(ours, Result)
        assert isinstance(other, Result)
        assert other.p_value is not None
        p_value = 1.0 if ours.score == other.score else other.p_value  # sacreBLEU's is 1 / 1001 if no sample differs
        comparisons.append(Comparison(metric, ours.score, other.score, p_value, str(signature)))
    return comparisons


class _MeanOfLines(Metric):
    """The mean of scores of lines, which stand as text in place of the hypotheses: so sacreBLEU's bootstrap serves
    metrics that it doesn't have."""

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        return [float(hypothesis), 1.0]

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        return Score("mean", stats[0] / stats[1])

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


def chrf_between(texts: Sequence[str]) -> NDArray[np.float64]:
    """(texts, texts): row i, column j has the chrF (Popović 2015) of text i with text j as the reference, 0 to 100.
    Equal to sacreBLEU's of single sentences, which would take apart each text once for each other one."""
    characters = ["".join(text.split()) for text in texts]
    precision, recall, orders = np.zeros((3, len(texts), len(texts)))
    for order in range(1, ORDER + 1):
        counts = _counts(characters, order)
        totals = counts.sum(axis=1)  # (texts,)
        matches = np.array([np.minimum(one, counts).sum(axis=1) for one in counts])  # (texts, texts)
        both = (totals[:, None] > 0) & (totals > 0)
        precision += np.divide(matches, totals[:, None], out=np.zeros(both.shape), where=both)
        recall += np.divide(matches, totals, out=np.zeros(both.shape), where=both)
        orders += both
    precision, recall = (np.divide(sums, orders, out=sums, where=orders > 0) for sums in (precision, recall))
    weighted = BETA**2 * precision + recall
    scores = (1 + BETA**2) * precision * recall
    return 100 * np.divide(scores, weighted, out=np.zeros_like(scores), where=weighted > 0)


def _counts(texts: Sequence[str], order: int) -> NDArray[np.int32]:
    """How often each text has each n-gram of any of them: (texts, n-grams)"""
    columns: dict[str, int] = {}
    grams = [
        [columns.setdefault(text[start : start + order], len(columns)) for start in range(len(text) - order + 1)]
        for text in texts
    ]
    counts = np.zeros((len(texts), len(columns)), dtype=np.int32)
    for row, of_text in zip(counts, grams, strict=True):
        np.add.at(row, of_text, 1)
    return counts


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
