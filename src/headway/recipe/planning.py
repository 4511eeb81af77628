"""Estimates of a training, a translation or a server: hours, devices, memory, network, disk.

The decisive figure is the efficiency, the share of its peak that a device reaches. It must be measured. Plans are the
documents that `headway plan --json` prints: in FLOPs, bytes, hours and seconds.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from headway.data.batches import row_shape
from headway.data.encoding import ids_dtype
from headway.data.prepared import find_tokenizer
from headway.data.shards import ParallelIds
from headway.devices import Precision
from headway.errors import UserError
from headway.kernels import attention, cross_entropy
from headway.model import ModelConfig
from headway.recipe.optimizers import UPDATES
from headway.recipe.reading import is_run, load_recipe
from headway.recipe.recipe import Recipe, TrainingSection, stage_folder
from headway.recipe.sizes import (
    TRAINING,
    adapter_weights,
    count,
    forward_work,
    layer_matrices,
    on_meta,
    training_passes,
    weights_in_products,
    work_of_update,
)
from headway.storage.model_directory import stage_of

FP32, BF16 = 4, 2
"""Bytes of a number."""
PADDING = 0.05
"""Share of the places in packed rows that hold no token (docs/results.md: 4% in Multi30K)."""
ASSUMED_EFFICIENCY = 0.3
"""Default efficiency, about that of the paper's times."""
BUSY = 0.7
"""Share of the time that servers may work before their queues grow."""
OFFSETS = 2 * 8
"""Bytes of the offsets of both sides, for each pair on disk (`data/shards.py`)."""


class Hardware(NamedTuple):
    """A device by its manufacturer's figures: FLOP/s of matrix products, bytes. None: not published, or no bf16. fp32
    isn't TF32, which headway leaves off, as torch does."""

    fp32: float | None
    bf16: float | None
    memory: float | None
    source: str


HARDWARE = {
    "cpu": Hardware(None, None, None, "yours: give --peak, or --measured"),
    "p100": Hardware(9.5e12, None, 16e9, "the paper, footnote 5; NVIDIA's data sheet has 9.3 (PCIe) and 10.6 (NVLink)"),
    "a100": Hardware(19.5e12, 312e12, 80e9, "NVIDIA A100 80GB data sheet, without sparsity"),
    "h100": Hardware(67e12, 989e12, 80e9, "NVIDIA H100 SXM data sheet, without sparsity"),
    "h200": Hardware(67e12, 989e12, 141e9, "NVIDIA H200 SXM data sheet, without sparsity"),
    "l4": Hardware(30.3e12, 121e12, 24e9, "NVIDIA L4 data sheet, without sparsity"),
}


def paper_trainings() -> dict[str, dict[str, float]]:
    """The efficiency that the times in section 5.2 of the paper imply: on eight P100 of 9.5 TFLOP/s (footnote 5), with
    about 25,000 source and 25,000 target tokens a step and a vocabulary of 37,000 (section 5.1)."""
    found = {}
    for preset, steps, hours in (("base", 100_000, 12), ("big", 300_000, 84)):
        config = ModelConfig.preset(preset, source_vocab_size=37_000, target_vocab_size=37_000)
        work = TRAINING * forward_work(config, 25_000 * steps, 25_000 * steps, 0, 0)[0]
        efficiency = work / (hours * 3600 * 8 * 9.5e12)
        found[preset] = {"steps": steps, "hours": hours, "work": work, "efficiency": efficiency}
    return found


