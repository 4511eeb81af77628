"""What a training, a translation or a server will need, worked out on paper: hours, devices, memory, network, disk.

The arithmetic is simple. The decisive figure is the efficiency, the share of its peak that a device reaches. It must be
measured. `PAPER` holds what the times in section 5.2 of "Attention Is All You Need" imply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.training.sizes import (
    BF16,
    FP32,
    Memory,
    ParameterCount,
    Sharding,
    Work,
    count_parameters,
    forward_work,
    training_memory,
    training_work,
    work_of_update,
)

if TYPE_CHECKING:
    from headway.model.config import ModelConfig
    from headway.training.recipe import OptimizerName

PADDING = 0.05
"""Share of the places in packed rows that hold no token (docs/results.md: 4% in Multi30K)."""
ASSUMED_EFFICIENCY = 0.3
"""The efficiency if none was measured: about what the paper's times imply."""
BUSY = 0.7
"""The share of the time that servers may work before their queues grow."""
BYTES_PER_OFFSET = 8
"""On disk: `text/shards.py`."""


@dataclass(frozen=True)
class Hardware:
    """A device, with its manufacturer's figures."""

    fp32: float | None
    """FLOP/s of matrix products in fp32; None: not published."""
    bf16: float | None
    """FLOP/s of dense matrix products in bf16; None: the device has no bf16."""
    memory: float | None
    """Bytes; None: unknown."""
    source: str


HARDWARE = {
    "cpu": Hardware(None, None, None, "yours: give --peak, or --measured"),
    "p100": Hardware(9.5e12, None, 16e9, "the paper, footnote 5; NVIDIA's data sheet has 9.3 (PCIe) and 10.6 (NVLink)"),
    "a100": Hardware(19.5e12, 312e12, 80e9, "NVIDIA A100 80GB data sheet, without sparsity"),
    "h100": Hardware(67e12, 989e12, 80e9, "NVIDIA H100 SXM data sheet, without sparsity"),
    "h200": Hardware(67e12, 989e12, 141e9, "NVIDIA H200 SXM data sheet, without sparsity"),
    "l4": Hardware(30.3e12, 121e12, 24e9, "NVIDIA L4 data sheet, without sparsity"),
}
"""A few common devices. fp32 doesn't mean TF32, which headway leaves off, as torch does."""


@dataclass(frozen=True)
class Devices:
    """The devices that work together."""

    count: int
    speed: float
    """FLOP/s that one device reaches in products with weights."""
    peak: float | None = None
    """FLOP/s that one device could reach."""
    on_cpu: bool = False

    @property
    def efficiency(self) -> float | None:
        """The share of the peak that a device reaches."""
        return None if self.peak is None else self.speed / self.peak


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus. Lengths count tokens, with the end symbol."""

    pairs: float
    source_length: float
    target_length: float
    bytes_per_id: int = 2
    """When prepared: `text.encoding.ids_dtype`."""
    weighted_pairs: float | None = None
    """The pairs of an epoch where corpora have weights; None: all pairs."""
    versions: int = 1
    """Of each pair, when prepared."""

    @property
    def mean_lengths(self) -> tuple[float, float]:
        return self.source_length, self.target_length

    @property
    def pairs_per_epoch(self) -> float:
        return self.pairs if self.weighted_pairs is None else self.weighted_pairs

    @property
    def tokens_per_pair(self) -> float:
        """The mean tokens of both sides."""
        return self.source_length + self.target_length

    @property
    def tokens_per_epoch(self) -> float:
        """The tokens of both sides that an epoch has."""
        return self.pairs_per_epoch * self.tokens_per_pair

    @property
    def bytes_on_disk(self) -> float:
        """The bytes of the ids, without end symbols, and of the offsets. All pairs are prepared, whatever weights."""
        ids = self.bytes_per_id * self.pairs * (self.tokens_per_pair - 2)
        return self.versions * (ids + 2 * BYTES_PER_OFFSET * (self.pairs + 1))

    @property
    def bytes_per_epoch(self) -> float:
        """The bytes that are read in an epoch."""
        return self.bytes_on_disk / self.versions * self.pairs_per_epoch / self.pairs


@dataclass(frozen=True)
class Batches:
    """The batches of a training and its limits, of which the first one reached ends it."""

    tokens_per_batch: int
    """Places of a step on all devices, both sides, including padding."""
    tokens_per_micro_batch: int
    max_steps: int | None = None
    max_epochs: float | None = None

    def steps(self, corpus: Corpus) -> int:
        """The steps of the training; without a limit, those of one epoch."""
        epochs = self.max_epochs if self.max_epochs or self.max_steps else 1
        by_epochs = self.steps_of_epochs(corpus, epochs) if epochs else None
        return min(limit for limit in (self.max_steps, by_epochs) if limit is not None)

    def steps_of_epochs(self, corpus: Corpus, epochs: float = 1) -> int:
        """The steps of this many epochs. An epoch has at least one."""
        return math.ceil(epochs * max(1, corpus.tokens_per_epoch / self.tokens_of_step))

    @property
    def tokens_of_step(self) -> float:
        """Tokens of a step, without padding."""
        return self.tokens_per_batch * (1 - PADDING)

    def on_device(self, devices: int) -> tuple[int, int]:
        """The micro-batches of a step on each device, and the places of one."""
        share = math.ceil(self.tokens_per_batch / devices)
        passes = math.ceil(share / self.tokens_per_micro_batch)
        return passes, math.ceil(share / passes)


@dataclass(frozen=True)
class Network:
    """The traffic of each device, which sends and receives the same amount."""

    bytes_per_step: float
    bandwidth: float
    """Bytes per second that don't slow training, if communication overlaps with as much work as it can."""


