"""The speed of a training step, beside peers: one configuration, the same sentences in the same number of padded tokens
a step. headway packs the sentences of a step into rows; a peer has them in padded batches, sorted by length. Batches
are ready on the device.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.nn import functional as F

from headway.bench.contenders import Contender, race
from headway.bench.machine import device_name, fastest_dtype, matrix_peak, versions
from headway.bench.peers import peers
from headway.data.batches import CorpusShare, MicroBatch, PackedIds, Plan, collate
from headway.data.packing import Joined
from headway.decoding.engine import padded
from headway.devices import autocast, keep_large_allocations, keep_matrix_kernels, pick_device, training_dtype
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.recipe.recipe import Recipe, TrainingSection
from headway.recipe.sizes import TRAINING, forward_work
from headway.text.tokenizer import CONTROL_PIECES, EOS_ID, PAD_ID
from headway.training.loss import TranslationLoss
from headway.training.optim import make_optimizers
from headway.training.step import on_device, train_step

HEADWAY, COMPILED = "headway", "headway, layers compiled"
ROUNDS = 5
SECONDS = 2.0
"""Length of a round: as many steps as headway makes in this time, at least one."""
STEPS = 20
"""Most steps of a round."""
WORDS = 6, 55
"""Tokens of a sentence: any number from the first to before the second, 30 on average as `headway plan` assumes."""
Sentences = list[NDArray[np.int32]]
Pair = tuple[list[int], list[int]]
PaddedBatch = tuple[Tensor, Tensor]


class RandomText(NamedTuple):
    """Sentences of random tokens, in the steps of an epoch."""

    source: Sentences
    target: Sentences
    steps: list[list[MicroBatch]]

    @classmethod
    def of(cls, config: ModelConfig, options: TrainingSection) -> RandomText:
        """Sentences for `STEPS` steps."""
        random = np.random.default_rng(1)
        count = STEPS * options.tokens_per_batch // sum(WORDS) + 1
        lengths = random.integers(*WORDS, size=(2, count)).clip(max=config.max_length - 1)
        sizes = config.source_vocab_size, config.target_vocab_size
        source, target = (
            [random.integers(len(CONTROL_PIECES), size, length, dtype=np.int32) for length in of_side]
            for size, of_side in zip(sizes, lengths, strict=True)
        )
        x, y = lengths + 1
        budgets = options.tokens_per_batch, options.micro_batch_budget
        plan = Plan(lambda pairs: (x[pairs], y[pairs]), (x.mean(), y.mean()), [CorpusShare(count)], *budgets)
        return cls(source, target, list(islice(plan.steps(0), STEPS)))

    def collated(self, batch: MicroBatch) -> tuple[PackedIds, PackedIds, NDArray[np.int32]]:
        source, target = (Joined.of([side[pair] for pair in batch.pairs]) for side in (self.source, self.target))
        return collate(source, target, batch)

    def pairs(self, steps: int) -> list[Pair]:
        """The pairs of the first steps, each side with its end."""
        numbers = [pair for step in self.steps[:steps] for one in step for pair in one.pairs]
        return [([*self.source[i].tolist(), EOS_ID], [*self.target[i].tolist(), EOS_ID]) for i in numbers]


def in_batches(pairs: Iterable[Pair], tokens: int, pad: int) -> list[PaddedBatch]:
    """One after the other, up to so many padded tokens of both sides in a batch. Targets stand between the symbols of
    their beginning and end, one of which a model doesn't read."""
    batches: list[list[Pair]] = [[]]
    for pair in pairs:
        together = [*batches[-1], pair]
        if len(together) * (max(len(ids) for ids, _ in together) + max(len(ids) for _, ids in together) - 1) > tokens:
            batches.append([])
        batches[-1].append(pair)
    return [
        (padded([source for source, _ in batch], pad), padded([target for _, target in batch], pad))
        for batch in batches
        if batch
    ]


def prepare_process(device: torch.device) -> None:
    """The settings of `headway train`."""
    keep_large_allocations(device)
    keep_matrix_kernels(device)


def make_headway(
    config: ModelConfig, options: TrainingSection, device_of: str, text: RandomText, *, compiled: bool = False
) -> Callable[[int], None]:
    """Makes the first steps, as many as it is asked for, as a run does; at a rate of 0. compiled: compile
    the layers with torch, which training doesn't do."""
    device = torch.device(device_of)
    prepare_process(device)
    dtype = training_dtype(options.precision, device)
    model = Transformer(config).to(device)
    for layer in (*model.encoder.layers, *model.decoder.layers) if compiled else ():
        layer.compile()
    loss_of = TranslationLoss(model, options.label_smoothing)
    optimizers = make_optimizers(model, options.optimizer, options.adam_beta2, dtype)
    scaler = GradScaler(device.type) if dtype == torch.float16 else None
    todo = [[on_device(*text.collated(one), device) for one in step] for step in text.steps]
    tokens = [sum(int((labels != PAD_ID).sum()) for _, _, labels in step) for step in todo]

    def work(steps: int) -> None:
        for batches, divisor in zip(todo[:steps], tokens, strict=False):
            train_step(
                loss_of,
                optimizers,
                batches,
                divisor=divisor,
                rate=0.0,
                max_gradient_norm=options.max_gradient_norm,
                dtype=dtype,
                scaler=scaler,
            )

    return work


