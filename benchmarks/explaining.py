"""How much is each explanation of a translation worth: does it find the words that are known to belong together, and
does the model lose what it names?

    python benchmarks/explaining.py headway-demo/run headway-demo/data/test.en headway-demo/data/test.ko \
        --alignments headway-demo/data/test.align [--sentences 200] [--json FILE]

For each method the alignment error rate of its largest source token, where alignments are known, and the area below its
deletion curve. Then where attention looks beside what erasure needs; the source's share of the contributions with the
right translation and with that of another sentence; and the seconds that each analysis takes. Translations are the
references.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import versions
from numpy.typing import NDArray

from headway.evaluation import alignment_error_rate, parse_pharaoh
from headway.glass import ShownRecord
from headway.insight.analyses import NAMES, AskHeadImportance, AskPatching
from headway.insight.analyses.erasure import needed
from headway.text.corpus import read_lines
from headway.text.tokenizer import Piece
from headway.translator import Translator
from headway.translator.alignments import word_links

METHODS = ("attention", "contributions", "erasure", "contrast_erasure", "contrast_gradient_x_input")
Alignment = list[int | None]


def attributions(record: ShownRecord) -> dict[str, NDArray[np.float32]]:
    """(target, source) each."""
    found = record.analyses
    assert found.contributions and found.erasure and found.contrast
    matrices = (
        record.attention["cross"].mean(axis=(0, 1)),
        found.contributions.source,
        found.erasure.effect,
        found.contrast.erasure,
        found.contrast.gradient_x_input,
    )
    return dict(zip(METHODS, matrices, strict=True))


def alignments(record: ShownRecord) -> dict[str, Alignment]:
    """For each token of the translation, without <eos>, the source token that a method names. `, or nothing`: none
    where a share is largest at <eos>, or where erasing costs too little to be a need."""
    found: dict[str, Alignment] = {}
    for name, matrix in attributions(record).items():
        rows, end = matrix[:-1], matrix.shape[1] - 1
        found[name] = rows[:, :-1].argmax(axis=1).tolist()
        if "erasure" in name:
            found[f"{name}, or nothing"] = needed(rows)
        else:
            best = rows.argmax(axis=1)
            found[f"{name}, or nothing"] = [None if place == end else int(place) for place in best]
    return found


def links(record: ShownRecord, alignment: Alignment) -> list[tuple[int, int]]:
    """Between words."""
    sides = [
        [Piece(token.piece, token.start, token.end) for token in text.tokens[:-1]]
        for text in (record.source, record.target)
    ]
    return word_links(record.source.text, sides[0], record.target.text, sides[1], alignment)


def qualities(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], known: Sequence[str] | None
) -> dict[str, dict[str, float]]:
    """Of each method the alignment error rate, where alignments are known, and the areas below deletion curves."""
    found_links: dict[str, list[list[tuple[int, int]]]] = defaultdict(list)
    areas: dict[str, list[tuple[float, float]]] = defaultdict(list)
    looks: dict[str, Counter[str]] = defaultdict(Counter)
    wanted = ["contributions", "erasure", "contrast", "faithfulness"]
    for source, target in zip(sources, targets, strict=True):
        record = translator.inspect(source, target, analyses=wanted)
        found = alignments(record)
        for name, alignment in found.items():
            found_links[name].append(links(record, alignment))
        faithful = record.analyses.faithfulness
        assert faithful
        for name, area in faithful.probability.areas.items():
            areas[name].append((area, faithful.against_foil.areas[name]))
        needs = found["erasure, or nothing"]
        for piece, place, need in zip(record.target.pieces, found["attention"], needs, strict=False):
            looks["nothing needed" if need is None else "same" if need == place else "another"][piece] += 1
    found_links["the model's aligner"] = translator.align(sources, targets)
    sure = None if known is None else [parse_pharaoh(line) for line in known]
    report: dict[str, dict[str, float]] = {}
    for name in (*found_links, "random"):
        row: dict[str, float] = {}
        if sure is not None and name in found_links:
            row["alignment error rate"] = alignment_error_rate(found_links[name], sure)
        if name in areas:
            row["area"], row["area against foil"] = (float(one) for one in np.mean(areas[name], axis=0))
        report[name] = row
        print(f"{name:40}" + "".join(f"  {what} {value:.3f}" for what, value in row.items()))
    every = sum(sum(counter.values()) for counter in looks.values())
    for kind, counter in looks.items():
        most = ", ".join(f"{piece} {count}" for piece, count in counter.most_common(8))
        report[f"what it needs: {kind}"] = {"share of tokens": sum(counter.values()) / every}
        print(f"what erasure needs, {kind} as attention looks at: {sum(counter.values()) / every:.1%} ({most})")
    return report


def source_shares(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """With each sentence's translation, and with that of the sentence before it."""
    shares: dict[str, list[float]] = {"right": [], "another sentence's": []}
    for number, source in enumerate(sources):
        for name, target in zip(shares, (targets[number], targets[number - 1]), strict=True):
            found = translator.inspect(source, target, analyses=["contributions"]).analyses.contributions
            assert found
            shares[name].append(float(np.mean(found.source_share)))
    right, other = (np.array(one) for one in shares.values())
    told = float(np.mean(right[:, None] > other[None]) + np.mean(right[:, None] == other[None]) / 2)
    found = {"right": float(right.mean()), "another sentence's": float(other.mean()), "told apart": told}
    found["lowest of right"] = float(right.min())
    print("source's share, " + ", ".join(f"{name} {value:.3f}" for name, value in found.items()))
    return found


def seconds(translator: Translator, sources: Sequence[str], targets: Sequence[str], other: str) -> dict[str, float]:
    """Of each analysis of the first sentence, less those of a record without."""
    pairs = list(zip(sources, targets, strict=True))[:100]
    asked: dict[str, Any] = {"head_importance": AskHeadImportance(pairs=pairs), "patching": AskPatching(other=other)}
    times = {}
    for name in ("record", *NAMES):
        wanted = [] if name == "record" else [asked.get(name, name)]
        start = time.perf_counter()
        translator.inspect(sources[0], targets[0], analyses=wanted)
        times[name] = time.perf_counter() - start
    print("seconds: " + ", ".join(f"{name} {value:.2f}" for name, value in times.items()))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--alignments", type=Path, help="in Pharaoh format, line for line")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    translator = Translator.load(options.model, device="cpu")
    files = [options.source, options.target, *([options.alignments] if options.alignments else [])]
    sources, targets, *known = (list(islice(read_lines(file), options.sentences)) for file in files)
    found = {"versions": versions(), "sentences": len(sources)}
    found["methods"] = qualities(translator, sources, targets, known[0] if known else None)
    found["source_share"] = source_shares(translator, sources, targets)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
