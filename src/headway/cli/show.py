"""headway show"""

from __future__ import annotations

import typer

from headway.cli.options import JsonOutput, Model


def show(
    model: Model,
    as_json: JsonOutput = False,
) -> None:
    """Show what a model is: languages, size, vocabulary, how it was trained; as JSON also the shape of every weight.

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
        "weights": parameters,
    }
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    typer.echo(
        f"{folder}\n{stored.source_language} -> {stored.target_language}, {document['parameters']:,} parameters\n"
    )
    for name, value in config.to_dict().items():
        typer.echo(f"  {name:<20} {value}")
    if stored.card:
        card = "".join(char for char in stored.card if char.isprintable() or char in "\n\t")  # not escapes
        typer.echo(f"\n{card.rstrip()}")
