"""Which tool gives the better and the faster model in equal minutes?

    python benchmarks/equal_minutes.py SOURCE TARGET --valid SOURCE TARGET --test SOURCE TARGET --minutes 8
        [--at-once 2] [--rate 0.001] [--rounds 3] [--folder FOLDER] [--json FILE]
    python benchmarks/equal_minutes.py --draw FILE --output docs/pictures

Each tool trains in one thread, --at-once at a time, from the start of its process: `headway train --minutes`, the same
with `--fast`, and, where they are installed, Marian of Hugging Face and the model of JoeyNMT. These two have the sizes
and the vocabulary of headway's preset `tiny`, 2,048 padded tokens a step and dropout 0.1, what headway sets for itself
(bf16, the allocator), and Adam with a rate that rises for a tenth of the time to --rate and falls to 0 at its end. Then
all translate the test part in one thread, in alternating rounds, each by its best engine: headway as its card says,
Marian in int8 by CTranslate2 and its own converter, JoeyNMT by its own search in bf16; both with the beam of headway's
card. Where more train than the machine has cores, or other work runs, a tool has fewer minutes of the processor than of
the clock; both are told. Sentences a second are those of a second of the processor. A tool that fails is left out.

--draw writes the picture of a FILE that --json wrote, in English and Korean.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors.torch import load_model as load_weights
from safetensors.torch import save_model
from torch import nn
from torch.nn import functional as F

from drawing import draw
from headway.bench.contenders import Contender
from headway.bench.machine import versions
from headway.bench.peers import HuggingFaceMarian
from headway.bench.training import in_batches
from headway.data.corpus import read_lines
from headway.decoding import SearchOptions
from headway.decoding.engine import padded
from headway.devices import keep_large_allocations, keep_matrix_kernels, training_dtype
from headway.evaluation import score_translations
from headway.interop.huggingface import import_transformers
from headway.model import ModelConfig
from headway.storage import load_model
from headway.storage.atomic import write_json
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID
from headway.translator import Translator
from peers import JoeyNMT, peers

CPU = torch.device("cpu")
HEADWAY, FAST, MARIAN, JOEY = "headway", "headway --fast", "Hugging Face Marian", "JoeyNMT"
VOCABULARY = "vocabulary"
"""Of a run of one step, whose sizes and vocabulary the peers have."""
TOKENS = 2048
"""Padded tokens of both sides in a step of a peer."""
LONGEST = 100
"""Tokens of a sentence that a peer trains on, and of a translation."""
SENTENCES = 64
"""In a batch that a peer translates."""

Translate = Callable[[list[str]], list[str]]
Timed = Callable[[list[str]], tuple[float, list[str]]]
"""With the seconds of the processor: all work in one thread, so other work on the machine doesn't count."""


@dataclass
class Control:
    """The ids of a peer: those of the tokenizer, or those of Marian, whose last is <pad>, which is also the start."""

    marian: bool
    size: int
    """Of the tokenizer's vocabulary, with its four control symbols."""

    @property
    def pad(self) -> int:
        return self.size - 2 if self.marian else PAD_ID

    @property
    def start(self) -> int:
        return self.pad if self.marian else BOS_ID

    @property
    def end(self) -> int:
        return 0 if self.marian else EOS_ID

    def ids(self, ids: Iterable[int]) -> list[int]:
        """A text's ids with the end."""
        return [*(max(1, id_ - 2) if self.marian else id_ for id_ in ids), self.end]


def make_peer(name: str, config: ModelConfig) -> tuple[nn.Module, Control]:
    control = Control(name == MARIAN, config.target_vocab_size)
    if name == JOEY:
        return JoeyNMT(config), control
    start = {"decoder_start_token_id": control.start, "eos_token_id": 0, "forced_eos_token_id": 0}
    return HuggingFaceMarian(config, control.size - 1, control.pad, bos_token_id=0, **start), control


def train_peer(name: str, of: Path, texts: list[Path], minutes: float, peak: float, output: Path) -> None:
    """Trains a peer with the vocabulary and sizes of the run `of` and writes its weights."""
    began = time.monotonic()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    keep_large_allocations(CPU)
    keep_matrix_kernels(CPU)
    stored, dtype = load_model(of), training_dtype("auto", CPU)
    model, control = make_peer(name, stored.model.config)
    sides = (
        [tokenizer.encode(line) for line in read_lines(text)]
        for tokenizer, text in zip((stored.source_tokenizer, stored.target_tokenizer), texts, strict=True)
    )
    pairs = [
        (control.ids(source), [control.start, *control.ids(target)])
        for source, target in zip(*sides, strict=True)
        if 0 < len(source) <= LONGEST and 0 < len(target) <= LONGEST
    ]
    optimizer = torch.optim.Adam(model.parameters(), lr=0, betas=(0.9, 0.98), eps=1e-9)
    chance, done = Random(1), False
    while not done:
        chance.shuffle(pairs)
        batches = in_batches(sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]))), TOKENS, control.pad)
        chance.shuffle(batches)
        for source, target in batches:
            if done := (share := (time.monotonic() - began) / (60 * minutes)) >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = peak * min(share / 0.1, (1 - share) / 0.9)
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                logits = model(source, target[:, :-1])
            logits = logits.float()
            logits[..., control.pad] = -1e4  # is never predicted, and its embedding stays as it is
            loss = F.cross_entropy(
                logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=control.pad, label_smoothing=0.1
            )
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    save_model(model, str(output))


