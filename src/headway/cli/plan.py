"""headway plan"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import JsonOutput
from headway.cli.recipes import read_recipe, shipped_recipes
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.model import ModelConfig
    from headway.training.planning import Batches, Corpus, Devices, ServingPlan, TrainingPlan, TranslatingPlan
    from headway.training.recipe import Recipe

Lines = list[tuple[str, str]]
"""What each line of a plan is about, and what it says."""


def plan(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[PRESET|RECIPE] [key.path=value]...", show_default=False)
    ] = None,
    pairs: Annotated[float | None, typer.Option(metavar="N", help="Pairs in the corpus, such as 4.5e6.")] = None,
    source_tokens: Annotated[
        float, typer.Option(metavar="N", help="Mean tokens of a source sentence, without the end symbol.")
    ] = 30,
    target_tokens: Annotated[
        float, typer.Option(metavar="N", help="Mean tokens of a target sentence, without the end symbol.")
    ] = 30,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Count pairs and tokens in this run directory or prepared data."),
    ] = None,
    devices: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**7, help="GPUs, or processes on CPU, that work together.")
    ] = 1,
    hardware: Annotated[
        str | None, typer.Option(metavar="NAME", help="What each device is: cpu, p100, a100, h100, h200 or l4.")
    ] = None,
    peak: Annotated[
        float | None,
        typer.Option(metavar="TFLOPS", help="Peak of one device in the precision that is used. Default: as published."),
    ] = None,
    efficiency: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the peak that was measured. Default in training: 0.3, a guess."),
    ] = None,
    measured: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="Speed that was measured on one device, in place of --efficiency: target tokens a second in training, "
            "sentences a second in translating.",
        ),
    ] = None,
    sharding: Annotated[
        str, typer.Option(help="none: the whole model on each device (DDP); full: a part of it (FSDP2).")
    ] = "none",
    translate: Annotated[
        float | None, typer.Option(metavar="LINES", help="Plan the translation of so many lines, not a training.")
    ] = None,
    serve: Annotated[
        float | None, typer.Option(metavar="RATE", help="Plan a server of so many sentences a minute, not a training.")
    ] = None,
    beam_size: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Hypotheses side by side in translating. Default: the recipe's own."),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(metavar="N", help="Translate in so many hours, with as many devices as that takes.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Work out time, memory and bandwidth on paper.

    A model is a preset, or that of a recipe: a file, or the name of one that comes with headway. Changes are those of
    a recipe's keys. Without a model, shows the devices that are known and the efficiency that the paper's times imply.

    \b
    headway plan
    headway plan base tokenizer.vocab_size=32000 --pairs 4.5e6 --devices 8 --hardware h100 --efficiency 0.35
    headway plan mine.yaml --data runs/mine --hardware cpu --measured 5400
    headway plan base --translate 1e9 --beam-size 4 --measured 900 --hours 24
    headway plan base --serve 1e6 --measured 900
    """
    numbers = {"--pairs": pairs, "--source-tokens": source_tokens, "--target-tokens": target_tokens, "--peak": peak}
    numbers |= {"--measured": measured, "--translate": translate, "--serve": serve, "--hours": hours}
    for name, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{name} {value:g}: must be a number above 0")
    if efficiency is not None and not 0 < efficiency <= 1:
        raise UserError(f"--efficiency {efficiency:g}: must be above 0 and at most 1, the share of the peak")
    if efficiency is not None and measured is not None:
        raise UserError("give --efficiency or --measured, not both: each follows from the other")
    if translate is not None and serve is not None:
        raise UserError("give --translate or --serve: one plan at a time")
    if hours is not None and translate is None:
        raise UserError("--hours is for --translate; the hours of a training follow from its --devices")
    if sharding not in ("none", "full"):
        raise UserError(f"--sharding {sharding}: must be none or full")
    if not arguments:
        _print(*_known(), as_json=as_json)
        return

    from headway.training import planning

    recipe = _recipe(arguments)
    config = _config(recipe)
    in_training = translate is None and serve is None
    corpus = _corpus(recipe, pairs, (source_tokens, target_tokens), data, in_training=in_training)
    bf16 = _in_bf16(recipe, hardware, peak)
    if in_training:
        work = planning.work_per_target_token(config, corpus)
        share = planning.ASSUMED_EFFICIENCY if efficiency is None else efficiency
        using = _devices(devices, hardware, peak, bf16, share, measured and measured * work)
        guessed = efficiency is None and measured is None
        training = planning.plan_training(
            config,
            corpus,
            _batches(recipe),
            using,
            bf16=bf16,
            sharding="full" if sharding == "full" else "none",
            moving_average=bool(recipe.training.ema_decay),
        )
        lines = _training_lines(training, corpus, recipe, _named(using, hardware, bf16, guessed), hardware, devices)
        _print({**asdict(training), "memory_peak": training.memory.peak}, lines, as_json=as_json)
        return
    if efficiency is None and measured is None:
        raise UserError(
            "--measured is missing: the sentences that one device translates in a second; time `headway translate` "
            "with a model of this size and the same beam"
        )
    beam = beam_size or recipe.decoding.beam_size
    work = planning.work_per_sentence(config, corpus, beam)
    using = _devices(devices, hardware, peak, bf16, efficiency, measured and measured * work)
    named = _named(using, hardware, bf16)
    if translate is not None:
        translating = planning.plan_translating(translate, using, work, hours)
        _print(asdict(translating), _translating_lines(translating, beam, named), as_json=as_json)
    elif serve is not None:
        serving = planning.plan_serving(serve, using, work)
        _print(asdict(serving), _serving_lines(serving, beam, named), as_json=as_json)