@dataclass(frozen=True)
class Devices:
    """Devices that work together. Their speed was measured, or is a share of the peak."""

    count: int = 1
    on_cpu: bool = False
    bf16: bool = False
    """Whether products are in bf16, not fp32."""
    peak: float | None = None
    """FLOP/s that one device could reach."""
    efficiency: float | None = None
    measured: float | None = None
    """Target tokens of a training, or sentences, per second on one device."""

    def reached(self, work: float) -> dict[str, Any]:
        """The speed of one device in FLOP/s, and its efficiency. work: of a target token or a sentence."""
        speed = self.measured * work if self.measured else (self.peak or 0) * (self.efficiency or 0)
        return {"speed": speed, "efficiency": speed / self.peak if self.peak else None}


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus."""

    pairs: float
    pairs_of_epoch: float
    """Differs from `pairs` if corpora have weights."""
    lengths: tuple[float, float]
    """Mean tokens of a source and of a target, with the end symbol."""
    bytes_of_pair: float
    """When prepared."""
    versions: int = 1


def model_and_corpus(
    recipe: Recipe, pairs: float, lengths: tuple[float, float], data: Path | None
) -> tuple[ModelConfig, Corpus]:
    """Model and corpus as described, or with pairs, lengths and vocabularies of prepared data or of a run."""
    sizes = recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size
    pairs_of_epoch, dtype, versions = pairs, ids_dtype(sizes[0]), recipe.data.versions
    if data is not None:
        folder, problem = stage_of(data) / "data", "is neither a run directory nor prepared data, or it has no pair yet"
        if not folder.is_dir():
            folder = data
            if is_run(data) and (prepared := load_recipe(data / "recipe.yaml").data.prepared):
                folder, problem = prepared, f"its data.prepared, {prepared}, is gone or isn't prepared data"
        try:
            ids = ParallelIds(folder / "train")
            lengths, dtype = ids.mean_lengths, ids.source[0].dtype
        except (OSError, ValueError, ZeroDivisionError):
            raise UserError(f"{data}: {problem}") from None
        weights = [corpus.weight for corpus in recipe.data.corpora]
        pairs_of_epoch, pairs, versions = sum(ids.sizes), sum(ids.sizes), ids.versions
        if len(weights) == len(ids.sizes):
            pairs_of_epoch = sum(size * weight for size, weight in zip(ids.sizes, weights, strict=True))
        sizes = find_tokenizer(folder, "source").vocab_size, find_tokenizer(folder, "target").vocab_size
    try:
        config = recipe.transformer_config(sizes)
    except ValueError as error:
        raise UserError(f"{data}: {error}") from None
    bytes_of_pair = dtype.itemsize * sum(lengths) + OFFSETS
    return config, Corpus(pairs, pairs_of_epoch, (lengths[0] + 1, lengths[1] + 1), bytes_of_pair, versions)


def precision_and_peak(precision: Precision, hardware: str | None, peak: float | None) -> tuple[bool, float | None]:
    """Whether products are in bf16, and the peak of a device in FLOP/s. peak: in TFLOP/s, in place of the published."""
    known = HARDWARE.get(hardware or "cpu")
    if known is None:
        choice = f"choose one of {', '.join(HARDWARE)}; for any other give only its --peak"
        raise UserError(f"--hardware {hardware}: unknown; {choice}")
    has_bf16 = known.bf16 is not None or hardware in (None, "cpu") or peak is not None
    if precision in ("bf16", "fp16") and not has_bf16:
        raise UserError(f"training.precision={precision}: the peak of {hardware} in it is unknown; give its --peak")
    bf16 = precision != "fp32" and has_bf16
    return bf16, peak * 1e12 if peak is not None else known.bf16 if bf16 else known.fp32


def plan_training(config: ModelConfig, corpus: Corpus, options: TrainingSection, devices: Devices) -> dict[str, Any]:
    """The plan of a training. A measured speed includes communication, validations and checkpoints."""
    if options.tokens_per_batch < sum(corpus.lengths):
        raise UserError(
            f"training.tokens_per_batch={options.tokens_per_batch}: has no room for a pair, which takes "
            f"{sum(corpus.lengths):.3g} tokens on average, with the end symbols"
        )
    tokens_of_step = options.tokens_per_batch * (1 - PADDING)
    steps_of_epoch = max(1, corpus.pairs_of_epoch * sum(corpus.lengths) / tokens_of_step)
    max_epochs = options.max_epochs or (None if options.max_steps else 1)
    limits = options.max_steps, max_epochs and math.ceil(max_epochs * steps_of_epoch)
    steps = min(limit for limit in limits if limit)
    epochs = steps / steps_of_epoch
    pairs = epochs * corpus.pairs_of_epoch
    source_tokens, target_tokens = (pairs * length for length in corpus.lengths)

    forward = forward_work(config, source_tokens, target_tokens, *corpus.lengths)
    of_products = training_passes(config, options.adapter_rank)
    products, scores = (options.passes * n * work for n, work in zip((of_products, TRAINING), forward, strict=True))
    products += steps * work_of_update(config, options.optimizer)
    reached = devices.reached((products + scores) / target_tokens)
    seconds = (products + scores) / (devices.count * reached["speed"])

    share = math.ceil(options.tokens_per_batch / devices.count)
    micro_batches = math.ceil(share / options.micro_batch_budget)
    places = math.ceil(share / micro_batches)
    memory = training_memory(config, corpus, options, devices, micro_batches, places)
    parameters, network = count(on_meta(config).parameters()), None
    if devices.count > 1:  # a ring all-reduce: each sends all parts of the gradients but one, twice
        sent = 2 * memory["gradients"] * (devices.count - 1) / devices.count
        last_backward = seconds / steps / micro_batches * 2 / 3  # runs meanwhile
        network = {"bytes_per_step": sent, "bandwidth": sent / last_backward}
    return {
        "parameters": parameters,
        "parameters_in_products": weights_in_products(config),
        "steps": steps,
        "steps_per_epoch": math.ceil(steps_of_epoch),
        "epochs": epochs,
        "source_tokens": source_tokens,
        "target_tokens": target_tokens,
        "work": {"products": products, "scores": scores},
        **reached,
        "hours": seconds / 3600,
        "seconds_per_step": seconds / steps,
        "tokens_per_second": target_tokens / seconds,  # on all devices together
        "memory": memory,
        "memory_peak": memory["peak"],
        "micro_batches": micro_batches,  # of a step on each device
        "tokens_per_micro_batch": places,
        "network": network,
        "disk": {
            "bytes": corpus.versions * (corpus.pairs * corpus.bytes_of_pair + OFFSETS),
            "bandwidth": pairs * corpus.bytes_of_pair / seconds,  # of all devices together
        },
    }


def plan_stages(
    recipe: Recipe, pairs: float, lengths: tuple[float, float], data: Path | None, devices: Devices
) -> dict[str, Any]:
    """The plans of all stages by name, and their sums. pairs, lengths, data: as for `model_and_corpus`. A measured
    speed is that of the first stage; the devices have the same FLOP/s in the others."""
    stages: dict[str, dict[str, Any]] = {}
    for stage in recipe.stages:
        part = recipe.of_stage(stage, data or Path())
        more = len(part.data.corpora) / len(recipe.data.corpora)  # the other direction, or what a teacher writes
        mean = (sum(lengths) / 2, sum(lengths) / 2) if part.data.both_directions else lengths
        found = model_and_corpus(part, pairs * more, mean, data and stage_folder(data, stage.name))
        stages[stage.name] = plan = plan_training(*found, part.training, devices)
        if devices.measured is not None:
            peak = devices.peak or plan["speed"]
            devices = replace(devices, measured=None, peak=peak, efficiency=plan["speed"] / peak)
    plans = list(stages.values())
    return {
        "stages": stages,
        "steps": sum(one["steps"] for one in plans),
        "work": {part: sum(one["work"][part] for one in plans) for part in ("products", "scores")},
        **{key: plans[0][key] for key in ("speed", "efficiency")},
        "hours": sum(one["hours"] for one in plans),
        "memory_peak": max(one["memory_peak"] for one in plans),
    }


def training_memory(
    config: ModelConfig, corpus: Corpus, options: TrainingSection, devices: Devices, micro_batches: int, places: int
) -> dict[str, float]:
    """Bytes on one device, and `peak`, the most at once. places: of both sides of a micro-batch."""
    model = on_meta(config)
    whole, frozen, in_products = FP32 * count(model.parameters()), 0, weights_in_products(config)
    weights, matrices = whole, FP32 * count(layer_matrices(model))
    if options.adapter:
        in_products = adapter_weights(config, options.adapter_rank)
        frozen = (BF16 if devices.bf16 else FP32) * whole / FP32
        weights = matrices = FP32 * in_products
    of_matrix, of_other = UPDATES[options.optimizer]
    sizes = {
        "weights": frozen + weights,
        "gradients": weights,
        "optimizer": of_matrix.kept * matrices + of_other.kept * (weights - matrices),
        "average": weights if options.ema_decay else 0,
        "copies": BF16 * in_products if devices.bf16 else 0,  # autocast's
        "activations": activation_bytes(config, places, corpus.lengths, devices),
    }
    keeps_gradients = devices.count > 1 or micro_batches > 1  # else they come after the activations are freed
    never_together = 0 if keeps_gradients else min(weights, sizes["activations"])
    peak = sum(sizes.values()) - never_together
    search = (BF16 if devices.bf16 and not devices.on_cpu else FP32) * weights_in_products(config)
    merged = whole + search if options.adapter else 0  # the validated model, and its copy for search
    in_validation = merged + sizes["weights"] + sizes["optimizer"] + sizes["average"]
    return {**sizes, "merged": merged, "keeps_gradients": keeps_gradients, "peak": max(peak, in_validation)}


def activation_bytes(config: ModelConfig, places: int, mean_lengths: tuple[float, float], devices: Devices) -> float:
    """Bytes that a forward pass over so many places keeps for the backward pass, with logits and buffers."""
    bf16, on_cpu = devices.bf16, devices.on_cpu
    source_row, target_row = row_shape(*mean_lengths, places)
    number, drawn = BF16 if bf16 else FP32, 2 if on_cpu else 1  # bytes; drawn: by dropout, for each number
    width = number * config.d_model
    inputs = 3 if bf16 else 1  # autocast copies the input of queries, keys and values for each of them
    dropped = drawn * config.d_model if config.dropout else 0
    residual = dropped + FP32 * config.d_model  # the sum that is normalised
    hidden = number if config.activation == "relu" else 2 * number  # others than ReLU need their input, too
    hidden += number + drawn if config.feedforward_dropout else 0
    plain = on_cpu and bf16 and max(source_row, target_row) <= attention.LONGEST_PLAIN
    mask = 0 if plain else number  # of floats, for each key; a fused kernel keeps it instead of weights
    keeps_weights = plain or (on_cpu and config.attention_dropout)
    weight = (2 * number + drawn if config.attention_dropout else number) if keeps_weights else 0
    heads, inner = config.decoder_num_heads or config.num_heads, config.decoder_d_ff or config.d_ff
    # self-attention: inputs, queries, keys, values, heads; the feed-forward network: its input
    encoder = (inputs + 5) * width + 2 * residual + hidden * config.d_ff
    encoder += source_row * (mask + weight * config.num_heads)
    # attention to the source: input, queries, heads; for each source place keys and values, and their inputs
    decoder = (inputs + 8) * width + 3 * residual + hidden * inner
    decoder += (source_row + target_row) * (mask + weight * heads)
    of_source = dropped + config.encoder_layers * encoder + config.decoder_layers * (inputs + 1) * width
    of_target = dropped + config.decoder_layers * decoder + width + number * config.target_vocab_size
    source_places = places * source_row / (source_row + target_row)
    target_places = places - source_places
    chunk = cross_entropy.CHUNK if on_cpu else cross_entropy.ACCELERATOR_CHUNK
    buffers = 2 * FP32 * min(target_places * config.target_vocab_size, chunk)
    return source_places * of_source + target_places * of_target + buffers


def work_per_sentence(config: ModelConfig, corpus: Corpus, beam_size: int) -> float:
    """FLOPs of translating a sentence of the mean lengths. The decoder works on each hypothesis, with a cache."""
    source, target = corpus.lengths
    return sum(forward_work(config, source, beam_size * target, source, target))


def plan_translating(lines: float, devices: Devices, work: float, within_hours: float | None) -> dict[str, Any]:
    """The plan of translating a text. work: FLOPs of a sentence. within_hours: takes as many devices as that needs."""
    reached = devices.reached(work)
    rate = reached["speed"] / work
    hours = lines / rate / 3600
    count = math.ceil(hours / within_hours) if within_hours else devices.count
    plan = {"lines": lines, "devices": count, "sentences_per_second": rate, **reached}
    return {**plan, "hours": hours / count, "device_hours": hours}


def plan_serving(sentences_per_minute: float, devices: Devices, work: float) -> dict[str, Any]:
    """The plan of a server whose devices each work for at most `BUSY` of the time. work: FLOPs of a sentence."""
    reached = devices.reached(work)
    rate = reached["speed"] / work
    needed = sentences_per_minute / 60 / rate
    count = math.ceil(needed / BUSY)
    plan = {"sentences_per_minute": sentences_per_minute, "devices": count, "sentences_per_second": rate}
    return {**plan, **reached, "busy": needed / count}
