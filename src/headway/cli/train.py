"""headway train and headway prepare"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.recipes import check_given, read_recipe, recipe_list, split_arguments
from headway.cli.streams import tell
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.training.checkpoint import Progress
    from headway.training.recipe import Recipe

PRESET_SIZES = "textbook (10.2M parameters), tiny (2.3M), small (6.0M), base (48.2M), big (184.5M)"
"""With vocabularies of 8,000 pieces. Written out, because help needs no torch; a test counts the parameters."""


def train(
    arguments: Annotated[list[str] | None, Argument(metavar="[RECIPE] [key.path=value]...", show_default=False)] = None,
    output: Annotated[Path | None, options.output("Run directory to make. Default: runs/RECIPE.", "RUN")] = None,
    source: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="Training text, one sentence per line (.gz, .xz, .zst allowed). Repeat the option for more files.",
        ),
    ] = None,
    target: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="Its translation, line for line. Leave it out if --source is .tsv or .jsonl."),
    ] = None,
    valid_source: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Validation text, which the model never learns from.")
    ] = None,
    valid_target: Annotated[
        list[Path] | None, Option(metavar="FILE", help="The translation of the validation text.")
    ] = None,
    preset: Annotated[
        str | None,
        Option(metavar="NAME", help=f"Size of the model, with a vocabulary of 8,000 tokens: {PRESET_SIZES}."),
    ] = None,
    init_from: Annotated[
        Path | None, Option(metavar="MODEL", help="Start from this model's weights and vocabulary.")
    ] = None,
    data: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Train on the data that `headway prepare` made from this recipe in FOLDER."),
    ] = None,
    resume: Annotated[Path | None, Option(metavar="RUN", help="Continue a run where it stopped.")] = None,
    or_resume: Annotated[
        bool, Option("--or-resume", help="If RUN already has a run, continue it; for jobs that restart.")
    ] = False,
    minutes: Annotated[float | None, Option(min=0, metavar="N", help="With --finish: the minutes it may take.")] = None,
    finish: Annotated[
        bool,
        Option("--finish", help="With --resume and --minutes: let the learning rate fall to zero, and end the run."),
    ] = False,
    processes: Annotated[
        int, Option(min=1, max=256, help="Number of processes on this machine; on CPU each needs a core or more.")
    ] = 1,
    list_recipes: Annotated[bool, Option("--list", help="List the recipes that come with headway.")] = False,
    threads: options.Threads = None,
) -> None:
    """Train a model from a recipe, or from your own text files.

    RECIPE is a YAML file, or the name of a recipe that comes with headway. Such a recipe reads its text from data/
    in the current folder, where `headway data` puts it. For your own text, give two files to train on and two to
    validate on.

    \b
    headway train --list
    headway train multi30k-de-en
    headway train multi30k-de-en training.seed=2 model.dropout=0.2
    headway train mine.yaml --output runs/mine
    headway train --source train.de --target train.en --valid-source valid.de --valid-target valid.en --output runs/mine
    headway train --source train.tsv --valid-source valid.tsv --output runs/tuned --init-from runs/mine
    headway train mine.yaml --data prepared
    headway train --resume runs/mine training.max_minutes=60
    headway train --resume runs/mine --minutes 5 --finish
    """
    bound_spinning()
    from headway.training.run_directory import has_begun, refuse_used_folder

    if list_recipes:
        typer.echo(recipe_list())
        return
    recipes, overrides = split_arguments(arguments or [])
    files = {"source": source, "target": target, "valid_source": valid_source, "valid_target": valid_target}
    given = {"model.preset": preset, "training.init_from": init_from, "data.prepared": data}
    overrides += [f"{key}={json.dumps(str(value))}" for key, value in given.items() if value is not None]
    if len(recipes) > 1:
        raise UserError(f"one recipe at a time, not {' and '.join(recipes)}; changes are key.path=value")
    if (resume is not None) + bool(recipes) + any(files.values()) != 1:
        also = f" (given: {recipes[0]})" if recipes else ""
        raise UserError(
            f"give one of: a RECIPE; --source, --target, --valid-source, --valid-target; --resume RUN{also}"
        )
    if finish != (minutes is not None) or (finish and resume is None):
        raise UserError("--finish ends a run that is there: give --resume RUN --minutes N --finish")
    if resume is not None:
        if output is not None:
            raise UserError("--resume goes on in its own run directory, so there is no --output")
        recipe, run = _resumed(resume, overrides, minutes), resume
    else:
        recipe, run = _new(recipes, files, overrides, output)
        restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # by torch's launcher
        if not ((or_resume or restarted) and has_begun(run)):
            refuse_used_folder(run)
            for part in [recipe.of_stage(stage, run) for stage in recipe.stages] or [recipe]:
                if part.data.prepared is None:
                    check_given(part)
    if processes > 1 and not is_rank():
        from headway.training.processes import launch

        raise typer.Exit(launch(sys.argv[1:], processes))
    many = f" --processes {processes}" if processes > 1 else ""
    progress = run_training(recipe, run, f"train --resume {shlex.quote(str(run))}{many}", threads)
    if not leads():
        return
    stages = f"{len(recipe.stages)} stages, the last one of " if recipe.stages else ""
    steps = f"{stages}{progress.step:,} steps in {progress.all_minutes:.1f} minutes"
    tell(f"done: {steps}, best after {progress.best_step:,}")
    tag = f">>{recipe.data.tags[0]}<< " if recipe.data.tags else ""
    tell(f"try: echo '{tag}a sentence' | {program()} translate {shlex.quote(str(run))}")


def _new(recipes: list[str], files: dict[str, Any], overrides: list[str], output: Path | None) -> tuple[Recipe, Path]:
    """The recipe of a new run, and its folder. Raises UserError."""
    from headway.training.reading import make_recipe

    if recipes:
        recipe, name = read_recipe(recipes[0], overrides)
        return recipe, output or Path("runs") / name
    for name in ("source", "valid_source"):
        if not files[name]:
            raise UserError(f"--{name.replace('_', '-')} is missing")
    paths = {name: [str(path) for path in value or []] for name, value in files.items()}
    document = {
        "data": {
            "train": {"source": paths["source"], "target": paths["target"]},
            "valid": {"source": paths["valid_source"], "target": paths["valid_target"]},
        },
        "training": {"patience": 10},
    }
    recipe = make_recipe(document, overrides, origin="command line")
    if output is None:
        raise UserError("--output is missing: the run directory to make")
    return recipe, output


def _resumed(run: Path, overrides: list[str], minutes: float | None) -> Recipe:
    """The recipe of a run that goes on; with `minutes`, it has the limits that end it then, unless others are given.
    Raises UserError."""
    from headway.training.cooldown import cooldown
    from headway.training.reading import load_recipe
    from headway.training.run_directory import is_run

    if not is_run(run):
        raise UserError(f"{run}: is not a run directory, so there is nothing to resume")
    recipe = load_recipe(run / "recipe.yaml", overrides)
    if minutes is None:
        return recipe
    if recipe.stages:
        raise UserError(f"{run}: has stages; --finish ends one of them, such as --resume {run}/stages/NAME")
    limits = [f"training.{name}={json.dumps(value)}" for name, value in cooldown(run, recipe, minutes).items()]
    return load_recipe(run / "recipe.yaml", [*limits, *overrides])


def bound_spinning() -> None:
    """Lets OpenMP's threads wait busily for each other for a short while only, a 150th of the default.

    If another process takes a core, the other threads would spin after each operation until the thread on that core
    runs again. What the user has set is left alone. Must come before torch is loaded.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def run_training(recipe: Recipe, run: Path, again: str, threads: int | None) -> Progress:
    """Trains; a run that was asked to stop ends the program with 130 or 143, saved. again: the command that goes on
    with it, with the same threads, because the last digits depend on them."""
    from headway.threads import use_threads
    from headway.training.loop import train as train_run
    from headway.training.processes import Interrupted, end_with_parent
    from headway.training.ranks import LeadFailed
    from headway.training.reporter import Reporter

    use_threads(threads)
    end_with_parent()
    reporter = Reporter(quiet=not leads())
    try:
        return train_run(recipe, run, reporter)
    except LeadFailed:
        raise typer.Exit(2) from None
    except Interrupted as interrupted:
        again += "" if threads is None else f" --threads {threads}"
        reporter.line(f"{interrupted}: saved; go on with {program()} {again}")
        raise typer.Exit(128 + interrupted.signal_number) from None