def _print(document: dict[str, object], lines: Lines, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        typer.echo("\n".join(f"{name:<10}{text}" for name, text in lines))


def _recipe(arguments: list[str]) -> Recipe:
    """That of the arguments, or one that is a preset with their changes."""
    from headway.model.config import PRESETS
    from headway.training.reading import make_recipe

    overrides = [argument for argument in arguments if "=" in argument]
    names = [argument for argument in arguments if "=" not in argument]
    if len(names) != 1:
        given = f", not {' and '.join(names)}" if names else ""
        raise UserError(f"give one preset ({', '.join(PRESETS)}) or one recipe{given}; changes are key.path=value")
    [name] = names
    if name in PRESETS:
        corpus = {"source": "corpus.source", "target": "corpus.target"}  # of which nothing is read
        document = {"data": {"train": corpus, "valid": corpus}, "model": {"preset": name}, "training": {"patience": 1}}
        return make_recipe(document, overrides, origin=name)
    if not Path(name).exists() and name not in shipped_recipes():
        raise UserError(f"{name}: no such file, and no preset or recipe of that name; presets: {', '.join(PRESETS)}")
    return read_recipe(name, overrides)[0]


def _config(recipe: Recipe) -> ModelConfig:
    from headway.model import ModelConfig

    size = recipe.tokenizer.vocab_size
    return ModelConfig.preset(**recipe.model_options(), source_vocab_size=size, target_vocab_size=size)


def _corpus(
    recipe: Recipe, pairs: float | None, lengths: tuple[float, float], data: Path | None, *, in_training: bool
) -> Corpus:
    """As it is told, or as it is counted in prepared data. Where no training is planned, only its lengths matter."""
    from headway.text.shards import ParallelIds
    from headway.training.planning import Corpus

    if data is not None:
        if pairs is not None:
            raise UserError("give --pairs or --data, not both")
        folder = data / "data" if (data / "data").is_dir() else data
        try:
            ids = ParallelIds(folder / "train")
            pairs, lengths = _pairs_of_epoch(recipe, ids.sizes), ids.mean_lengths
        except (OSError, ValueError, ZeroDivisionError):
            raise UserError(f"{data}: is neither a run directory nor prepared data, or it has no pair yet") from None
    elif pairs is None and in_training:
        raise UserError("--pairs is missing: how many the corpus has; or --data, a folder to count them in")
    return Corpus(pairs or 1, *(length + 1 for length in lengths))


def _pairs_of_epoch(recipe: Recipe, sizes: list[int]) -> float:
    """An epoch has the pairs of each corpus as often as its weight says."""
    weights = [corpus.weight for corpus in recipe.data.train]
    return sum(size * weight for size, weight in zip(sizes, weights, strict=False)) if len(weights) > 1 else sum(sizes)


def _batches(recipe: Recipe) -> Batches:
    from headway.training.planning import Batches

    options = recipe.training
    return Batches(options.tokens_per_batch, options.micro_batch_budget, options.max_steps, options.max_epochs)


def _in_bf16(recipe: Recipe, hardware: str | None, peak: float | None) -> bool:
    """Raises UserError where the recipe asks for what the hardware hasn't."""
    from headway.training.planning import HARDWARE

    known = HARDWARE.get(hardware or "cpu")
    if known is None:
        raise UserError(f"--hardware {hardware}: there are {', '.join(HARDWARE)}; of any other give the --peak alone")
    has_bf16 = known.bf16 is not None or hardware in (None, "cpu") or peak is not None
    if recipe.training.precision == "bf16" and not has_bf16:
        raise UserError(f"training.precision=bf16: {hardware} has no bf16; take fp32, or give the --peak that it has")
    return recipe.training.precision != "fp32" and has_bf16


def _devices(
    count: int, hardware: str | None, peak: float | None, bf16: bool, share: float | None, speed: float | None
) -> Devices:
    """share: of the peak; speed: FLOP/s that were measured, which goes first."""
    from headway.training.planning import HARDWARE, Devices

    known = HARDWARE.get(hardware or "")
    published = known and (known.bf16 if bf16 else known.fp32)
    highest = peak * 1e12 if peak is not None else published
    if speed is None:
        if highest is None or share is None:
            raise UserError(
                "how fast is a device? Give --hardware for its published peak, --peak with one of your own, or --measured"
            )
        speed = highest * share
    return Devices(count, speed, highest, on_cpu=hardware == "cpu")


def _named(devices: Devices, hardware: str | None, bf16: bool, guessed: bool = False) -> str:
    """The devices and what is reached of them."""
    text = f"{devices.speed / 1e12:,.3g} TFLOP/s on a device ({hardware or 'unnamed'})"
    if devices.peak is not None and devices.efficiency is not None:
        text += f", {devices.efficiency:.1%} of its {devices.peak / 1e12:,.4g} in {'bf16' if bf16 else 'fp32'}"
    return f"{text}; a guess: measure, and give --efficiency or --measured" if guessed else text


def _training_lines(
    found: TrainingPlan, corpus: Corpus, recipe: Recipe, named: str, hardware: str | None, count: int
) -> Lines:
    tokens = recipe.training.tokens_per_batch
    lengths = f"{corpus.source_length - 1:.3g} source and {corpus.target_length - 1:.3g} target tokens"
    lines = [
        ("model", f"{found.parameters:,} parameters, {found.parameters_in_products:,} of them in products"),
        ("corpus", f"{corpus.pairs:,.0f} pairs of {lengths} on average; {_bytes(found.disk.bytes)} when prepared"),
        ("steps", f"{found.steps:,} of {tokens:,} places, {found.epochs:,.3g} epochs"),
        ("work", f"{found.work.products:.3g} FLOPs, and {found.work.scores:.2g} for the scores of attention"),
        ("speed", named),
        ("", f"{found.tokens_per_second:,.0f} target tokens/s on {_counted(count)}, {found.seconds_per_step:.3g} s a step"),
        ("time", _time(found.hours)),
        ("memory", _memory(found, hardware)),
    ]
    if found.network is not None:
        sent, bandwidth = _bytes(found.network.bytes_per_step), _bytes(found.network.bandwidth)
        lines.append(("network", f"each device sends and receives {sent} a step; {bandwidth}/s hide it behind the work"))
    lines.append(("disk", f"{_bytes(found.disk.bandwidth)}/s are read, by all devices together"))
    return lines


def _memory(found: TrainingPlan, hardware: str | None) -> str:
    """What a device needs, and whether it has that."""
    from headway.training.planning import HARDWARE

    memory = found.memory
    parts = {"weights": memory.weights, "gradients": memory.gradients, "Adam": memory.optimizer}
    parts |= {"moving average": memory.average, "copies of weights": memory.copies}
    parts |= {f"activations of {found.tokens_per_micro_batch:,} places": memory.activations}
    text = f"{_bytes(memory.peak)} at most at once on a device: "
    text += ", ".join(f"{name} {_bytes(size)}" for name, size in parts.items() if size)
    room = HARDWARE[hardware].memory if hardware is not None else None
    if room is not None and memory.peak > room:
        text += f". More than its {_bytes(room)}: lower training.tokens_per_micro_batch, or take --sharding full"
    return text


def _translating_lines(found: TranslatingPlan, beam_size: int, named: str) -> Lines:
    rate = f"{found.sentences_per_second:,.4g} sentences/s on a device with a beam of {beam_size}"
    return [
        ("lines", f"{found.lines:,.0f}"),
        ("speed", f"{rate}: {named}"),
        ("time", f"{_time(found.hours)} on {_counted(found.devices)}; {found.device_hours:,.4g} hours of a device"),
    ]


def _serving_lines(found: ServingPlan, beam_size: int, named: str) -> Lines:
    rate = f"{found.sentences_per_second:,.4g} sentences/s on a device with a beam of {beam_size}"
    return [
        ("load", f"{found.sentences_per_minute:,.0f} sentences a minute"),
        ("speed", f"{rate}: {named}"),
        ("devices", f"{found.devices:,}, busy {found.busy:.0%} of the time"),
    ]


def _known() -> tuple[dict[str, object], Lines]:
    """The table of hardware, and what the paper's times imply."""
    from headway.model import ModelConfig
    from headway.training.planning import HARDWARE, PAPER

    lines: Lines = [("device", f"{'fp32':>8}{'bf16':>8}{'memory':>9}  source of its peaks, TFLOP/s")]
    for name, known in HARDWARE.items():
        peaks = (f"{speed / 1e12:,.4g}" if speed else "-" for speed in (known.fp32, known.bf16))
        cells = "".join(f"{cell:>8}" for cell in peaks)
        lines.append((name, f"{cells}{_bytes(known.memory) if known.memory else '-':>9}  {known.source}"))
    lines.append(("", ""))
    document: dict[str, object] = {"hardware": {name: asdict(known) for name, known in HARDWARE.items()}}
    paper = {}
    for one in PAPER:
        config = ModelConfig.preset(one.preset, source_vocab_size=one.VOCABULARY, target_vocab_size=one.VOCABULARY)
        work, share = one.work(config), one.efficiency(config)
        paper[one.preset] = {"work": work, "hours": one.hours, "efficiency": share}
        trained = f"{one.steps:,} steps in {one.hours:g} hours on {one.DEVICES} P100"
        lines.append((one.preset, f"{trained} are {work:.3g} FLOPs: {share:.1%} of the peak"))
    return {**document, "paper": paper}, lines


def _counted(devices: int) -> str:
    return f"{devices:,} device{'' if devices == 1 else 's'}"


def _time(hours: float) -> str:
    if hours < 1:
        return f"{60 * hours:.3g} minutes"
    return f"{hours:,.3g} hours" if hours < 72 else f"{hours / 24:,.3g} days"


def _bytes(size: float) -> str:
    """With a decimal unit."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"