def peer_step(
    name: str, config: ModelConfig, options: TrainingSection, device: torch.device, dtype: torch.dtype
) -> Callable[[PaddedBatch], None]:
    """A step as its users write it."""
    model = peers()[name](config).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, options.adam_beta2), eps=1e-9)
    scaler = GradScaler(device.type, enabled=dtype == torch.float16)

    def step(batch: PaddedBatch) -> None:
        source, target = batch
        with autocast(device, dtype):
            logits = model(source, target[:, :-1])
        labels, smoothing = target[:, 1:].flatten(), options.label_smoothing
        loss = F.cross_entropy(logits.flatten(0, 1).float(), labels, ignore_index=PAD_ID, label_smoothing=smoothing)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    return step


def make_peer_worker(
    name: str, config: ModelConfig, options: TrainingSection, device_of: str, pairs: list[Pair]
) -> Callable[[], None]:
    """Makes a step of each padded batch of the pairs, in headway's precision."""
    device = torch.device(device_of)
    prepare_process(device)
    step = peer_step(name, config, options, device, training_dtype(options.precision, device))
    by_length = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0])))
    todo = [
        (source.to(device), target.to(device))
        for source, target in in_batches(by_length, options.micro_batch_budget, PAD_ID)
    ]

    def work() -> None:
        for batch in todo:
            step(batch)

    return work


def vocabulary_size(recipe: Recipe) -> int:
    """The recipe's. Raises UserError if it has no token to make text of."""
    size = recipe.tokenizer.vocab_size
    if size <= len(CONTROL_PIECES):
        raise UserError(f"tokenizer.vocab_size={size}: the control symbols alone are {len(CONTROL_PIECES)}; use more")
    return size


def bench_training(recipe: Recipe, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measures a step of the recipe's model on its device. The text is random. tell: as of `race`. Raises
    UserError."""
    options, size = recipe.training, vocabulary_size(recipe)
    device = torch.device(pick_device(options.device))
    config = recipe.transformer_config((size, size))
    text = RandomText.of(config, options)
    arguments = config, options, str(device)
    headway = Contender(HEADWAY, make_headway, *arguments, text, device=str(device))
    headway.work(1)
    spent, _ = headway.work(1)
    steps = max(1, min(len(text.steps), int(SECONDS / spent)))
    pairs = text.pairs(steps)
    own = [headway]
    if device.type == "cuda":
        own.append(Contender(COMPILED, partial(make_headway, compiled=True), *arguments, text, device=str(device)))
    others = [Contender(name, make_peer_worker, name, *arguments, pairs, device=str(device)) for name in peers()]
    contenders = [*own, *others]
    dtype = fastest_dtype(device)
    before = matrix_peak(dtype, device)
    seconds, failures = race(contenders, lambda one: (steps,) if one in own else (), ROUNDS, warm_up=1, tell=tell)
    peak = max(before, matrix_peak(dtype, device))
    sources, targets = (sum(map(len, side)) for side in zip(*pairs, strict=True))
    products, _ = forward_work(config, sources, targets, 0, 0)
    rows = list(speeds(contenders, seconds, failures, targets, TRAINING * products / peak / targets))
    memory = memories(contenders, failures)
    return {
        **versions("transformers"),
        "device": f"{device} ({device_name(device)})",
        "precision": options.precision,
        "products": str(training_dtype(options.precision, device)).removeprefix("torch."),
        "vocabulary": size,
        "tokens_per_batch": options.tokens_per_batch,
        "steps": steps,
        "peak_tflops": peak / 1e12,
        "rows": [{**row, "memory_mib": memory.get(row["name"])} for row in rows],
    }


def speeds(
    contenders: Iterable[Contender],
    seconds: dict[str, list[float]],
    failures: dict[str, str],
    tokens: int,
    share_of_token: float,
) -> Iterator[dict[str, Any]]:
    """A row for each contender, of the medians of its rounds; the first is the one that the others are compared with.
    tokens: of the target, in a round. share_of_token: of the peak, at a target token a second."""
    first = None
    for one in contenders:
        if one.name in failures:
            yield {"name": one.name, "failed": failures[one.name]}
            continue
        median = statistics.median(seconds[one.name])
        first = first or median
        yield {
            "name": one.name,
            "target_tokens_per_second": tokens / median,
            "headway_is_times_as_fast": median / first,
            "share_of_peak": share_of_token * tokens / median,
            "seconds": seconds[one.name],
        }


def memories(contenders: Iterable[Contender], failed: Container[str]) -> dict[str, float | None]:
    """The most memory of each, in MiB, which ends its process; without those that failed."""
    return {one.name: one.end() for one in contenders if one.name not in failed}
