"""headway import"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headway.errors import UserError


def import_(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Hugging Face directory of a Marian model.")],
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
) -> None:
    """Import a model from Hugging Face, such as OPUS-MT.

    Reads Marian and Pegasus folders, also those that `headway export` wrote.

    \b
    headway import opus-mt-en-de --output models/en-de
    """
    from headway.interop.huggingface import import_huggingface

    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    import_huggingface(folder, output)
    typer.echo(f"{output}: written", err=True)
