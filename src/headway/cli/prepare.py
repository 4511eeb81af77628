"""headway prepare"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.recipes import read_recipe
from headway.cli.train import check_given, program
from headway.errors import UserError


def prepare(
    arguments: Annotated[list[str], typer.Argument(metavar="RECIPE [key.path=value]...", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to make. Default: the recipe's data.prepared.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of processes that tokenise. Default: one per core.")
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
    from headway.training.reporter import Reporter
    from headway.training.run_directory import only_trainer
    from headway.training.stopping import Interrupted, StopRequests

    overrides = [argument for argument in arguments if "=" in argument]
    recipes = [argument for argument in arguments if "=" not in argument]
    if len(recipes) != 1:
        raise UserError("give one RECIPE; changes are key.path=value")
    recipe, _ = read_recipe(recipes[0], overrides)
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
        typer.echo(f"notice: --processes {processes} on {cores} cores: the others only take memory", err=True)
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
    typer.echo(f"try: {program()} train {shlex.quote(recipes[0])} --data {shlex.quote(str(folder))}", err=True)
