"""headway prepare"""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.files import tell
from headway.cli.recipes import check_given, read_recipe, split_arguments
from headway.cli.train import program
from headway.errors import UserError
from headway.threads import usable_cores


def prepare(
    arguments: Annotated[list[str], Argument(metavar="RECIPE [key.path=value]...")],
    output: Annotated[Path | None, options.output("Folder. Default: the recipe's data.prepared.", "FOLDER")] = None,
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
    from headway.data.prepare import prepare_folder
    from headway.data.prepared import read_manifest
    from headway.training.processes import Interrupted, StopRequests
    from headway.training.reporter import Reporter
    from headway.training.run_directory import training_lock
    from headway.training.start import load_initial_model
    from headway.training.synthetic import check_synthetic, write_synthetic

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
    initial = load_initial_model(recipe)
    stop = StopRequests()
    if processes is not None and processes > (cores := usable_cores()):
        tell(f"notice: --processes {processes} on {cores} cores: the others only take memory")
    reporter = Reporter("preparing")
    try:
        with reporter, stop.listening(), stop.interruptible(), training_lock(folder, "prepares text"):
            if read_manifest(folder) is not None:
                check_synthetic(recipe.data, folder)
            prepare_folder(
                recipe.preparation(recipe.transformer_config().max_length),
                folder,
                reporter.line,
                write_synthetic,
                (initial.source_tokenizer, initial.target_tokenizer) if initial else None,
                processes=processes or usable_cores(),
                show=reporter.preparing,
            )
    except Interrupted as interrupted:
        given = " ".join(map(shlex.quote, arguments))
        again = f"{program()} prepare {given} --output {shlex.quote(str(folder))}"
        reporter.line(f"{interrupted}: what is done is kept; go on with {again}")
        raise typer.Exit(128 + interrupted.signal_number) from None
    given = " ".join(shlex.quote(one) for one in arguments if not one.startswith("data.prepared="))
    tell(f"try: {program()} train {given} --data {shlex.quote(str(folder))}")
