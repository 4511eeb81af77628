"""headway plan"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from headway.cli.options import JsonOutput, given_options
from headway.cli.recipes import read_recipe, shipped_recipes, split_arguments
from headway.errors import UserError
from headway.insight.terminal import draw_table

if TYPE_CHECKING:
    from headway.recipe.planning import Corpus
    from headway.recipe.recipe import Recipe


def _amount(help: str, least: float = 0.001, most: float = 1e15) -> Any:
    return Option(min=least, max=most, help=help)


def plan(
    context: typer.Context,
    arguments: Annotated[list[str] | None, Argument(metavar="[PRESET|RECIPE] [key.path=value]...")] = None,
    pairs: Annotated[float | None, _amount("Pairs in the corpus, such as 4.5e6.", 1)] = None,
    source_tokens: Annotated[float, _amount("Mean tokens of a source, without the end symbol.", 0.1)] = 30,
    target_tokens: Annotated[float, _amount("Mean tokens of a target, without the end symbol.", 0.1)] = 30,
    data: Annotated[Path | None, Option(help="Run or prepared data that gives pairs, tokens and vocabulary.")] = None,
    devices: Annotated[int, Option(min=1, max=10**7, help="GPUs, or processes on CPU, that work together.")] = 1,
    hardware: Annotated[str | None, Option(help="Each device: cpu, p100, a100, h100, h200 or l4.")] = None,
    peak: Annotated[float | None, _amount("Peak of a device in TFLOP/s. Default: as published.")] = None,
    efficiency: Annotated[
        float | None, _amount("Share of the peak that is reached. For training 0.3, a guess.", most=1)
    ] = None,
    measured: Annotated[float | None, _amount("Measured target tokens/s or sentences/s of a device.")] = None,
    translate: Annotated[float | None, _amount("Plan the translation of this many lines.", 1)] = None,
    serve: Annotated[float | None, _amount("Plan a server for this many sentences per minute.")] = None,
    beam_size: Annotated[int | None, Option(min=1, max=1000, help="Beam size. Default: the recipe's.")] = None,
    hours: Annotated[float | None, _amount("Translate in this many hours; computes the devices it takes.")] = None,
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
    _refuse_slips(context)
    from headway.recipe import planning

    if not arguments:
        found, lines = _without_model()
        typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(lines))
        return
    recipe, in_training = recipe_of(arguments), translate is None and serve is None
    recipe = recipe.of_stage(recipe.stages[-1], Path()) if recipe.stages and not in_training else recipe
    if pairs is None and data is None and in_training:
        raise UserError("--pairs is missing: the pairs in the corpus; or give --data, a folder to count them in")
    described = recipe, pairs or 1, (source_tokens, target_tokens), data
    config, corpus = planning.model_and_corpus(*described)
    bf16, highest = planning.precision_and_peak(recipe.training.precision, hardware, peak)
    guessed = in_training and measured is None and efficiency is None
    share = planning.ASSUMED_EFFICIENCY if guessed else efficiency
    if measured is None and (highest is None or share is None):
        timed = "target tokens of `headway train`" if in_training else "sentences of `headway translate`"
        missing = f"--measured is missing, the {timed} in a second"
        raise UserError(f"how fast is a device? {missing}; or give --efficiency and --hardware or --peak")
    using = planning.Devices(devices, hardware == "cpu", bf16, peak=highest, efficiency=share, measured=measured)
    beam = beam_size or recipe.decoding.beam_size
    if not in_training:
        work = planning.work_per_sentence(config, corpus, beam)
        if translate is not None:
            found = planning.plan_translating(translate, using, work, hours)
        else:
            found = planning.plan_serving(serve or 0, using, work)
    elif recipe.stages:
        found = planning.plan_stages(*described, using)
    else:
        found = planning.plan_training(config, corpus, recipe.training, using)
    if (found["efficiency"] or 0) > 1:
        compared = f"is {found['efficiency']:,.0%} of the peak of one device"
        raise UserError(f"--measured {measured:g}: {compared}; is it the speed of all devices together?")
    speed = f"{found['speed'] / 1e12:,.3g} TFLOP/s on a device ({hardware or 'unnamed'})"
    if highest is not None:
        speed += f", {found['efficiency']:.1%} of its {highest / 1e12:,.4g} in {'bf16' if bf16 else 'fp32'}"
    if not in_training:
        lines = _sentences_lines(found, f"a beam of {beam}: {speed}")
    else:
        speed += "; a guess: measure, and give --efficiency or --measured" if guessed else ""
        room = planning.HARDWARE[hardware].memory if hardware else None
        lines = _training_lines(found, corpus, recipe.training.tokens_per_batch, devices, speed, room)
    typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(lines))


def _refuse_slips(context: typer.Context) -> None:
    """Raises UserError for an option that contradicts another or would not be used."""
    given = given_options(context)
    given.pop("as_json", None)
    arguments = context.params["arguments"] or []
    if given and not arguments:
        raise UserError(f"{next(iter(given.values()))} needs a model: give a preset or a recipe, too")
    if "hours" in given and "translate" not in given:
        raise UserError("--hours is for --translate; the hours of a training follow from its --devices")
    if "beam_size" in given and not {"translate", "serve"} & given.keys():
        raise UserError("--beam-size is only for --translate and --serve, not for a training")
    conflicts = [
        ("data", ["pairs", "source_tokens", "target_tokens"], "counts them"),
        ("measured", ["efficiency"], "implies it"),
        ("translate", ["serve", "pairs"], "is a plan of its own"),
        ("serve", ["pairs"], "is a plan of its own"),
        ("serve", ["devices"], "decides how many it takes"),
        ("hours", ["devices"], "decides how many it takes"),
    ]
    for name, others, reason in conflicts:
        if name in given and (refused := given.keys() & set(others)):
            raise UserError(f"{given[min(refused)]} can't be used with {given[name]}, which {reason}")
    if "data" in given and (changes := [one for one in arguments if one.startswith("tokenizer.")]):
        raise UserError(f"{changes[0]} can't be used with --data, which has the vocabulary")


def recipe_of(arguments: list[str]) -> Recipe:
    """The recipe that the arguments name, or one made from a preset and their changes."""
    from headway.model.config import PRESETS
    from headway.recipe.reading import make_recipe

    names, overrides = split_arguments(arguments)
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


def _without_model() -> tuple[dict[str, Any], list[str]]:
    """The known devices and the paper's trainings, as a document and as text."""
    from headway.recipe.planning import HARDWARE, paper_trainings

    rows = [("device", "fp32", "bf16", "memory", "source of its peaks, TFLOP/s")]
    for name, one in HARDWARE.items():
        fp32, bf16 = (f"{peak / 1e12:,.4g}" if peak else "-" for peak in (one.fp32, one.bf16))
        rows.append((name, fp32, bf16, _bytes(one.memory) if one.memory else "-", one.source))
    paper = paper_trainings()
    trained = "{steps:,} steps in {hours:g} hours on 8 P100 are {work:.3g} FLOPs: {efficiency:.1%} of the peak"
    lines = [draw_table(rows), "", *(f"{preset:<10}{trained.format(**one)}" for preset, one in paper.items())]
    return {"hardware": {name: one._asdict() for name, one in HARDWARE.items()}, "paper": paper}, lines