@dataclass(frozen=True)
class Disk:
    """Prepared data."""

    bytes: float
    bandwidth: float
    """Bytes per second that all devices together read."""


@dataclass(frozen=True)
class TrainingPlan:
    """What a training needs."""

    parameters: int
    parameters_in_products: int
    steps: int
    steps_per_epoch: int
    epochs: float
    source_tokens: float
    target_tokens: float
    work: Work
    efficiency: float | None
    hours: float
    seconds_per_step: float
    tokens_per_second: float
    """Target tokens, on all devices together."""
    memory: Memory
    micro_batches: int
    """Micro-batches of a step on each device."""
    tokens_per_micro_batch: int
    network: Network | None
    """None: one device."""
    disk: Disk


def plan_training(
    config: ModelConfig,
    corpus: Corpus,
    batches: Batches,
    devices: Devices,
    *,
    bf16: bool,
    sharding: Sharding = "none",
    moving_average: bool = False,
    passes: float = 1,
    optimizer: OptimizerName = "adam",
) -> TrainingPlan:
    """Assumes that the efficiency already contains the time of communication, validations and checkpoints. passes: how
    often each token of a step goes through the model."""
    parameters = count_parameters(config)
    steps = batches.steps(corpus)
    epochs = steps * min(1, batches.tokens_of_step / corpus.tokens_per_epoch)
    source_tokens, target_tokens = (epochs * corpus.pairs_per_epoch * length for length in corpus.mean_lengths)
    work = training_work(config, passes * source_tokens, passes * target_tokens, *corpus.mean_lengths)
    work = Work(work.products + steps * work_of_update(config, optimizer), work.scores)
    seconds = work.total / (devices.count * devices.speed)
    micro_batches, places = batches.on_device(devices.count)
    memory = training_memory(
        config,
        places,
        corpus.mean_lengths,
        bf16=bf16,
        on_cpu=devices.on_cpu,
        devices=devices.count,
        sharding=sharding,
        micro_batches=micro_batches,
        moving_average=moving_average,
        optimizer=optimizer,
    )
    return TrainingPlan(
        parameters=parameters.total,
        parameters_in_products=parameters.in_products,
        steps=steps,
        steps_per_epoch=batches.steps_of_epochs(corpus),
        epochs=epochs,
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        work=work,
        efficiency=devices.efficiency,
        hours=seconds / 3600,
        seconds_per_step=seconds / steps,
        tokens_per_second=target_tokens / seconds,
        memory=memory,
        micro_batches=micro_batches,
        tokens_per_micro_batch=places,
        network=_network(parameters, devices.count, micro_batches, seconds / steps, bf16=bf16, sharding=sharding),
        disk=Disk(corpus.bytes_on_disk, corpus.bytes_per_epoch * epochs / seconds),
    )


