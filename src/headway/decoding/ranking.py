"""The ranking of translations: GNMT's length penalty (section 6.1)."""

from collections.abc import Iterable

from headway.decoding.searcher import Hypothesis


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6) ** alpha, GNMT's (Wu et al., 2016, equation 14): a hypothesis is ranked by its score
    divided by this. |Y| counts <eos>."""
    return ((5.0 + length) / 6.0) ** alpha


def normalized_score(hypothesis: Hypothesis, alpha: float) -> float:
    """The score divided by the length penalty."""
    return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)


def ranked(finished: Iterable[Hypothesis], beam_size: int, alpha: float) -> list[Hypothesis]:
    """The `beam_size` likeliest, best first by their normalised scores. CTranslate2 knows no others."""
    likeliest = sorted(finished, key=lambda one: one.score, reverse=True)[:beam_size]
    return sorted(likeliest, key=lambda one: normalized_score(one, alpha), reverse=True)
