"""Plans as text, for `headway plan`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.training.planning import Corpus, Devices, ServingPlan, TrainingPlan, TranslatingPlan
    from headway.training.recipe import Recipe

Lines = list[tuple[str, str]]
"""Pairs of a label and its text."""


def speed_reached(devices: Devices, hardware: str | None, bf16: bool, guessed: bool = False) -> str:
    """The speed of a device, and the share of its peak."""
    text = f"{devices.speed / 1e12:,.3g} TFLOP/s on a device ({hardware or 'unnamed'})"
    if devices.peak is not None and devices.efficiency is not None:
        text += f", {devices.efficiency:.1%} of its {devices.peak / 1e12:,.4g} in {'bf16' if bf16 else 'fp32'}"
    return f"{text}; a guess: measure, and give --efficiency or --measured" if guessed else text


def training_lines(
    found: TrainingPlan, corpus: Corpus, recipe: Recipe, reached: str, hardware: str | None, count: int
) -> Lines:
    tokens, rate = recipe.training.tokens_per_batch, f"{found.tokens_per_second:,.0f}"
    lengths = f"{corpus.source_length - 1:.3g} source and {corpus.target_length - 1:.3g} target tokens"
    pairs = _counted(f"{corpus.pairs:,.0f}", "pair")
    lines = [
        ("model", f"{found.parameters:,} parameters, {found.parameters_in_products:,} of them in products"),
        ("corpus", f"{pairs} of {lengths} on average; {_bytes(found.disk.bytes)} when prepared"),
        *_weighted(corpus, pairs),
        ("steps", f"{found.steps:,} of {tokens:,} places; an epoch has {found.steps_per_epoch:,}"),
        ("work", f"{found.work.products:.3g} FLOPs, and {found.work.scores:.2g} for the scores of attention"),
        ("speed", reached),
        ("", f"{rate} target tokens/s on {_counted(f'{count:,}', 'device')}, {found.seconds_per_step:.3g} s a step"),
        ("time", _time(found.hours)),
        ("memory", _memory(found, hardware)),
    ]
    if found.network is not None:
        sent, bandwidth = _bytes(found.network.bytes_per_step), _bytes(found.network.bandwidth)
        lines.append(
            ("network", f"each device sends {sent} a step; {bandwidth}/s are enough to hide that behind the work")
        )
    lines.append(("disk", f"all devices together read {_bytes(found.disk.bandwidth)}/s"))
    return lines


def _weighted(corpus: Corpus, pairs: str) -> Lines:
    """What an epoch has of the corpus, where corpora have weights."""
    if corpus.weighted_pairs is None:
        return []
    repeated = ", some more than once" if corpus.weighted_pairs > corpus.pairs else ""
    return [("", f"by its weights an epoch has {corpus.weighted_pairs:,.0f} of {pairs}{repeated}")]


def _memory(found: TrainingPlan, hardware: str | None) -> str:
    """The memory that a device needs, and whether it has enough."""
    from headway.training.planning import HARDWARE

    memory = found.memory
    parts = {"weights": memory.weights, "gradients": memory.gradients, "optimizer": memory.optimizer}
    parts |= {"moving average": memory.average, "copies of weights": memory.copies}
    parts |= {f"activations of {found.tokens_per_micro_batch:,} places": memory.activations}
    text = f"{_bytes(memory.peak)} at most at once on a device: "
    text += ", ".join(f"{name} {_bytes(size)}" for name, size in parts.items() if size)
    room = HARDWARE[hardware].memory if hardware is not None else None
    if room is not None and memory.peak > room:
        text += f". More than its {_bytes(room)}: lower training.tokens_per_micro_batch, or shard the model fully"
    return text


def translating_lines(found: TranslatingPlan, beam_size: int, reached: str) -> Lines:
    device_hours = _counted(f"{found.device_hours:,.4g}", "hour")
    return [
        ("lines", f"{found.lines:,.0f}"),
        _sentence_speed(found, beam_size, reached),
        ("time", f"{_time(found.hours)} on {_counted(f'{found.devices:,}', 'device')}; {device_hours} of a device"),
    ]


def serving_lines(found: ServingPlan, beam_size: int, reached: str) -> Lines:
    return [
        ("load", f"{_counted(f'{found.sentences_per_minute:,.0f}', 'sentence')} a minute"),
        _sentence_speed(found, beam_size, reached),
        ("devices", f"{found.devices:,}, busy {found.busy:.0%} of the time"),
    ]


def _sentence_speed(found: TranslatingPlan | ServingPlan, beam_size: int, reached: str) -> tuple[str, str]:
    rate = f"{found.sentences_per_second:,.4g} sentences/s on a device with a beam of {beam_size}"
    return "speed", f"{rate}: {reached}"


def known_devices() -> tuple[dict[str, object], Lines]:
    """The table of hardware, and the efficiency that the paper's times imply."""
    from headway.model import ModelConfig
    from headway.training.planning import HARDWARE, PAPER

    lines: Lines = [("device", f"{'fp32':>8}{'bf16':>8}{'memory':>9}  source of its peaks, TFLOP/s")]
    for name, one in HARDWARE.items():
        peaks = (f"{speed / 1e12:,.4g}" if speed else "-" for speed in (one.fp32, one.bf16))
        cells = "".join(f"{cell:>8}" for cell in peaks)
        lines.append((name, f"{cells}{_bytes(one.memory) if one.memory else '-':>9}  {one.source}"))
    lines.append(("", ""))
    document: dict[str, object] = {"hardware": {name: asdict(one) for name, one in HARDWARE.items()}}
    paper = {}
    for one in PAPER:
        config = ModelConfig.preset(one.preset, source_vocab_size=one.VOCABULARY, target_vocab_size=one.VOCABULARY)
        work, share = one.work(config), one.efficiency(config)
        paper[one.preset] = {"work": work, "hours": one.hours, "efficiency": share}
        trained = f"{one.steps:,} steps in {one.hours:g} hours on {one.DEVICES} P100"
        lines.append((one.preset, f"{trained} are {work:.3g} FLOPs: {share:.1%} of the peak"))
    return {**document, "paper": paper}, lines


def _counted(number: str, unit: str) -> str:
    """The number with its unit, in the plural unless it is 1."""
    return f"{number} {unit}{'' if number == '1' else 's'}"


def _time(hours: float) -> str:
    if hours < 1:
        return _counted(f"{60 * hours:.3g}", "minute")
    return _counted(f"{hours:,.3g}", "hour") if hours < 72 else _counted(f"{hours / 24:,.3g}", "day")


def _bytes(size: float) -> str:
    """With a decimal unit."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"
