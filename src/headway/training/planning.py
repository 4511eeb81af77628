"""What a training, a translation or a server will need, worked out on paper: hours, devices, memory, network, disk.

The arithmetic is plain; what decides is the efficiency, the share of a device's peak that is reached. It must be
measured. `PAPER` has what the times in section 5.2 of "Attention Is All You Need" imply.
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
)

if TYPE_CHECKING:
    from headway.model.config import ModelConfig

PADDING = 0.05
"""Share of the places in packed rows that hold no token (docs/results.md: 4% in Multi30K)."""
ASSUMED_EFFICIENCY = 0.3
"""Where none was measured: about what the paper's times imply."""
BUSY = 0.7
"""How much of the time servers may work, or their queues grow."""
BYTES_PER_ID, BYTES_PER_OFFSET = 4, 8
"""On disk: `text/shards.py`."""


@dataclass(frozen=True)
class Hardware:
    """A device by its maker's figures."""

    fp32: float | None
    """FLOP/s of products in fp32; None: not published."""
    bf16: float | None
    """FLOP/s of dense products in bf16; None: it has none."""
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
"""A few devices that are often met. fp32 is fp32: headway leaves TF32 as torch has it, off."""


@dataclass(frozen=True)
class Devices:
    """What works together."""

    count: int
    speed: float
    """FLOP/s that one of them reaches, in products with weights."""
    peak: float | None = None
    """FLOP/s that one of them could do."""
    on_cpu: bool = False

    @property
    def efficiency(self) -> float | None:
        """The share of the peak that is reached."""
        return None if self.peak is None else self.speed / self.peak


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus; lengths in tokens, with the end symbol."""

    pairs: float
    source_length: float
    target_length: float

    @property
    def mean_lengths(self) -> tuple[float, float]:
        return self.source_length, self.target_length

    @property
    def tokens(self) -> float:
        """Of both sides."""
        return self.pairs * (self.source_length + self.target_length)

    @property
    def bytes_on_disk(self) -> float:
        """Ids without end symbols, and where each sentence begins on either side."""
        return BYTES_PER_ID * (self.tokens - 2 * self.pairs) + 2 * BYTES_PER_OFFSET * (self.pairs + 1)


@dataclass(frozen=True)
class Batches:
    """The steps of a training, by whichever limit comes first."""

    tokens_per_batch: int
    """Places of a step over all devices, both sides, padding included."""
    tokens_per_micro_batch: int
    max_steps: int | None = None
    max_epochs: float | None = None

    def steps(self, corpus: Corpus) -> int:
        """Without a limit one epoch."""
        per_epoch = corpus.tokens / self.tokens_of_step
        epochs = self.max_epochs if self.max_epochs or self.max_steps else 1
        by_epochs = math.ceil(epochs * per_epoch) if epochs else None
        return min(limit for limit in (self.max_steps, by_epochs) if limit is not None)

    @property
    def tokens_of_step(self) -> float:
        """Without padding."""
        return self.tokens_per_batch * (1 - PADDING)

    def on_device(self, devices: int) -> tuple[int, int]:
        """Micro-batches of a step that each device has, and the places of one."""
        share = math.ceil(self.tokens_per_batch / devices)
        passes = math.ceil(share / self.tokens_per_micro_batch)
        return passes, math.ceil(share / passes)


@dataclass(frozen=True)
class Network:
    """What each device sends in a step, and as much receives."""

    bytes_per_step: float
    bandwidth: float
    """Bytes a second that don't slow training, if sending goes on beside the work that it can go on beside."""


@dataclass(frozen=True)
class Disk:
    """Prepared data."""

    bytes: float
    bandwidth: float
    """Bytes a second that all devices together read."""


@dataclass(frozen=True)
class TrainingPlan:
    """What a training needs."""

    parameters: int
    parameters_in_products: int
    steps: int
    epochs: float
    source_tokens: float
    target_tokens: float
    work: Work
    efficiency: float | None
    hours: float
    seconds_per_step: float
    tokens_per_second: float
    """Of the target, all devices together."""
    memory: Memory
    micro_batches: int
    """Of a step, on each device."""
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
) -> TrainingPlan:
    """Communication, validations and checkpoints are taken to cost no time beside that which the efficiency has."""
    parameters = count_parameters(config)
    steps = batches.steps(corpus)
    epochs = steps * batches.tokens_of_step / corpus.tokens
    source_tokens, target_tokens = (epochs * corpus.pairs * length for length in corpus.mean_lengths)
    work = training_work(config, source_tokens, target_tokens, *corpus.mean_lengths)
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
    )
    return TrainingPlan(
        parameters=parameters.total,
        parameters_in_products=parameters.in_products,
        steps=steps,
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
        disk=Disk(corpus.bytes_on_disk, corpus.bytes_on_disk * epochs / seconds),
    )


def _network(
    parameters: ParameterCount, devices: int, micro_batches: int, seconds: float, *, bf16: bool, sharding: Sharding
) -> Network | None:
    """Rings: to gather or to scatter, each device passes on all parts but one; an all-reduce is both.

    DDP adds up gradients once a step, beside the last micro-batch's backward pass, two thirds of its time. FSDP2
    gathers weights for each pass forward and again backward, and scatters gradients, all the time.
    """
    if devices == 1:
        return None
    passed_on = parameters.total * (devices - 1) / devices
    if sharding == "none":
        sent = 2 * FP32 * passed_on
        return Network(sent, sent / (seconds / micro_batches * 2 / 3))
    sent = micro_batches * (2 * (BF16 if bf16 else FP32) + FP32) * passed_on
    return Network(sent, sent / seconds)


def work_per_target_token(config: ModelConfig, corpus: Corpus) -> float:
    """FLOPs of training on a target token and its share of the source."""
    source = corpus.source_length / corpus.target_length
    return training_work(config, source, 1, *corpus.mean_lengths).total


def work_per_sentence(config: ModelConfig, corpus: Corpus, beam_size: int) -> float:
    """FLOPs of translating a sentence of the mean lengths: the decoder works on each hypothesis, with a cache."""
    source, target = corpus.mean_lengths
    return forward_work(config, source, beam_size * target, *corpus.mean_lengths).total


@dataclass(frozen=True)
class TranslatingPlan:
    """What translating a text needs."""

    lines: float
    devices: int
    sentences_per_second: float
    """Of one device."""
    efficiency: float | None
    hours: float
    device_hours: float


def plan_translating(lines: float, devices: Devices, work: float, within_hours: float | None = None) -> TranslatingPlan:
    """work: of a sentence. within_hours: takes as many devices as are needed, in place of `devices.count`."""
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
    """Of one device that is never idle."""
    efficiency: float | None
    busy: float
    """The share of the time that the devices work."""


def plan_serving(sentences_per_minute: float, devices: Devices, work: float) -> ServingPlan:
    """As many devices as work for `BUSY` of the time at most. work: of a sentence."""
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
        """FLOPs of its products with weights. config: of its model."""
        tokens = self.steps * self.TOKENS
        return training_work(config, tokens, tokens, 0, 0).products

    def efficiency(self, config: ModelConfig) -> float:
        """The share of the P100's peak that its time implies."""
        peak = HARDWARE["p100"].fp32
        assert peak is not None
        return self.work(config) / (self.hours * 3600 * self.DEVICES * peak)


PAPER = (PaperTraining("base", 100_000, 12), PaperTraining("big", 300_000, 3.5 * 24))
