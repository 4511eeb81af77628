"""How fast do we translate, against CTranslate2 with the same weights?

    python benchmarks/translating_peers.py MODEL SOURCE [--sentences 1000] [--rounds 3] [--json FILE]

Alternating rounds in one run, medians; sentences a second with all sentences at once, and milliseconds for one sentence
alone, greedy and with a beam of 5; tokenisation counts for both. The lines that are equal to ours in fp32 are counted
(CTranslate2's length penalty is another, so both beams go without one).
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import torch

from headway.interop.ctranslate2 import export_ctranslate2
from headway.storage import load_model
from headway.text.corpus import read_lines
from headway.translator import Translator

Translate = Callable[[list[str], int], list[str]]
ALONE = 30
"""Sentences that are translated one by one."""


def ours(model: Path, precision: str) -> Translate:
    translator = Translator.load(model, device="cpu", precision=precision)  # type: ignore[arg-type]

    def translate(texts: list[str], beam_size: int) -> list[str]:
        return [one.text for one in translator.translate(texts, beam_size=beam_size, length_penalty=0.0)]

    return translate


def theirs(model: Path, compute_type: str, workers: int, threads: int) -> Translate:
    stored = load_model(model)
    folder = Path(tempfile.mkdtemp()) / "model"
    export_ctranslate2(stored, folder)
    engine = ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=workers, intra_threads=threads
    )
    source, target = stored.source_tokenizer, stored.target_tokenizer
    pieces = source.vocabulary
    ids = {piece: id_ for id_, piece in enumerate(target.vocabulary)}

    def translate(texts: list[str], beam_size: int) -> list[str]:
        sources = [[*(pieces[id_] for id_ in source.encode(text)), pieces[3]] for text in texts]
        results = engine.translate_batch(
            sources, beam_size=beam_size, length_penalty=0.0, max_batch_size=64, max_decoding_length=100
        )
        return [target.decode([ids[piece] for piece in result.hypotheses[0]]) for result in results]

    return translate


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = list(read_lines(options.source))[: options.sentences]
    cores = torch.get_num_threads()
    engines = {
        "headway fp32": ours(options.model, "fp32"),
        "headway bf16": ours(options.model, "bf16"),
        f"CTranslate2 fp32, {cores} x 1": theirs(options.model, "float32", cores, 1),
        f"CTranslate2 fp32, 1 x {cores}": theirs(options.model, "float32", 1, cores),
        f"CTranslate2 int8, {cores} x 1": theirs(options.model, "int8", cores, 1),
    }
    table = []
    for beam_size in (1, 5):
        speeds: dict[str, list[float]] = {name: [] for name in engines}
        alone: dict[str, list[float]] = {name: [] for name in engines}
        found: dict[str, list[str]] = {}
        for _ in range(options.rounds):
            for name, translate in engines.items():
                translate(texts[:64], beam_size)  # warms up
                start = time.perf_counter()
                found[name] = translate(texts, beam_size)
                speeds[name].append(len(texts) / (time.perf_counter() - start))
                for text in texts[:ALONE]:
                    start = time.perf_counter()
                    translate([text], beam_size)
                    alone[name].append(1000 * (time.perf_counter() - start))
        reference, first = found["headway fp32"], statistics.median(speeds["headway fp32"])
        for name in engines:
            speed = statistics.median(speeds[name])
            row = {
                "engine": name,
                "beam_size": beam_size,
                "sentences_per_second": speed,
                "ratio_to_headway_fp32": speed / first,
                "one_sentence_ms": statistics.median(alone[name]),
                "equal_lines": sum(a == b for a, b in zip(reference, found[name], strict=True)),
            }
            table.append(row)
            print(
                f"{name:<24} beam {beam_size}  {speed:7.0f} sentences/s  {row['ratio_to_headway_fp32']:5.2f}  "
                f"one {row['one_sentence_ms']:6.1f} ms  equal {row['equal_lines']} of {len(texts)}",
                flush=True,
            )
    versions = {"torch": torch.__version__, "ctranslate2": ctranslate2.__version__, "threads": cores}
    print(versions)
    if options.json:
        options.json.write_text(json.dumps({"versions": versions, "rows": table}, indent=2))


if __name__ == "__main__":
    main()
