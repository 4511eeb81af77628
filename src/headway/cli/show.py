"""headway show"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best).")],
    weights: Annotated[bool, typer.Option("--weights", help="Every weight with its shape.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Show what a model is: languages, size, vocabulary, and how it was trained.

    \b
    headway show runs/multi30k-de-en
    """
    import json

    from headway.storage import find_model, load_model

    folder = find_model(model)
    stored = load_model(folder)
    config = stored.model.config
    parameters = {name: tuple(parameter.shape) for name, parameter in stored.model.named_parameters()}
    document = {
        "folder": str(folder),
        "source_language": stored.source_language,
        "target_language": stored.target_language,
        "parameters": sum(parameter.numel() for parameter in stored.model.parameters()),
        "model": config.to_dict(),
        "decoding": stored.decoding,
        **({"weights": parameters} if weights else {}),
    }
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    typer.echo(
        f"{folder}\n{stored.source_language} -> {stored.target_language}, {document['parameters']:,} parameters\n"
    )
    for name, value in config.to_dict().items():
        typer.echo(f"  {name:<20} {value}")
    if weights:
        typer.echo()
        for name, shape in parameters.items():
            typer.echo(f"  {name:<60} {' x '.join(map(str, shape))}")
    if stored.card:
        typer.echo(f"\n{stored.card.rstrip()}")
