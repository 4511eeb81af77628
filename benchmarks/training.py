"""How fast is a training step, and how much of the machine does it use?

    headway data multi30k && python benchmarks/training.py [--preset small|base] [--rounds 5] [--warm-up 6]
        [--json FILE]

headway against the textbook's code, torch.nn.Transformer and, where they are installed, Marian of Hugging Face and
JoeyNMT's model: one configuration, the same sentences in the same number of padded tokens a step, 4,096 of both sides.
headway packs the sentences of a step into rows; a peer has the same sentences in padded batches: of similar length, as
most tools sort them, or, with --order random, as they come. Each peer runs twice: as its users run it (fp32), and
tuned, with what headway sets for itself (bf16 where the processor has it, the allocator's and oneDNN's settings). All
have OpenMP's spinning bounded, as `headway train` does. Every
contender is a process of its own; they take turns, a round is each one's time for the same sentences, and the medians
are compared. Some rounds go before: it takes a process about 100 steps until its memory has come to rest, of the
thousands that a training has. What a whole training reaches of this is in `benchmarks/running.py`.

Share of the peak: the products with weights (`headway.recipe.sizes`) a second, padding and scores of attention not
counted, of what a product of two large matrices reaches in bf16 (fp32 where the processor has no
bf16) in the same run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

import torch
from torch import nn
from torch.nn import functional as F

from headway.bench.contenders import Contender
from headway.bench.machine import fastest_dtype, matrix_peak, versions
from headway.bench.training import PaddedBatch, in_batches
from headway.cli.train import bound_spinning
from headway.data.prepare import prepare
from headway.data.prepared import PreparedData
from headway.data.shards import ParallelIds
from headway.devices import keep_large_allocations, keep_matrix_kernels, training_dtype
from headway.model import ModelConfig, Transformer
from headway.model.packing import Packed
from headway.recipe.reading import load_recipe
from headway.recipe.sizes import TRAINING, forward_work
from headway.text.tokenizer import EOS_ID
from headway.training.loss import TranslationLoss
from headway.training.optim import make_optimizers
from headway.training.step import Batch as PackedBatch
from headway.training.step import Batches, train_step
from headway.training.synthetic import write_synthetic
from peers import peers

RECIPE = Path(__file__).parent.parent / "recipes" / "multi30k-de-en.yaml"
HEADWAY = "headway"
TUNED = " tuned"
CPU = torch.device("cpu")
Order = Literal["length", "random"]


def batches(data: PreparedData, tokens: int, steps: int) -> list[PackedBatch]:
    """The first steps of an epoch, as headway takes them."""
    of_epoch = Batches(data.train, CPU, tokens, tokens, seed=1)
    return [of_epoch.tensors(micro_batch) for [micro_batch] in itertools.islice(of_epoch.plan.steps(0), steps)]


def padded_batches(todo: list[PackedBatch], tokens: int, order: Order) -> list[PaddedBatch]:
    """The same sentences, in batches of up to so many padded tokens of both sides."""
    pairs = [
        (ids, [*read, EOS_ID])
        for source, target, _ in todo
        for ids, read in zip(sentences(source), sentences(target), strict=True)
    ]
    Random(1).shuffle(pairs)
    if order == "length":
        pairs.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    return in_batches(pairs, tokens, 0)


def sentences(packed: Packed) -> list[list[int]]:
    """The ids of each sentence."""
    return [
        ids[places == number].tolist()
        for ids, places in zip(packed.ids, packed.sentences, strict=True)
        for number in range(1, int(places.max()) + 1)
    ]


def headway_step(config: ModelConfig) -> Callable[[PackedBatch], None]:
    """That of a run, at a rate of 0."""
    keep_large_allocations(CPU)
    keep_matrix_kernels(CPU)
    dtype = training_dtype("auto", CPU)
    model = Transformer(config)
    loss_of, optimizers = TranslationLoss(model, label_smoothing=0.1), make_optimizers(model, "adam", 0.98)

    def step(batch: PackedBatch) -> None:
        tokens = target_tokens([batch])
        train_step(loss_of, optimizers, [batch], divisor=tokens, rate=0.0, max_gradient_norm=1.0, dtype=dtype)

    return step


def peer_step(name: str, config: ModelConfig, tuned: bool) -> Callable[[PaddedBatch], None]:
    dtype = torch.float32
    if tuned:
        keep_large_allocations(CPU)
        keep_matrix_kernels(CPU)
        dtype = training_dtype("auto", CPU)
    model = peers()[name](config)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: PaddedBatch) -> None:
        source, target = batch
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            logits = model(source, target[:, :-1])
        loss = F.cross_entropy(
            logits.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1
        )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def make_worker(name: str, config: ModelConfig, todo: list[Any]) -> Callable[[], None]:
    """todo: steps of headway, padded batches of a peer."""
    tuned = name.endswith(TUNED)
    step = headway_step(config) if name == HEADWAY else peer_step(name.removesuffix(TUNED), config, tuned)

    def work() -> None:
        for batch in todo:
            step(batch)

    return work


def flops_per_token(config: ModelConfig, corpus: ParallelIds) -> float:
    """Of the products for a target token and its share of the source, forward and backward."""
    sources, targets = (side.total + len(corpus) for side in (corpus.source, corpus.target))
    products, _ = forward_work(config, sources / targets, 1, 0, 0)
    return TRAINING * products


def target_tokens(todo: list[PackedBatch]) -> int:
    return sum(int((labels != 0).sum()) for _, _, labels in todo)


def table(
    contenders: list[Contender], seconds: dict[str, list[float]], tokens: int, flops_of_token: float, peak: float
) -> Iterator[dict[str, Any]]:
    medians = {name: statistics.median(rounds) for name, rounds in seconds.items()}
    for one in contenders:
        yield {
            "name": one.name,
            "target_tokens_per_second": tokens / medians[one.name],
            "headway_is_times_as_fast": medians[one.name] / medians[HEADWAY],
            "share_of_peak": flops_of_token * tokens / medians[one.name] / peak,
            "peak_memory_mib": one.end(),
            "seconds": seconds[one.name],
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="whose text and vocabulary it is")
    parser.add_argument("--preset", default="small", choices=["tiny", "small", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=6, help="rounds before, of which the time doesn't count")
    parser.add_argument("--steps", type=int, help="training steps a round; default 16, of base 4")
    parser.add_argument("--tokens", type=int, default=4096, help="padded tokens a batch, both sides")
    parser.add_argument("--order", default="length", choices=get_args(Order), help="of the peers' sentences")
    parser.add_argument("--only", nargs="*", help="names of contenders beside headway, as the table has them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    recipe = load_recipe(options.recipe)
    with tempfile.TemporaryDirectory() as folder:
        data = prepare(recipe.preparation(100), Path(folder) / "data", print, write_synthetic)
        todo = batches(data, options.tokens, options.steps or (4 if options.preset == "base" else 16))
        size = data.target_tokenizer.vocab_size
    of_peers = padded_batches(todo, options.tokens, options.order)
    config = ModelConfig.preset(options.preset, source_vocab_size=size, target_vocab_size=size, dropout=0.1)
    bound_spinning()
    names = [name + tuned for tuned in ("", TUNED) for name in peers()]
    chosen = names if options.only is None else options.only
    contenders = [
        Contender(name, make_worker, name, config, todo if name == HEADWAY else of_peers) for name in (HEADWAY, *chosen)
    ]
    seconds: dict[str, list[float]] = {one.name: [] for one in contenders}
    peaks = []
    for round_ in range(-options.warm_up, options.rounds):
        for one in contenders:
            spent, _ = one.work()
            if round_ >= 0:
                seconds[one.name].append(spent)
        peaks.append(matrix_peak(fastest_dtype()))
    peak = statistics.median(peaks)
    found = {
        **versions("transformers", "joeynmt"),
        "preset": options.preset,
        "vocabulary": size,
        "order": options.order,
        "peak_gflops": peak / 1e9,
    }
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    print(f"{'':<44}{'tokens/s':>9}{'ratio':>7}{'of peak':>9}{'MiB':>7}")
    rows = []
    for row in table(contenders, seconds, target_tokens(todo), flops_per_token(config, data.train), peak):
        rows.append(row)
        print(
            f"{row['name']:<44}{row['target_tokens_per_second']:9,.0f}{row['headway_is_times_as_fast']:7.2f}"
            f"{row['share_of_peak']:9.0%}{row['peak_memory_mib']:7.0f}"
        )
    if options.json:
        options.json.write_text(json.dumps({**found, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
