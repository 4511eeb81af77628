"""How much is each explanation of a translation worth: does it find the words that are known to belong together, and
does the model lose what it names?

    python benchmarks/explaining.py headway-demo/run headway-demo/data/test.en headway-demo/data/test.ko \
        --alignments headway-demo/data/test.align [--sentences 200] [--json FILE]

For each method the alignment error rate of its largest source token, where alignments are known, and the area below its
deletion curve; translations are the references. Then where attention looks beside what erasure needs. Then warnings of
hallucination, for the model's own translations of the sentences, and of the same with their letters shuffled: the
source's share of the contributions, the gain from the source, and the log-probability a token. Then the seconds that
each analysis takes.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attributions import integrated_gradients, value_zeroing
from headway.bench.machine import versions
from headway.data.corpus import read_lines
from headway.errors import UserError
from headway.evaluation import alignment_error_rate, parse_pharaoh
from headway.insight.analyses import NAMES
from headway.insight.analyses.analysis import MOST_PAIRS
from headway.insight.analyses.erasure import DETACHED, needed
from headway.insight.analyses.faithfulness import faithfulness
from headway.insight.analyses.head_importance import AskHeadImportance
from headway.insight.analyses.patching import AskPatching
from headway.insight.analyses.reading import Reading
from headway.insight.maps import Floats
from headway.page import ShownRecord
from headway.text.tokenizer import Piece
from headway.translator import Translator
from headway.translator.aligning import word_links

Alignment = list[int | None]


def attributions(translator: Translator, record: ShownRecord, reading: Reading) -> dict[str, Floats]:
    """(target, source) each."""
    found, model, given = record.analyses, translator.model, reading.given
    assert found.contributions is not None
    assert found.erasure is not None
    assert found.contrast is not None
    foils = found.contrast.foils

    def score(logits: Tensor, step: int) -> Tensor:
        return logits.log_softmax(dim=-1)[:, given[step]]

    def difference(logits: Tensor, step: int) -> Tensor:
        return logits[:, given[step]] - logits[:, foils[step]]

    return {
        "attention": record.attention["cross"].mean(axis=(0, 1)),
        "contributions": found.contributions.source,
        "erasure": found.erasure.effect,
        "contrast_erasure": found.contrast.erasure,
        "value zeroing": value_zeroing(model, reading),
        "integrated gradients": integrated_gradients(model, reading, score),
        "contrast, integrated gradients": integrated_gradients(model, reading, difference),
    }


def alignments(matrices: Mapping[str, Floats]) -> dict[str, Alignment]:
    """For each token of the translation, without <eos>, the source token that a method names. `, or nothing`: none
    where a share is largest at <eos>, or where erasing costs too little to be a need."""
    found: dict[str, Alignment] = {}
    for name, matrix in matrices.items():
        rows, end = matrix[:-1], matrix.shape[1] - 1
        found[name] = rows[:, :-1].argmax(axis=1).tolist()
        if "erasure" in name or "gradients" in name:
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
    wanted: list[str] = ["contributions", "erasure", "contrast"]
    for source, target in zip(sources, targets, strict=True):
        record = translator.inspect(source, target, analyses=wanted)
        reading = Reading.of(translator.model, record.source.ids, record.target.ids)
        matrices = attributions(translator, record, reading)
        found = alignments(matrices)
        for name, alignment in found.items():
            found_links[name].append(links(record, alignment))
        assert record.analyses.contrast is not None
        faithful = faithfulness(translator.model, reading, matrices, record.analyses.contrast.foils)
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


def warnings(translator: Translator, sources: Sequence[str]) -> dict[str, dict[str, float]]:
    """Of each measure its mean for translations of sentences and of nonsense, and how often the nonsense has less."""
    measures: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in ("source's share", "gain", "log-probability")
    }
    shuffle = random.Random(1).shuffle
    for source in sources:
        letters = list(source)
        shuffle(letters)
        for kind, text in enumerate((source, "".join(letters).strip())):
            record = translator.inspect(text, beam_size=1, analyses=["contributions", "erasure"])
            contributions, erasure = record.analyses.contributions, record.analyses.erasure
            assert contributions is not None
            assert erasure is not None
            shares = contributions.source_share
            values = np.mean(shares[:-1] or shares), erasure.mean_gain, record.score / len(record.steps)
            for (_, found), value in zip(measures.items(), values, strict=True):
                found[kind].append(float(value))
    report = {}
    for name, (right, nonsense) in measures.items():
        one, other = np.array(right), np.array(nonsense)
        told = float(np.mean(one[:, None] > other[None]) + np.mean(one[:, None] == other[None]) / 2)
        report[name] = {"sentences": float(one.mean()), "nonsense": float(other.mean()), "told apart": told}
        if name == "gain":
            report[name]["warned of sentences"] = float(np.mean(one < DETACHED))
            report[name]["warned of nonsense"] = float(np.mean(other < DETACHED))
        print(f"{name:16}" + "".join(f"  {what} {value:.3f}" for what, value in report[name].items()))
    return report


def seconds(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """Of a record of the sentence of middle length, and of each analysis beside it; the least of three, but for the
    importance of heads. Patching is from the first other sentence that allows it, if any."""
    middle = sorted(range(len(sources)), key=lambda number: len(sources[number]))[len(sources) // 2]
    pairs = list(zip(sources, targets, strict=True))[:MOST_PAIRS]
    asked: dict[str, Any] = {name: name for name in NAMES if name != "patching"}
    asked["head_importance"] = AskHeadImportance(pairs=pairs)
    others = (one for one in sources if _is_patched(translator, sources[middle], targets[middle], one))
    if (other := next(others, None)) is not None:
        asked["patching"] = AskPatching(other=other)
    times: dict[str, float] = {}
    for name in ("record", *asked):
        analyses = [] if name == "record" else [asked[name]]
        rounds = []
        for _ in range(1 if name == "head_importance" else 3):
            start = time.perf_counter()
            translator.inspect(sources[middle], targets[middle], analyses=analyses)
            rounds.append(time.perf_counter() - start)
        times[name] = min(rounds) - times.get("record", 0.0)
    record = translator.inspect(sources[middle], targets[middle])
    tokens = len(record.source.tokens), len(record.target.tokens)
    told = ", ".join(f"{name} {value:.2f}" for name, value in times.items())
    print(f"seconds, {tokens[0]} source and {tokens[1]} target tokens: {told}")
    return times


def _is_patched(translator: Translator, source: str, target: str, other: str) -> bool:
    try:
        translator.inspect(source, target, analyses=[AskPatching(other=other)])
    except UserError:
        return False
    return True


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
    found: dict[str, Any] = {"versions": versions(), "sentences": len(sources)}
    found["methods"] = qualities(translator, sources, targets, known[0] if known else None)
    found["warnings"] = warnings(translator, sources)
    found["seconds"] = seconds(translator, sources, targets)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
