"""headway train"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.files import tell
from headway.cli.options import Files, files
from headway.cli.recipes import check_given, read_recipe, recipe_list, split_arguments
from headway.errors import UserError
from headway.threads import use_threads

if TYPE_CHECKING:
    from headway.recipe.recipe import Recipe
    from headway.training.checkpoint import Progress
    from headway.training.loop import Watch
    from headway.training.own_text import RunRequest

PRESET_SIZES = "textbook (10.2M parameters), tiny (2.3M), small (6.0M), base (48.2M), big (184.5M)"
"""Written out, because help needs no torch; a test counts the parameters."""


def train(
    arguments: Annotated[list[str] | None, Argument(metavar="[RECIPE | PAIRS...] [key.path=value]...")] = None,
    output: Annotated[Path | None, options.output("Run directory. Default: runs/RECIPE, or runs/PAIRS.", "RUN")] = None,
    source: Annotated[Files, files("Training text, one sentence per line, also .gz, .xz, .zst.")] = None,
    target: Annotated[Files, files("Its translation, line for line; none if --source holds both sides.")] = None,
    valid_source: Annotated[Files, files("Validation text. Default: set apart, as by `headway split`.")] = None,
    valid_target: Annotated[Files, files("The translation of the validation text.")] = None,
    column: options.Columns = None,
    document: options.Document = None,
    minutes: Annotated[
        float | None,
        Option(
            min=0.1,
            max=10**6,
            metavar="N",
            help="From reading the text to the scores. Default: 30. With --finish: the rest.",
        ),
    ] = None,
    fast: Annotated[
        bool, Option("--fast", help="Then train a faster model on its translations, with half of its decoder layers.")
    ] = False,
    preset: Annotated[
        str | None,
        Option(metavar="NAME", help=f"Size of the model, with a vocabulary of 8,000 tokens: {PRESET_SIZES}."),
    ] = None,
    init_from: Annotated[
        Path | None, Option(metavar="MODEL", help="Start from MODEL's weights and vocabulary.")
    ] = None,
    data: Annotated[Path | None, Option(metavar="FOLDER", help="Train on the data of `headway prepare`.")] = None,
    resume: Annotated[
        Path | None,
        Option(metavar="RUN", help="Continue a run where it stopped, or begin it if a RECIPE or text is given, too."),
    ] = None,
    finish: Annotated[
        bool, Option("--finish", help="With --resume and --minutes: let the learning rate fall to zero, and end.")
    ] = False,
    processes: Annotated[int, Option(min=1, max=256, help="Processes on this machine; on CPU each needs a core.")] = 1,
    list_recipes: Annotated[bool, Option("--list", help="List the recipes that come with headway.")] = False,
    threads: options.Threads = None,
) -> Path:
    """Train a model on your own text, or by a recipe.

    PAIRS is a file that holds sentences and their translations: .tsv, .jsonl, .csv, .xlsx, .po, .mo, .tmx or .xliff;
    --source and --target are two files of text. headway sets pairs for validation and testing apart, chooses a recipe
    that fits the text and the minutes, trains, and measures the model. A key.path=value of yours overrides its choice.

    RECIPE is a YAML file, or the name of a recipe that comes with headway. Such a recipe reads its text from data/
    in the current folder, where `headway data` puts it.

    \b
    headway train pairs.tsv data.source_language=de data.target_language=en
    headway train memory.tmx data.source_language=de data.target_language=en
    headway train --source text.de --target text.en --output runs/mine --minutes 60 --fast
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
    began = time.monotonic()
    from headway.data.compressed import plain_name
    from headway.data.corpus import is_two_sided

    if list_recipes:
        typer.echo(recipe_list())
        raise typer.Exit
    names, overrides = split_arguments(arguments or [])
    pairs = [Path(one) for one in names if is_two_sided(Path(one))]
    recipes = [one for one in names if not is_two_sided(Path(one))]
    sides = {"source": source or pairs, "target": target, "valid_source": valid_source, "valid_target": valid_target}
    texts = {side: [str(file.absolute()) for file in given or []] for side, given in sides.items()}
    given = {"model.preset": preset, "training.init_from": init_from, "data.prepared": data}
    overrides += [f"{key}={json.dumps(str(value))}" for key, value in given.items() if value is not None]
    if len(recipes) > 1:
        raise UserError(
            f"one recipe at a time, not {' and '.join(recipes)}; "
            "changes are key.path=value, text files go with --source and --target"
        )
    given_anew = bool(recipes) + any(texts.values())
    if given_anew > 1 or (resume is None and not given_anew) or (source and pairs):
        raise UserError(_one_of([*recipes, *map(str, pairs)], source=source, resume=resume))
    if resume is not None and output is not None:
        raise UserError("--resume goes on in its own run directory, so there is no --output")
    if finish and (resume is None or minutes is None or given_anew):
        raise UserError("--finish ends a run that is there: give --resume RUN --minutes N --finish")
    if not any(texts.values()) and (fast or column or document or (minutes is not None and not finish)):
        raise UserError(
            "--minutes, --fast, --column and --document are for text; a recipe has limits such as "
            "training.max_minutes, and --resume RUN --minutes N --finish ends a run"
        )
    may_resume = resume is not None or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # by torch's launcher
    folder = resume or output
    if any(texts.values()):
        asked = _request(texts, column, document, overrides, minutes, fast=fast)
        if folder is None and not pairs:
            raise UserError("--output is missing: the run directory to make")
        run = folder or Path("runs") / plain_name(pairs[0]).stem
        recipe = _of_text(asked, run, began, threads, processes, may_resume=may_resume)
    elif recipes or resume is None:
        recipe, run = _of_recipe(recipes[0], overrides, folder, may_resume=may_resume)
    else:
        recipe, run = _resumed(resume, overrides, minutes, began, threads), resume
    if processes > 1 and not is_rank():
        is_chosen = any(texts.values()) and resume is None  # then the run's recipe has the overrides
        again = [] if is_chosen else [*recipes, *overrides]
        again += ["--minutes", str(minutes), "--finish"] if finish else []
        _launch([*again, "--output" if recipes and resume is None else "--resume", str(run)], processes, threads)
        return run
    progress = run_training(recipe, run, _again(run, processes), threads)
    if leads():
        stages = f"{len(recipe.stages)} stages, the last one of " if recipe.stages else ""
        steps = f"{stages}{progress.step:,} steps in {progress.all_minutes:.1f} minutes"
        tell(f"done: {steps}, best after {progress.best_step:,}")
        tag = f">>{recipe.data.tags[0]}<< " if recipe.data.tags else ""
        tell(f"try: echo '{tag}a sentence' | {program()} translate {shlex.quote(str(run))}")
    return run


