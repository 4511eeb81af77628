"""How fast is a training step, and how much of the machine does it use?

    headway data multi30k && python benchmarks/training.py [--preset small|base] [--rounds 5] [--warm-up 6]
        [--json FILE]

headway against the textbook's code, torch.nn.Transformer and, where they are installed, Marian of Hugging Face and
JoeyNMT's model: one configuration, the same sentences in the same batches of like length, 4,096 padded tokens of both
sides each. Each peer runs twice: as its users run it (fp32), and tuned, with what headway sets for itself (bf16 where
the processor has it, the allocator's and oneDNN's settings). Every contender is a process of its own; they take turns,
a round is each one's time for the same steps, and the medians are compared. Some rounds go before: it takes a process
about 100 steps until its memory has come to rest, of the thousands that a training has.

Share of the peak: 6 x (encoder weights x source tokens + (decoder + output weights) x target tokens) a second, padding
and look-ups not counted, of what a product of two large matrices reaches in bf16 (fp32 where that is faster) in the
same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contenders import Contender
from headway.devices import keep_large_allocations, keep_matrix_kernels, pick_device, training_dtype
from headway.model import ModelConfig, Transformer
from headway.text.batches import collate, plan_epoch
from headway.training.loss import TranslationLoss
from headway.training.optim import make_optimizer
from headway.training.prepare import PreparedData, prepare
from headway.training.reading import load_recipe
from headway.training.step import train_step
from machine import matrix_peak, versions
from peers import peers

RECIPE = Path(__file__).parent.parent / "recipes" / "multi30k-de-en.yaml"
HEADWAY = "headway"
TUNED = " tuned"
CPU = pick_device("cpu")
Batch = tuple[Tensor, Tensor]


def batches(data: PreparedData, tokens: int, steps: int) -> list[Batch]:
    lengths = (data.train.source.lengths + 1, data.train.target.lengths + 1)
    plan = plan_epoch(*lengths, tokens_per_batch=tokens, tokens_per_micro_batch=tokens, seed=1, epoch=0)
    collated = (collate(data.train, batch) for [batch] in plan[:steps])
    return [(torch.from_numpy(source), torch.from_numpy(target)) for source, target in collated]


def headway_step(config: ModelConfig) -> Callable[[Batch], None]:
    """That of a run, at a rate of 0."""
    keep_large_allocations(CPU)
    keep_matrix_kernels(CPU)
    dtype = training_dtype("auto", CPU)
    model = Transformer(config)
    loss_of, optimizer = TranslationLoss(model, label_smoothing=0.1), make_optimizer(model, beta2=0.98)

    def step(batch: Batch) -> None:
        tokens = target_tokens([batch])
        train_step(loss_of, optimizer, [batch], tokens=tokens, rate=0.0, max_gradient_norm=1.0, dtype=dtype)

    return step


def peer_step(name: str, config: ModelConfig, tuned: bool) -> Callable[[Batch], None]:
    dtype = torch.float32
    if tuned:
        keep_large_allocations(CPU)
        keep_matrix_kernels(CPU)
        dtype = training_dtype("auto", CPU)
    model = peers()[name](config)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Batch) -> None:
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


def make_worker(name: str, config: ModelConfig, todo: list[Batch]) -> Callable[[], None]:
    tuned = name.endswith(TUNED)
    step = headway_step(config) if name == HEADWAY else peer_step(name.removesuffix(TUNED), config, tuned)

    def work() -> None:
        for batch in todo:
            step(batch)

    return work


def flops(config: ModelConfig, todo: list[Batch]) -> float:
    """Of the products of a round, forward and backward."""
    model = Transformer(config)
    encoder, decoder = (
        sum(weight.numel() for weight in part.parameters() if weight.dim() > 1)
        for part in (model.encoder, model.decoder)
    )
    source = sum(int((batch[0] != 0).sum()) for batch in todo)
    return 6.0 * (encoder * source + (decoder + model.output.weight.numel()) * target_tokens(todo))


def target_tokens(todo: list[Batch]) -> int:
    return sum(int((batch[1][:, 1:] != 0).sum()) for batch in todo)


def table(
    contenders: list[Contender], seconds: dict[str, list[float]], config: ModelConfig, todo: list[Batch], peak: float
) -> Iterator[dict[str, Any]]:
    medians = {name: statistics.median(rounds) for name, rounds in seconds.items()}
    for one in contenders:
        yield {
            "name": one.name,
            "target_tokens_per_second": target_tokens(todo) / medians[one.name],
            "headway_is_times_as_fast": medians[one.name] / medians[HEADWAY],
            "share_of_peak": flops(config, todo) / medians[one.name] / peak,
            "peak_memory_mib": one.end(),
            "seconds": seconds[one.name],
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="small", choices=["tiny", "small", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=6, help="rounds before, of which the time doesn't count")
    parser.add_argument("--steps", type=int, help="training steps a round; default 16, of base 4")
    parser.add_argument("--tokens", type=int, default=4096, help="padded tokens a batch, both sides")
    parser.add_argument("--only", nargs="*", help="names of contenders beside headway, as the table has them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    recipe = load_recipe(RECIPE)
    with tempfile.TemporaryDirectory() as folder:
        data = prepare(recipe, Path(folder) / "data", max_length=100, notice=print)
        todo = batches(data, options.tokens, options.steps or (4 if options.preset == "base" else 16))
        size = data.target_tokenizer.vocab_size
    config = ModelConfig.preset(options.preset, source_vocab_size=size, target_vocab_size=size, dropout=0.1)
    names = [name + tuned for tuned in ("", TUNED) for name in peers()]
    chosen = names if options.only is None else options.only
    contenders = [Contender(name, make_worker, name, config, todo) for name in (HEADWAY, *chosen)]
    seconds: dict[str, list[float]] = {one.name: [] for one in contenders}
    peaks = []
    for round_ in range(-options.warm_up, options.rounds):
        for one in contenders:
            spent, _ = one.work()
            if round_ >= 0:
                seconds[one.name].append(spent)
        peaks.append(max(matrix_peak(torch.float32), matrix_peak(torch.bfloat16)))
    peak = statistics.median(peaks)
    found = {
        **versions("transformers", "joeynmt"),
        "preset": options.preset,
        "vocabulary": size,
        "peak_gflops": peak / 1e9,
    }
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    print(f"{'':<44}{'tokens/s':>9}{'ratio':>7}{'of peak':>9}{'MiB':>7}")
    rows = []
    for row in table(contenders, seconds, config, todo, peak):
        rows.append(row)
        print(
            f"{row['name']:<44}{row['target_tokens_per_second']:9,.0f}{row['headway_is_times_as_fast']:7.2f}"
            f"{row['share_of_peak']:9.0%}{row['peak_memory_mib']:7.0f}"
        )
    if options.json:
        options.json.write_text(json.dumps({**found, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
