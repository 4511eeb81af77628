"""headway plan"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import JsonOutput, given_options
from headway.cli.planned import Lines, known_devices, serving_lines, speed_reached, training_lines, translating_lines
from headway.cli.recipes import read_recipe, shipped_recipes
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.model import ModelConfig
    from headway.training.planning import Batches, Corpus, Devices
    from headway.training.recipe import Recipe


def plan(
    context: typer.Context,
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
        typer.Option(metavar="FOLDER", help="Count pairs, tokens and vocabulary in this run or prepared data."),
    ] = None,
    devices: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**7, help="GPUs, or processes on CPU, that work together.")
    ] = 1,
    hardware: Annotated[
        str | None, typer.Option(metavar="NAME", help="What each device is: cpu, p100, a100, h100, h200 or l4.")
    ] = None,
    peak: Annotated[
        float | None,
        typer.Option(metavar="TFLOPS", help="Peak of one device in the precision used. Default: the published peak."),
    ] = None,
    efficiency: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Measured share of the peak. Default for training: 0.3, a guess."),
    ] = None,
    measured: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="Measured speed of one device, instead of --efficiency: target tokens per second for training, "
            "sentences per second for translating.",
        ),
    ] = None,
    sharding: Annotated[
        str, typer.Option(help="none: the whole model on each device (DDP); full: a part of it (FSDP2).")
    ] = "none",
    translate: Annotated[
        float | None,
        typer.Option(metavar="LINES", help="Plan the translation of this many lines instead of a training run."),
    ] = None,
    serve: Annotated[
        float | None,
        typer.Option(
            metavar="RATE", help="Plan a server for this many sentences per minute instead of a training run."
        ),
    ] = None,
    beam_size: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Beam size for translating. Default: the recipe's own."),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(metavar="N", help="Translate within this many hours, with as many devices as it takes."),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Calculate time, memory and bandwidth on paper.

    The model is a preset, or that of a recipe: a file, or the name of a recipe that comes with headway.
    key.path=value changes the recipe. Without a model, shows the known devices and the efficiency that the paper's
    times imply.

    \b
    headway plan
    headway plan base tokenizer.vocab_size=32000 --pairs 4.5e6 --devices 8 --hardware h100 --efficiency 0.35
    headway plan mine.yaml --data runs/mine --hardware cpu --measured 5400
    headway plan base --translate 1e9 --beam-size 4 --measured 900 --hours 24
    headway plan base --serve 1e6 --measured 900
    """
    numbers = {"--pairs": pairs, "--source-tokens": source_tokens, "--target-tokens": target_tokens, "--peak": peak}
    numbers |= {"--measured": measured, "--translate": translate, "--serve": serve, "--hours": hours}
    _refuse_impossible(numbers, efficiency)
    if efficiency is not None and measured is not None:
        raise UserError("give --efficiency or --measured, not both: each follows from the other")
    if translate is not None and serve is not None:
        raise UserError("give --translate or --serve: one plan at a time")
    if hours is not None and translate is None:
        raise UserError("--hours is for --translate; the hours of a training follow from its --devices")
    if sharding not in ("none", "full"):
        raise UserError(f"--sharding {sharding}: must be none or full")
    _refuse_unused(context, arguments or [])
    if not arguments:
        _print(*known_devices(), as_json=as_json)
        return

    from headway.training import planning

    recipe = _recipe(arguments)
    in_training = translate is None and serve is None
    corpus = _corpus(recipe, pairs, (source_tokens, target_tokens), data, in_training=in_training)
    config = _config(recipe, data)
    bf16 = _in_bf16(recipe, hardware, peak)
    if in_training:
        batches = _batches(recipe, corpus)
        passes, optimizer = recipe.training.passes, recipe.training.optimizer
        work = planning.work_per_target_token(config, corpus, batches, passes=passes, optimizer=optimizer)
        share = planning.ASSUMED_EFFICIENCY if efficiency is None else efficiency
        using = _devices(devices, hardware, peak, bf16, share, measured, work)
        guessed = efficiency is None and measured is None
        training = planning.plan_training(
            config,
            corpus,
            batches,
            using,
            bf16=bf16,
            sharding="full" if sharding == "full" else "none",
            moving_average=bool(recipe.training.ema_decay),
            passes=passes,
            optimizer=optimizer,
        )
        lines = training_lines(
            training, corpus, recipe, speed_reached(using, hardware, bf16, guessed), hardware, devices
        )
        _print({**asdict(training), "memory_peak": training.memory.peak}, lines, as_json=as_json)
        return
    if efficiency is None and measured is None:
        raise UserError(
            "--measured is missing: the sentences that one device translates in a second; time `headway translate` "
            "with a model of this size and the same beam"
        )
    beam = beam_size or recipe.decoding.beam_size
    work = planning.work_per_sentence(config, corpus, beam)
    using = _devices(devices, hardware, peak, bf16, efficiency, measured, work)
    reached = speed_reached(using, hardware, bf16)
    if translate is not None:
        translating = planning.plan_translating(translate, using, work, hours)
        _print(asdict(translating), translating_lines(translating, beam, reached), as_json=as_json)
    elif serve is not None:
        serving = planning.plan_serving(serve, using, work)
        _print(asdict(serving), serving_lines(serving, beam, reached), as_json=as_json)


