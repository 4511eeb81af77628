"""headway average"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headway.errors import UserError


def average(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory.")],
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
    last: Annotated[
        int | None, typer.Option(min=1, help="How many of the last models to average. Default: all that were kept.")
    ] = None,
) -> None:
    """Average a run's last models into one.

    The mean of their weights is often better than each of them.

    \b
    headway average runs/multi30k-de-en --last 5 --output models/averaged
    """
    from headway.storage.steps import step_folders
    from headway.training.averaging import average_models
    from headway.training.run_directory import is_run

    if not is_run(run):
        raise UserError(f"{run}: is not a run directory")
    models = step_folders(run / "models")
    if not models:
        raise UserError(f"{run}: has no model yet")
    if last is not None and len(models) < last:
        raise UserError(f"{run}: has {len(models)} models, --last {last} are asked for")
    models = models[-last:] if last is not None else models
    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    average_models(models, output)
    typer.echo(f"mean of {', '.join(model.name for model in models)} in {output}", err=True)
