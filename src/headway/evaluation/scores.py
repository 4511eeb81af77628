"""Translation scores on text, all of them sacreBLEU's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from headway.errors import UserError

RESAMPLES = 1000


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
    p_value: float
    """How likely chance alone makes a difference as large; below 0.05 is commonly called significant."""
    signature: str


def check_tokenize(tokenize: str) -> None:
    """Raises UserError for a tokenisation that sacreBLEU doesn't have, or that lacks a package of its own."""
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"tokenisation {tokenize!r} is unknown to sacreBLEU; it has {', '.join(BLEU.TOKENIZERS)}")
    try:
        BLEU(tokenize=tokenize)
    except Exception as error:
        raise UserError(f"tokenisation {tokenize!r} can't be used: {' '.join(str(error).split())}") from None


def tokenization(language: str, *, tokenized: bool = False) -> str:
    """sacreBLEU's tokenisation for text of a language; `tokenized`: the text is words with spaces already."""
    return "none" if tokenized else {"zh": "zh", "ja": "char"}.get(language, "13a")


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


def compare_translations(
    hypotheses: Sequence[str], others: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> list[Comparison]:
    """BLEU and chrF of two systems on the same references, and whether they differ by more than chance."""
    systems: list[tuple[str, Sequence[str]]] = [("ours", hypotheses), ("other", others)]
    metrics = {"BLEU": BLEU(tokenize=tokenize, force=True), "chrF": CHRF()}
    signatures, results = PairedTest(systems, metrics, [references], test_type="bs", n_samples=RESAMPLES)()
    comparisons = []
    for metric, (name, signature) in zip(metrics, signatures.items(), strict=True):
        ours, other = results[name]
        assert isinstance(ours, Result)
        assert isinstance(other, Result)
        assert other.p_value is not None
        p_value = 1.0 if list(hypotheses) == list(others) else other.p_value  # sacreBLEU's is 1 / 1001 for equal texts
        comparisons.append(Comparison(metric, ours.score, other.score, p_value, str(signature)))
    return comparisons