def _refuse_impossible(numbers: dict[str, float | None], efficiency: float | None) -> None:
    """numbers: by their flags. Raises UserError."""
    for name, value in numbers.items():
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{name} {value:g}: must be a number above 0")
        if value is not None and value < 1 and name in ("--pairs", "--translate"):
            raise UserError(f"{name} {value:g}: must be at least 1")
    if efficiency is not None and not 0 < efficiency <= 1:
        raise UserError(f"--efficiency {efficiency:g}: must be above 0 and at most 1, the share of the peak")


def _refuse_unused(context: typer.Context, arguments: list[str]) -> None:
    """Raises UserError for an option or a change on the command line that the plan would not use."""
    given = given_options(context)
    given.pop("as_json", None)
    if given and not arguments:
        raise UserError(f"{next(iter(given.values()))} needs a model: give a preset or a recipe, too")
    unused = {}
    if "data" in given:
        unused |= dict.fromkeys(("source_tokens", "target_tokens"), "not with --data, which has the lengths")
    for plan in {"translate", "serve"} & given.keys():
        unused |= dict.fromkeys(("pairs", "sharding"), f"only for a training, not for --{plan}")
    if not {"translate", "serve"} & given.keys():
        unused["beam_size"] = "only for --translate and --serve, not for a training"
    for plan in {"hours", "serve"} & given.keys():
        unused["devices"] = f"not with --{plan}, which decides how many devices it takes"
    for name, flag in given.items():
        if name in unused:
            raise UserError(f"{flag} is {unused[name]}")
    for change in arguments:
        if "data" in given and change.startswith("tokenizer."):
            raise UserError(f"{change} is not with --data, which has the vocabulary")