def _one_of(names: list[str], **flags: object) -> str:
    """The message for a command line that doesn't say, or says twice, what to train on."""
    given = [*names, *(f"--{name}" for name, value in flags.items() if value)]
    also = f" (given: {', '.join(given)})" if given else ""
    return f"give one of: a RECIPE; PAIRS; --source and --target; --resume RUN{also}"


def _of_recipe(argument: str, overrides: list[str], output: Path | None, *, may_resume: bool) -> tuple[Recipe, Path]:
    """The recipe that an argument names, and the run directory, where a new run can begin. Raises UserError."""
    from headway.training.run_directory import has_begun, refuse_used_folder

    recipe, name = read_recipe(argument, overrides)
    run = output or Path("runs") / name
    if not (may_resume and has_begun(run)):
        refuse_used_folder(run)
        for part in [recipe.of_stage(stage, run) for stage in recipe.stages] or [recipe]:
            if part.data.prepared is None:
                check_given(part)
    return recipe, run


def _request(
    texts: dict[str, list[str]],
    column: list[int] | None,
    document: str | None,
    overrides: list[str],
    minutes: float | None,
    *,
    fast: bool,
) -> RunRequest:
    from headway.recipe.choosing import is_limited
    from headway.training.own_text import MINUTES, RunRequest

    if not texts["source"]:
        raise UserError("--source is missing")
    if (minutes is not None or fast) and is_limited(overrides):
        raise UserError("--minutes and --fast choose how long to train; leave out training.max_steps and other limits")
    if document is not None and texts["valid_source"]:
        raise UserError("--document is for setting parts apart; with --valid-source, leave it out")
    if any(one.startswith("data.prepared=") for one in overrides):
        raise UserError("--data is for a recipe, the one from which the folder was prepared")
    layout = {"columns": options.columns_of(column), "document": options.layout_of(document, "--document")}
    return RunRequest(**texts, **layout, overrides=overrides, minutes=minutes or MINUTES, fast=fast)


def _again(run: Path, processes: int, threads: int | None = None) -> str:
    many = f" --processes {processes}" if processes > 1 else ""
    return f"train --resume {shlex.quote(str(run))}{many}{'' if threads is None else f' --threads {threads}'}"


def _launch(arguments: list[str], processes: int, threads: int | None) -> None:
    """Trains in processes of their own, with these arguments."""
    from headway.training.processes import launch

    command = ["train", *arguments, "--processes", str(processes)]
    command += [] if threads is None else ["--threads", str(threads)]
    if code := launch(command, processes):
        raise typer.Exit(code)