def _network(
    parameters: ParameterCount, devices: int, micro_batches: int, seconds: float, *, bf16: bool, sharding: Sharding
) -> Network | None:
    """Ring algorithms: to gather or to scatter, each device sends all parts but one. An all-reduce does both.

    DDP reduces gradients once a step, during the backward pass of the last micro-batch, two thirds of that
    micro-batch's time. FSDP2 gathers weights for each forward pass and each backward pass, and scatters gradients, all
    the time.
    """
    if devices == 1:
        return None
    passed_on = parameters.total * (devices - 1) / devices
    if sharding == "none":
        sent = 2 * FP32 * passed_on
        return Network(sent, sent / (seconds / micro_batches * 2 / 3))
    sent = micro_batches * (2 * (BF16 if bf16 else FP32) + FP32) * passed_on
    return Network(sent, sent / seconds)


def work_per_target_token(
    config: ModelConfig, corpus: Corpus, batches: Batches, *, passes: float = 1, optimizer: OptimizerName = "adam"
) -> float:
    """FLOPs of training on one target token, with its share of the source and of the optimizer's products."""
    source = corpus.source_length / corpus.target_length
    pairs_of_step = min(batches.tokens_of_step, corpus.tokens_per_epoch) / corpus.tokens_per_pair
    update = work_of_update(config, optimizer) / (pairs_of_step * corpus.mean_lengths[1])
    return passes * training_work(config, source, 1, *corpus.mean_lengths).total + update


def work_per_sentence(config: ModelConfig, corpus: Corpus, beam_size: int) -> float:
    """FLOPs of translating a sentence of the mean lengths. The decoder works on each hypothesis, with a cache."""
    source, target = corpus.mean_lengths
    return forward_work(config, source, beam_size * target, *corpus.mean_lengths).total


@dataclass(frozen=True)
class TranslatingPlan:
    """What translating a text needs."""

    lines: float
    devices: int
    sentences_per_second: float
    """Sentences on one device."""
    efficiency: float | None
    hours: float
    device_hours: float


def plan_translating(lines: float, devices: Devices, work: float, within_hours: float | None = None) -> TranslatingPlan:
    """work: FLOPs of a sentence. within_hours: takes as many devices as that needs, not `devices.count`."""
    rate = devices.speed / work
    device_hours = lines / rate / 3600
    count = devices.count if within_hours is None else max(1, math.ceil(device_hours / within_hours))
    return TranslatingPlan(lines, count, rate, devices.efficiency, device_hours / count, device_hours)


@dataclass(frozen=True)
class ServingPlan:
    """What a server needs."""

    sentences_per_minute: float
    devices: int
    sentences_per_second: float
    """Sentences on one device that is never idle."""
    efficiency: float | None
    busy: float
    """The share of the time that the devices work."""


def plan_serving(sentences_per_minute: float, devices: Devices, work: float) -> ServingPlan:
    """Enough devices that each works for at most `BUSY` of the time. work: FLOPs of a sentence."""
    rate = devices.speed / work
    needed = sentences_per_minute / 60 / rate
    count = max(1, math.ceil(needed / BUSY))
    return ServingPlan(sentences_per_minute, count, rate, devices.efficiency, needed / count)


@dataclass(frozen=True)
class PaperTraining:
    """A training of the paper, section 5.2: eight P100, about 25,000 source and 25,000 target tokens a step, a
    vocabulary of 37,000 (section 5.1)."""

    preset: str
    steps: int
    hours: float

    TOKENS = 25_000
    VOCABULARY = 37_000
    DEVICES = 8

    def work(self, config: ModelConfig) -> float:
        """FLOPs of the training's products with weights. config: that of its model."""
        tokens = self.steps * self.TOKENS
        return training_work(config, tokens, tokens, 0, 0).products

    def efficiency(self, config: ModelConfig) -> float:
        """The share of the P100's peak that the training's time implies."""
        peak = HARDWARE["p100"].fp32
        assert peak is not None
        return self.work(config) / (self.hours * 3600 * self.DEVICES * peak)


PAPER = (PaperTraining("base", 100_000, 12), PaperTraining("big", 300_000, 3.5 * 24))