def _training_lines(
    found: dict[str, Any], corpus: Corpus, places: int, devices: int, speed: str, room: float | None
) -> list[str]:
    """Lines on a training, or on its stages. places: of a step. speed, room: of a device, the memory in bytes."""
    if "stages" in found:
        rows = [("stage", "steps", "work", "time", "memory at most")]
        for name, one in {**found["stages"], "all": found}.items():
            work = f"{one['work']['products']:.3g} FLOPs"
            rows.append((name, f"{one['steps']:,}", work, _time(one["hours"]), _bytes(one["memory_peak"])))
        return [draw_table(rows), f"at {speed}"]
    pairs, [source, target] = _counted(corpus.pairs, "pair"), [length - 1 for length in corpus.lengths]
    memory, network, disk = found["memory"], found["network"], found["disk"]
    labels = {"average": "moving average", "copies": "copies of weights"}
    labels["activations"] = f"activations of {found['tokens_per_micro_batch']:,} places"
    labels["merged"] = "merged model in validation"
    parts = ("weights", "gradients", "optimizer", *labels)
    kept = ", ".join(f"{labels.get(part, part)} {_bytes(memory[part])}" for part in parts if memory[part])
    if room is not None and memory["peak"] > room:
        kept += f". More than its {_bytes(room)}: lower training.tokens_per_micro_batch or the sizes of the model"
    lines = [
        f"model     {found['parameters']:,} parameters, {found['parameters_in_products']:,} of them in products",
        f"corpus    {pairs} of {source:.3g} source and {target:.3g} target tokens on average; "
        f"{_bytes(disk['bytes'])} when prepared",
        f"steps     {found['steps']:,} of {places:,} places; an epoch has {found['steps_per_epoch']:,}",
        "work      {products:.3g} FLOPs, and {scores:.2g} for the scores of attention".format(**found["work"]),
        f"speed     {speed}",
        f"          {found['tokens_per_second']:,.0f} target tokens/s on {_counted(devices, 'device')}, "
        f"{found['seconds_per_step']:.3g} s a step",
        f"time      {_time(found['hours'])}",
        f"memory    {_bytes(memory['peak'])} at most at once on a device: {kept}",
        f"disk      all devices together read {_bytes(disk['bandwidth'])}/s",
    ]
    if network is not None:
        enough = f"{_bytes(network['bandwidth'])}/s are enough to hide that behind the work"
        lines.insert(-1, f"network   each device sends {_bytes(network['bytes_per_step'])} a step; {enough}")
    if corpus.pairs_of_epoch != corpus.pairs:
        repeated = ", some more than once" if corpus.pairs_of_epoch > corpus.pairs else ""
        lines.insert(2, f"          by its weights an epoch has {corpus.pairs_of_epoch:,.0f} of {pairs}{repeated}")
    return lines


def _sentences_lines(found: dict[str, Any], beam_and_speed: str) -> list[str]:
    speed = f"speed     {found['sentences_per_second']:,.4g} sentences/s on a device with {beam_and_speed}"
    if "lines" not in found:
        load = f"load      {_counted(found['sentences_per_minute'], 'sentence')} a minute"
        return [load, speed, f"devices   {found['devices']:,}, busy {found['busy']:.0%} of the time"]
    devices, device_hours = _counted(found["devices"], "device"), _counted(found["device_hours"], "hour", ",.4g")
    time = f"time      {_time(found['hours'])} on {devices}; {device_hours} of a device"
    return [f"lines     {found['lines']:,.0f}", speed, time]


def _counted(number: float, unit: str, spec: str = ",.0f") -> str:
    """The number with its unit, in the plural unless it is 1."""
    return f"{number:{spec}} {unit}{'' if f'{number:{spec}}' == '1' else 's'}"


def _time(hours: float) -> str:
    if hours < 1:
        return _counted(60 * hours, "minute", ".3g")
    return _counted(hours, "hour", ".3g") if hours < 72 else _counted(hours / 24, "day", ",.3g")


def _bytes(size: float) -> str:
    """The number of bytes with a decimal unit, such as `1.36 TB`."""
    for unit, name in ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= 0.9995 * unit:  # rounded to three digits it is one
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"
