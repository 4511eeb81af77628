"""How good is a model's confidence on text that it wasn't calibrated on, and does it notice foreign text?

    python benchmarks/confidence.py MODEL --test test.de test.en [--outside NAME=FILE ...] [--noise] [--seed 7]

MODEL is a calibrated one. For the test set: the share of acceptable translations (sentence chrF of 60 or more), the
expected calibration error, the area under the ROC curve of the confidence and of the plain score for each token, and
the share of its sources that are flagged as out of domain, which are false alarms. For each other file, of which the
first 500 lines are taken, the share that is flagged. --noise adds the test set's sources with each kind of noise, and
with a typo in every word.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from headway.data.corpus import CorpusFiles, read_lines
from headway.data.noise import KINDS, perturbed
from headway.evaluation import sentence_chrf
from headway.text.characters import is_blank
from headway.translator import Translator
from headway.translator.confidence import ACCEPTABLE

LINES = 500
BINS = 10
"""Number of bins of equal width, from 0 to 1, by which calibration is measured."""


def expected_calibration_error(probabilities: Sequence[float], happened: Sequence[bool]) -> float:
    """The mean distance, over all cases, between the mean probability of a case's bin and the share of the bin's cases
    that happened (Naeini et al. 2015)."""
    predicted, outcomes = np.array(probabilities, dtype=np.float64), np.array(happened, dtype=np.float64)
    bins = np.minimum((predicted * BINS).astype(int), BINS - 1)
    excess = np.bincount(bins, predicted - outcomes, minlength=BINS)  # of each bin, summed over its cases
    return float(np.abs(excess).sum() / len(predicted))


def area_under_curve(scores: Sequence[float], happened: Sequence[bool]) -> float:
    """The area under the ROC curve: the probability that a case that happened has a higher score than one that didn't,
    equal scores counting half. Needs cases of both kinds."""
    _, places, counts = np.unique(np.array(scores), return_inverse=True, return_counts=True)
    outcomes = np.array(happened, dtype=bool)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # of each value, from 1; equal values share their mean
    positive, negative = int(outcomes.sum()), int((~outcomes).sum())
    return float(ranks[places][outcomes].sum() - positive * (positive + 1) / 2) / (positive * negative)


def measure(translator: Translator, sources: list[str], references: list[str]) -> None:
    start = time.process_time()
    plain = translator.translate(sources)
    seconds = time.process_time() - start
    start = time.process_time()
    translations = translator.translate(sources, confidence=True)
    overhead = (time.process_time() - start) / seconds - 1
    assert [one.text for one in plain] == [one.text for one in translations]
    known = [(one, reference) for one, reference in zip(translations, references, strict=True) if one.confidence]
    acceptable = [sentence_chrf(one.text, reference) >= ACCEPTABLE for one, reference in known]
    confidences = [one.confidence or 0.0 for one, _ in known]
    totals = [one.score or 0.0 for one, _ in known]
    scores = [total / (len(one.tokens) + 1) for total, (one, _) in zip(totals, known, strict=True)]
    alarms = sum(bool(one.out_of_domain) for one, _ in known)
    print(f"sentences                    {len(known)}")
    print(f"acceptable                   {sum(acceptable) / len(known):.1%}")
    print(f"expected calibration error   {expected_calibration_error(confidences, acceptable):.4f}")
    print(f"area under the curve         {area_under_curve(confidences, acceptable):.4f}")
    print(f"  of the score for each token {area_under_curve(scores, acceptable):.4f}")
    print(f"  of the whole score         {area_under_curve(totals, acceptable):.4f}")
    print(f"false alarms                 {alarms / len(known):.1%}")
    print(f"processor time more than without {overhead:.0%}")


def flagged(translator: Translator, texts: list[str]) -> float:
    """The share of the texts that are flagged."""
    calibration = translator.calibration()
    tokenizer = translator.stored.source_tokenizer
    return float((calibration.domain.distances(texts, [tokenizer.encode(text) for text in texts]) > 1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--test", nargs=2, type=Path, required=True, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--outside", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    translator = Translator.load(given.model)
    pairs = [pair for pair in CorpusFiles([given.test[0]], [given.test[1]]).pairs() if not is_blank(pair.source)]
    sources = [pair.source for pair in pairs]
    measure(translator, sources, [pair.target for pair in pairs])
    outside = {}
    for one in given.outside:
        name, _, file = one.partition("=")
        lines = (line for line in read_lines(Path(file)) if not is_blank(line))
        outside[name] = list(islice(lines, LINES))
    if given.noise:
        outside |= {kind: [perturbed(text, kind, given.seed) for text in sources[:LINES]] for kind in KINDS}
        outside["a typo in every word"] = [perturbed(text, "typos", given.seed, 1.0) for text in sources[:LINES]]
    print("\n| Source | flagged |\n|---|---|")
    for name, texts in outside.items():
        print(f"| {name} | {flagged(translator, texts):.1%} |")


if __name__ == "__main__":
    main()