def _of_text(
    asked: RunRequest, run: Path, began: float, threads: int | None, processes: int = 1, *, may_resume: bool = False
) -> Recipe:
    """The recipe for text, which the first process chooses; others wait for it. Raises UserError."""
    from headway.recipe.reading import is_run, load_recipe
    from headway.training.own_text import choose_for, refuse_other_text
    from headway.training.run_directory import has_request, refuse_used_folder

    if may_resume and is_run(run):
        recipe = load_recipe(run / "recipe.yaml", asked.overrides)
        refuse_other_text(asked, run, recipe)
        return recipe
    refuse_used_folder(run)
    if leads():
        use_threads(threads)
        with _telling_how_to_go_on(run, _again(run, processes, threads)):
            return choose_for(asked, run, began, tell)
    while has_request(run) or not is_run(run):
        time.sleep(0.5)
    return load_recipe(run / "recipe.yaml")


@contextmanager
def _telling_how_to_go_on(run: Path, again: str) -> Iterator[None]:
    """Ends the program with 130 after a Ctrl-C at which nothing can be saved; tells `again`, if there is a run yet. A
    library or a callback may lose the exception: then the end comes after the work within. Or it raises another."""
    from headway.recipe.reading import is_run
    from headway.training.run_directory import has_request

    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.default_int_handler(number, frame)

    takes_signals = threading.current_thread() is threading.main_thread()
    is_usual = takes_signals and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_usual:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if interrupted:  # instead of any error that a library made of it
            if is_run(run) or has_request(run):
                tell(f"SIGINT: go on with {program()} {again}")
            raise typer.Exit(130)


def _resumed(run: Path, overrides: list[str], minutes: float | None, began: float, threads: int | None) -> Recipe:
    """The recipe of a run that goes on; `minutes` limit it. If none was chosen yet, chooses one. Raises UserError."""
    from headway.recipe.reading import is_run, load_recipe
    from headway.training.finishing import cooldown
    from headway.training.own_text import RunRequest
    from headway.training.run_directory import has_request

    if not is_run(run):
        if not has_request(run):
            raise UserError(f"{run}: is not a run directory, so there is nothing to resume")
        if minutes is not None:
            raise UserError(f"{run}: its recipe isn't chosen yet; go on without --minutes and --finish")
        asked = RunRequest.read(run)
        return _of_text(replace(asked, overrides=[*asked.overrides, *overrides]), run, began, threads)
    recipe = load_recipe(run / "recipe.yaml", overrides)
    if minutes is None:
        return recipe
    if recipe.stages:
        raise UserError(f"{run}: has stages; --finish ends one of them, such as --resume {run}/stages/NAME")
    limits = [f"training.{name}={json.dumps(value)}" for name, value in cooldown(run, recipe, minutes).items()]
    return load_recipe(run / "recipe.yaml", [*limits, *overrides])


def bound_spinning() -> None:
    """Shortens the time that OpenMP's threads wait busily for each other to a 150th of the default, unless the user has
    set it: if another process takes a core, they would spin after each operation. Must come before torch is loaded."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")


def run_training(recipe: Recipe, run: Path, again: str, threads: int | None, watch: Watch | None = None) -> Progress:
    """Trains. A run that was asked to stop saves and ends the program with 130 or 143. again: the command that
    continues it, to which the threads are added, because the last digits depend on them. watch: as in `run_loop`."""
    from headway.training.loop import train as train_run
    from headway.training.processes import Interrupted, end_with_parent
    from headway.training.ranks import LeadFailed
    from headway.training.reporter import Reporter

    use_threads(threads)
    end_with_parent()
    again += "" if threads is None else f" --threads {threads}"
    reporter = Reporter(quiet=not leads())
    try:
        with _telling_how_to_go_on(run, again):
            return train_run(recipe, run, reporter, watch)
    except LeadFailed:
        raise typer.Exit(2) from None
    except Interrupted as interrupted:
        reporter.line(f"{interrupted}: saved; go on with {program()} {again}")
        raise typer.Exit(128 + interrupted.signal_number) from None


def is_rank() -> bool:
    """Whether this process is one of several that train together."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def leads() -> bool:
    """Whether this process is the only one, or the first of several, which alone writes to the user."""
    return not is_rank() or os.environ.get("RANK", "0") == "0"


def program() -> str:
    """The command by which the user can run headway again."""
    if shutil.which("headway"):
        return "headway"
    return "python -m headway" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
