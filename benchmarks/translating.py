"""How fast do we translate?

    python benchmarks/translating.py MODEL SOURCE [--sentences 1000] [--rounds 3] [--only NAME ...] [--json FILE]

headway in fp32 and bf16 against the loop of a textbook, which runs the whole decoder for each token, and, where it is
installed, Hugging Face Transformers and CTranslate2 with the same weights, the latter called directly and as headway's
engine. Alternating rounds in one run, medians; sentences a second with all sentences at once, and milliseconds for one
sentence alone, greedy and with a beam of 5; tokenisation counts for all. The lines that are equal to the first
contender's, headway's in fp32, are counted. CTranslate2's length penalty is another one, so all beams go without.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headway.bench.contenders import Contender
from headway.bench.machine import versions
from headway.data.corpus import read_lines
from headway.decoding.ctranslate2_model import export_ctranslate2
from headway.decoding.engine import padded
from headway.devices import EngineName, TranslatingPrecision
from headway.interop.huggingface import export_huggingface, import_transformers
from headway.model import padding_mask
from headway.storage import load_model
from headway.translator import Translator

Translate = Callable[[list[str], int], list[str]]
TEXTBOOK, HUGGING_FACE = "textbook", "Hugging Face generate"
ALONE = 30
"""Sentences that are translated one by one."""
SLOW = 64
"""About so many sentences are given to the textbook's loop."""


def ours(model: Path, precision: TranslatingPrecision, engine: EngineName = "torch") -> Translate:
    stored = load_model(model)
    translator = Translator(stored, device="cpu", precision=precision, engine=engine)

    def translate(texts: list[str], beam_size: int) -> list[str]:
        return [one.text for one in translator.translate(texts, beam_size=beam_size, length_penalty=0.0)]

    return translate


def textbook(model: Path) -> Translate:
    """Greedy, in batches of 64, without a cache."""
    stored = load_model(model)
    source, target, net = stored.source_tokenizer, stored.target_tokenizer, stored.model.eval()
    config = net.config

    @torch.inference_mode()
    def search(rows: torch.Tensor) -> list[list[int]]:
        mask = padding_mask(rows, config.pad_id)
        memory = net.encode(rows, mask)
        ids = torch.full((len(rows), 1), config.bos_id)
        ended = torch.zeros(len(rows), dtype=torch.bool)
        while not ended.all() and ids.size(1) < 2 * rows.size(1) + 50:
            causal = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).tril()
            logits = net.output(net.decode(ids, memory, causal[None, None], mask)[:, -1])
            logits[:, [config.pad_id, config.bos_id]] = -torch.inf
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
            ended |= ids[:, -1] == config.eos_id
        return [row[1 : row.index(config.eos_id) if config.eos_id in row else None] for row in ids.tolist()]

    def translate(texts: list[str], beam_size: int) -> list[str]:
        rows = [[*source.encode(text), config.eos_id] for text in texts]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        found = [""] * len(rows)
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            for i, ids in zip(batch, search(padded([rows[i] for i in batch], 0)), strict=True):
                found[i] = target.decode(ids)
        return found

    return translate


def theirs(model: Path, compute_type: str, workers: int, threads: int) -> Translate:
    import ctranslate2

    stored = load_model(model)
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(stored, Path(folder) / "model")
        engine = ctranslate2.Translator(
            f"{folder}/model", compute_type=compute_type, inter_threads=workers, intra_threads=threads
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


def hugging_face(model: Path) -> Translate:
    """`generate` of transformers, in batches of 64 of like length."""
    transformers = import_transformers()
    transformers.logging.set_verbosity_error()  # it warns at each call that max_new_tokens takes precedence
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        export_huggingface(load_model(model), exported)
        tokenizer = transformers.MarianTokenizer.from_pretrained(exported)
        net = transformers.MarianMTModel.from_pretrained(exported).eval()

    @torch.inference_mode()
    def translate(texts: list[str], beam_size: int) -> list[str]:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found = [""] * len(texts)
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            rows = tokenizer([texts[i] for i in batch], return_tensors="pt", padding=True)
            ids = net.generate(**rows, num_beams=beam_size, length_penalty=0.0, max_new_tokens=100, do_sample=False)
            for i, text in zip(batch, tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True):
                found[i] = text
        return found

    return translate


def contenders(model: Path, only: list[str] | None) -> list[Contender]:
    """All, or those in whose names one of `only` stands."""
    cores = torch.get_num_threads()
    known: dict[str, tuple[Callable[..., Translate], tuple[Any, ...]]] = {
        "headway fp32": (ours, ("fp32",)),
        "headway bf16": (ours, ("bf16",)),
        TEXTBOOK: (textbook, ()),
    }
    if importlib.util.find_spec("transformers"):
        known[HUGGING_FACE] = hugging_face, ()
    if importlib.util.find_spec("ctranslate2"):
        for type_, workers, threads in (("float32", cores, 1), ("float32", 1, cores), ("int8", cores, 1)):
            name = f"CTranslate2 {type_}, {workers} x {threads}"
            known[name] = (theirs, (type_, workers, threads))
        for precision in ("fp32", "int8"):
            known[f"headway, engine ctranslate2 {precision}"] = (ours, (precision, "ctranslate2"))
    return [
        Contender(name, make, model, *arguments)
        for name, (make, arguments) in known.items()
        if only is None or any(part in name for part in only)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contenders in whose names one of these stands")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = list(read_lines(options.source))[: options.sentences]
    some = slice(None, None, max(1, len(texts) // SLOW))
    found = versions("ctranslate2", "transformers")
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    engines = contenders(options.model, options.only)
    rows = []
    for beam_size in (1, 5):
        racing = [one for one in engines if beam_size == 1 or one.name != TEXTBOOK]
        speeds: dict[str, list[float]] = {one.name: [] for one in racing}
        alone: dict[str, list[float]] = {one.name: [] for one in racing}
        lines: dict[str, list[str]] = {}
        for round_ in range(-1, options.rounds):  # the first warms up
            for one in racing:
                mine = texts[some] if one.name == TEXTBOOK else texts
                seconds, lines[one.name] = one.work(mine, beam_size)
                times = [1000 * one.work([text], beam_size)[0] for text in texts[:ALONE]]
                if round_ >= 0:
                    speeds[one.name].append(len(mine) / seconds)
                    alone[one.name] += times
        reference, first = lines[racing[0].name], statistics.median(speeds[racing[0].name])
        for name, of_engine in lines.items():
            wanted = reference[some] if name == TEXTBOOK else reference
            speed = statistics.median(speeds[name])
            row = {
                "engine": name,
                "beam_size": beam_size,
                "sentences_per_second": speed,
                "ratio_to_the_first": speed / first,
                "one_sentence_ms": statistics.median(alone[name]),
                "equal_lines": sum(a == b for a, b in zip(wanted, of_engine, strict=True)),
                "lines": len(wanted),
            }
            rows.append(row)
            print(
                f"{name:<34} beam {beam_size}  {speed:7.0f} sentences/s  {row['ratio_to_the_first']:5.2f}  "
                f"one {row['one_sentence_ms']:6.1f} ms  equal {row['equal_lines']} of {row['lines']}",
                flush=True,
            )
    for one in engines:
        one.end()
    if options.json:
        options.json.write_text(json.dumps({**found, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