def is_rank() -> bool:
    """Whether this process is one of several that train together."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def leads() -> bool:
    """Whether this process is the one that speaks: the first of them, or the only one."""
    return not is_rank() or os.environ.get("RANK", "0") == "0"


def program() -> str:
    """What a person types to run headway again."""
    if shutil.which("headway"):
        return "headway"
    return "python -m headway" if sys.argv[0].endswith("__main__.py") else sys.argv[0]


def prepare(
    arguments: Annotated[list[str], Argument(metavar="RECIPE [key.path=value]...", show_default=False)],
    output: Annotated[
        Path | None, options.output("Folder to make. Default: the recipe's data.prepared.", "FOLDER")
    ] = None,
    processes: Annotated[
        int | None, Option(metavar="N", min=1, help="Number of processes that tokenise. Default: one per core.")
    ] = None,
) -> None:
    """Filter and tokenise the text of a recipe before training.

    For large text: it is prepared once, on all cores, and several runs can share the result. If the command is
    stopped or killed, run it again to continue.

    \b
    headway prepare mine.yaml --output prepared
    headway prepare mine.yaml --output prepared --processes 16
    headway train mine.yaml --data prepared
    """
    from headway.model import ModelConfig
    from headway.threads import usable_cores
    from headway.training.initial import load_initial_model
    from headway.training.prepare import prepare_folder
    from headway.training.processes import Interrupted, StopRequests
    from headway.training.reporter import Reporter
    from headway.training.run_directory import only_trainer

    recipes, overrides = split_arguments(arguments)
    if len(recipes) != 1:
        raise UserError("give one RECIPE; changes are key.path=value")
    recipe, _ = read_recipe(recipes[0], overrides)
    if recipe.stages:
        raise UserError(f"{recipes[0]}: has stages, which prepare their own text; `headway train` does all")
    folder = output or recipe.data.prepared
    if folder is None:
        raise UserError("--output is missing: the folder to make")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file, the folder can't be made there")
    check_given(recipe)
    config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4)
    initial = load_initial_model(recipe, config)
    stop = StopRequests()

    def look_around() -> None:
        if (number := stop()) is not None:
            raise Interrupted(number)

    if processes is not None and processes > (cores := usable_cores()):
        tell(f"notice: --processes {processes} on {cores} cores: the others only take memory")
    reporter = Reporter("preparing")
    try:
        with reporter, stop.listening(), only_trainer(folder, "prepares text"):
            prepare_folder(
                recipe,
                folder,
                config.max_length,
                reporter.line,
                (initial.source_tokenizer, initial.target_tokenizer) if initial else None,
                processes=processes or usable_cores(),
                show=reporter.preparing,
                look_around=look_around,
            )
    except Interrupted as interrupted:
        given = " ".join(map(shlex.quote, arguments))
        again = f"{program()} prepare {given} --output {shlex.quote(str(folder))}"
        reporter.line(f"{interrupted}: what is done is kept; go on with {again}")
        raise typer.Exit(128 + interrupted.signal_number) from None
    tell(f"try: {program()} train {shlex.quote(recipes[0])} --data {shlex.quote(str(folder))}")