def trained(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Trains all. Minutes of the clock and of the processor, by name."""
    texts = [Path(text) for text in options.texts]
    train = [sys.executable, "-m", "headway", "train", "--source", texts[0], "--target", texts[1]]
    train += ["--valid-source", options.valid[0], "--valid-target", options.valid[1]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    names_of_all = [HEADWAY, FAST, *(name for name in (MARIAN, JOEY) if name in peers())]
    sizes = ["model.preset=tiny", "model.dropout=0.1", "tokenizer.vocab_size=8000", "training.max_steps=1"]
    one_step = [*train, "--output", folder / VOCABULARY, *sizes, "training.finish=false", "decoding.max_length=5"]
    subprocess.run([*map(str, one_step)], env=environment, check=True, capture_output=True)
    spent = dict[str, dict[str, float]]()
    for first in range(0, len(names_of_all), options.at_once):
        some = names_of_all[first : first + options.at_once]
        began, names = time.monotonic(), dict[int, str]()
        for name in some:
            if name in (HEADWAY, FAST):
                command = [*train, "--minutes", options.minutes, "--output", folder / name.replace(" --", "-")]
                log = (folder / f"{name}.log").open("w")
                process = subprocess.Popen(
                    [*map(str, command), *(["--fast"] if name == FAST else [])],
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            else:
                arguments = (
                    name,
                    folder / VOCABULARY,
                    texts,
                    options.minutes,
                    options.rate,
                    folder / f"{name}.safetensors",
                )
                process = multiprocessing.get_context("spawn").Process(target=train_peer, args=arguments)
                process.start()
            names[process.pid or 0] = name
        while names:
            pid, status, used = os.wait4(-1, 0)
            if (name := names.pop(pid, None)) is not None:
                if status:  # such as a stage for which the minutes don't suffice
                    print(f"{name} is left out: exit status {os.waitstatus_to_exitcode(status)}", flush=True)
                    continue
                spent[name] = {"minutes": (time.monotonic() - began) / 60, "processor_minutes": seconds(used) / 60}
                print(name, spent[name], flush=True)
    return spent


def seconds(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def timed(make: Callable[..., Translate], *arguments: Any) -> Timed:
    translate = make(*arguments)

    def work(texts: list[str]) -> tuple[float, list[str]]:
        began = time.process_time()
        lines = translate(texts)
        return time.process_time() - began, lines

    return work


def ours(model: Path) -> Translate:
    torch.set_num_threads(1)
    translator = Translator.load(model, device="cpu")
    return lambda texts: [one.text for one in translator.translate(texts)]


def joey(weights: Path, of: Path, beam_size: int) -> Translate:
    from joeynmt.search import beam_search, greedy  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    keep_matrix_kernels(CPU)
    stored = load_model(of)
    model, control = make_peer(JOEY, stored.model.config)
    load_weights(model, weights)
    net: Any = model.eval().model
    dtype = training_dtype("auto", CPU)
    autocast: dict[str, Any] = {"device_type": "cpu", "dtype": dtype, "enabled": dtype != torch.float32}
    search: dict[str, Any] = {"beam_size": beam_size, "alpha": 1.0} if beam_size > 1 else {}

    @torch.inference_mode()
    def translate(texts: list[str]) -> list[str]:
        rows = [control.ids(stored.source_tokenizer.encode(text)) for text in texts]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        found = [""] * len(rows)
        for first in range(0, len(order), SENTENCES):
            some = order[first : first + SENTENCES]
            source = padded([rows[i] for i in some], control.pad)
            mask = (source != control.pad).unsqueeze(1)
            lengths = mask.sum(dim=-1)[:, 0]
            with torch.autocast(**autocast):
                memory, hidden, *_ = net(return_type="encode", src=source, src_length=lengths, src_mask=mask)
            longest = min(LONGEST, 2 * source.size(1))
            ids, *_ = (beam_search if beam_size > 1 else greedy)(
                src_mask=mask,
                max_output_length=longest,
                model=net,
                encoder_output=memory.float(),
                encoder_hidden=hidden,
                autocast=autocast,
                **search,
            )
            for i, row in zip(some, ids.tolist(), strict=True):
                end = row.index(control.end) if control.end in row else None
                found[i] = stored.target_tokenizer.decode([id_ for id_ in row[:end] if id_ > EOS_ID])
        return found

    return translate


def save_marian(weights: Path, of: Path, folder: Path) -> None:
    """As a user of transformers saves a model, with its tokenizer."""
    stored = load_model(of)
    model, control = make_peer(MARIAN, stored.model.config)
    load_weights(model, weights)
    marian: Any = model.model
    marian.save_pretrained(folder)
    pieces = ["</s>", "<unk>", *stored.source_tokenizer.vocabulary[4:], "<pad>"]
    assert len(pieces) == control.size - 1
    write_json(folder / "vocab.json", {piece: id_ for id_, piece in enumerate(pieces)})
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(stored.source_tokenizer.to_bytes())
    document = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": False, "clean_up_tokenization_spaces": False}
    write_json(folder / "tokenizer_config.json", document)


def converted(weights: Path, of: Path, beam_size: int) -> Translate:
    """Marian by CTranslate2, in int8."""
    import ctranslate2

    transformers = import_transformers()
    with tempfile.TemporaryDirectory() as temporary:
        saved, folder = Path(temporary, "saved"), Path(temporary, "converted")
        save_marian(weights, of, saved)
        ctranslate2.converters.TransformersConverter(str(saved)).convert(str(folder), quantization="int8")
        engine = ctranslate2.Translator(str(folder), compute_type="int8", inter_threads=1, intra_threads=1)
        tokenizer = transformers.MarianTokenizer.from_pretrained(saved)

    def translate(texts: list[str]) -> list[str]:
        sources = [tokenizer.convert_ids_to_tokens(ids) for ids in tokenizer(texts)["input_ids"]]
        results = engine.translate_batch(
            sources, beam_size=beam_size, max_batch_size=SENTENCES, max_decoding_length=LONGEST
        )
        ids = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]
        return tokenizer.batch_decode(ids, skip_special_tokens=True)

    return translate


def measured(folder: Path, options: argparse.Namespace, spent: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    texts, references = (list(read_lines(Path(file))) for file in options.test)
    of, beam = folder / VOCABULARY, SearchOptions(**load_model(folder / HEADWAY).decoding).beam_size
    racing = dict[str, Contender]()
    for name in spent:
        weights = folder / f"{name}.safetensors"
        if name in (HEADWAY, FAST):
            racing[name] = Contender(name, timed, ours, folder / name.replace(" --", "-"))
        else:
            racing[name] = Contender(name, timed, converted if name == MARIAN else joey, weights, of, beam)
    times, lines = {name: list[float]() for name in racing}, dict[str, list[str]]()
    for round_ in range(-1, options.rounds):  # the first warms up
        for name, one in racing.items():
            _, (passed, lines[name]) = one.work(texts)
            if round_ >= 0:
                times[name].append(len(texts) / passed)
    rows = []
    for name in racing:
        racing[name].end()
        scores = score_translations(lines[name], references, "13a")
        speed = statistics.median(times[name])
        rows.append({"name": name, "bleu": scores.bleu, "sentences_per_second": speed, "rounds": times[name]})
        rows[-1] |= spent[name]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--valid", nargs=2)
    parser.add_argument("--test", nargs=2)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--at-once", type=int, default=2, help="trainings")
    parser.add_argument("--rate", type=float, default=0.001, help="the highest of the peers' training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draw", type=Path, metavar="FILE")
    parser.add_argument("--output", type=Path, help="folder of the pictures")
    options = parser.parse_args()
    if options.draw:
        draw(json.loads(options.draw.read_text()), options.output or Path())
        return
    if len(options.texts) != 2 or not (options.valid and options.test and options.minutes):
        parser.error("give SOURCE TARGET, --valid, --test and --minutes, or --draw")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        spent_file = folder / "spent.json"
        if not spent_file.exists():
            write_json(spent_file, trained(folder, options))
        rows = measured(folder, options, json.loads(spent_file.read_text()))
    found = {**versions("transformers", "ctranslate2", "joeynmt"), "minutes": options.minutes, "rows": rows}
    print(", ".join(f"{name} {value}" for name, value in found.items() if name != "rows"))
    print("| | BLEU | sentences/s | minutes | of the processor |\n|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['name']} | {row['bleu']:.2f} | {row['sentences_per_second']:,.0f} | {row['minutes']:.1f} | "
            f"{row['processor_minutes']:.1f} |"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