def _print(document: dict[str, object], lines: Lines, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        typer.echo("\n".join(f"{name:<10}{text}".rstrip() for name, text in lines))


def _recipe(arguments: list[str]) -> Recipe:
    """The recipe that the arguments name, or one made from a preset and their changes."""
    from headway.model.config import PRESETS
    from headway.training.reading import make_recipe

    overrides = [argument for argument in arguments if "=" in argument]
    names = [argument for argument in arguments if "=" not in argument]
    if len(names) != 1:
        given = f", not {' and '.join(names)}" if names else ""
        raise UserError(f"give one preset ({', '.join(PRESETS)}) or one recipe{given}; changes are key.path=value")
    [name] = names
    if name in PRESETS:
        corpus = {"source": "corpus.source", "target": "corpus.target"}  # never read
        data = {"train": corpus, "valid": corpus, "source_language": "source", "target_language": "target"}
        document = {"data": data, "model": {"preset": name}, "training": {"patience": 1}}
        return make_recipe(document, overrides, origin=name)
    if not Path(name).exists() and name not in shipped_recipes():
        raise UserError(f"{name}: no such file, and no preset or recipe of that name; presets: {', '.join(PRESETS)}")
    return read_recipe(name, overrides)[0]


def _config(recipe: Recipe, data: Path | None) -> ModelConfig:
    """With the vocabularies of prepared data, or those that the recipe asks for. Raises UserError."""
    from headway.model import ModelConfig
    from headway.training.prepared import find_tokenizer

    options = recipe.model_options()
    if data is None:
        size = recipe.tokenizer.vocab_size
        return ModelConfig.preset(**options, source_vocab_size=size, target_vocab_size=size)
    folder = _prepared_of(data)
    source, target = (find_tokenizer(folder, side) for side in ("source", "target"))
    try:
        return ModelConfig.preset(**options, source_vocab_size=source.vocab_size, target_vocab_size=target.vocab_size)
    except ValueError as error:
        raise UserError(f"{data}: {error}") from None


def _corpus(
    recipe: Recipe, pairs: float | None, lengths: tuple[float, float], data: Path | None, *, in_training: bool
) -> Corpus:
    """The corpus as the options describe it, or as counted in prepared data. Only a training needs the pairs."""
    from headway.text.encoding import ids_dtype
    from headway.training.planning import Corpus

    if data is not None:
        if pairs is not None:
            raise UserError("give --pairs or --data, not both")
        return _counted_corpus(recipe, data)
    if pairs is None and in_training:
        raise UserError(
            "--pairs is missing: the number of pairs in the corpus; or give --data, a folder to count them in"
        )
    source_length, target_length = (length + 1 for length in lengths)
    bytes_per_id = ids_dtype(recipe.tokenizer.vocab_size).itemsize
    return Corpus(pairs or 1, source_length, target_length, bytes_per_id, versions=recipe.versions)


def _counted_corpus(recipe: Recipe, data: Path) -> Corpus:
    """The corpus in prepared data, or in the data of a run."""
    from headway.text.shards import ParallelIds
    from headway.training.planning import Corpus

    folder = _prepared_of(data)
    try:
        ids = ParallelIds(folder / "train")
        source_length, target_length = (length + 1 for length in ids.mean_lengths)
        bytes_per_id = ids.source[0].dtype.itemsize
    except (OSError, ValueError, ZeroDivisionError):
        problem = "is neither a run directory nor prepared data, or it has no pair yet"
        if folder not in (data, data / "data"):
            problem = f"its data.prepared, {folder}, is gone or isn't prepared data"
        raise UserError(f"{data}: {problem}") from None
    weights = [corpus.weight for corpus in recipe.data.corpora]
    weighted = None
    if len(weights) == len(ids.sizes) and set(weights) != {1}:
        weighted = sum(size * weight for size, weight in zip(ids.sizes, weights, strict=True))
    return Corpus(sum(ids.sizes), source_length, target_length, bytes_per_id, weighted, ids.versions)


def _prepared_of(data: Path) -> Path:
    """The prepared data: of a run its own, or the folder that its recipe names; otherwise `data` itself."""
    from headway.training.reading import load_recipe
    from headway.training.run_directory import is_run

    if (data / "data").is_dir():
        return data / "data"
    return (load_recipe(data / "recipe.yaml").data.prepared if is_run(data) else None) or data


def _batches(recipe: Recipe, corpus: Corpus) -> Batches:
    """Raises UserError if a step has no room for a pair."""
    from headway.training.planning import Batches

    options = recipe.training
    if options.tokens_per_batch < corpus.tokens_per_pair:
        raise UserError(
            f"training.tokens_per_batch={options.tokens_per_batch}: has no room for a pair, which takes "
            f"{corpus.tokens_per_pair:.3g} tokens on average, with the end symbols"
        )
    return Batches(options.tokens_per_batch, options.micro_batch_budget, options.max_steps, options.max_epochs)


def _in_bf16(recipe: Recipe, hardware: str | None, peak: float | None) -> bool:
    """Whether products are in bf16. Raises UserError if the recipe asks for bf16 and the hardware has none."""
    from headway.training.planning import HARDWARE

    known = HARDWARE.get(hardware or "cpu")
    if known is None:
        raise UserError(
            f"--hardware {hardware}: unknown; choose one of {', '.join(HARDWARE)}; for any other give only its --peak"
        )
    has_bf16 = known.bf16 is not None or hardware in (None, "cpu") or peak is not None
    if recipe.training.precision == "bf16" and not has_bf16:
        raise UserError(f"training.precision=bf16: {hardware} has no bf16; use fp32, or give its --peak")
    return recipe.training.precision != "fp32" and has_bf16


def _devices(
    count: int,
    hardware: str | None,
    peak: float | None,
    bf16: bool,
    share: float | None,
    measured: float | None,
    work: float,
) -> Devices:
    """share: of the peak. measured: tokens or sentences a second of one device, of `work` FLOPs each, which take
    precedence."""
    from headway.training.planning import HARDWARE, Devices

    known = HARDWARE.get(hardware or "")
    published = known and (known.bf16 if bf16 else known.fp32)
    highest = peak * 1e12 if peak is not None else published
    if measured is not None:
        speed = measured * work
        if highest is not None and speed > highest:
            raise UserError(
                f"--measured {measured:g}: is {speed / highest:,.0%} of the peak of one device; is it the speed of all "
                "devices together?"
            )
    elif highest is None or share is None:
        raise UserError(
            "how fast is a device? Give --hardware for its published peak, --peak for another, or --measured"
        )
    else:
        speed = highest * share
    return Devices(count, speed, highest, on_cpu=hardware == "cpu")
