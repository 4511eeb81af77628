"""Translation scores on text, all of them sacreBLEU's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from headway.errors import UserError


@dataclass(frozen=True)
class Scores:
    """Corpus scores from 0 to 100, with the signatures that make them comparable."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def check_tokenize(tokenize: str) -> None:
    """Raises UserError for a tokenisation that sacreBLEU doesn't have, or that lacks a package of its own."""
    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"tokenisation {tokenize!r} is unknown to sacreBLEU; it has {', '.join(BLEU.TOKENIZERS)}")
    try:
        BLEU(tokenize=tokenize)
    except Exception as error:
        raise UserError(f"tokenisation {tokenize!r} can't be used: {' '.join(str(error).split())}") from None


def score_translations(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> Scores:
    """BLEU and chrF of detokenised text, one reference a line. `tokenize` is sacreBLEU's, "none" for text that is
    tokenised already."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} references")
    bleu, chrf = BLEU(tokenize=tokenize, force=True), CHRF()
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )
