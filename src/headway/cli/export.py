"""headway export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headway.errors import UserError

TARGETS = ("huggingface", "ctranslate2", "onnx", "argos")
QUANTIZED = ("ctranslate2", "argos")


def export(
    model: Annotated[Path, typer.Argument(help="Model directory, or run directory: its best model.")],
    to: Annotated[str, typer.Option(metavar="|".join(TARGETS), help="The tool that shall run it.")],
    output: Annotated[Path, typer.Option(metavar="PATH", help="Folder to make; for argos a file, X.argosmodel.")],
    quantization: Annotated[
        str | None, typer.Option(metavar="TYPE", help="ctranslate2, argos: int8, int8_bfloat16, bfloat16, float16, ...")
    ] = None,
) -> None:
    """Write a model in the form of another tool, and check that it is the same model there.

    \b
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8
    headway export runs/mine --to huggingface --output mine-hf
    headway export runs/mine --to onnx --output mine-onnx
    headway export runs/mine --to argos --output mine.argosmodel
    """
    from headway.interop.argos import export_argos
    from headway.interop.ctranslate2 import export_ctranslate2
    from headway.interop.huggingface import export_huggingface
    from headway.interop.onnx import export_onnx
    from headway.storage import load_model

    if to not in TARGETS:
        raise UserError(f"--to {to!r} is unknown; there are {', '.join(TARGETS)}")
    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    if quantization is not None and to not in QUANTIZED:
        raise UserError(f"--quantization is of {' and '.join(QUANTIZED)} alone, not of {to}")
    stored = load_model(model)
    if to == "huggingface":
        export_huggingface(stored, output)
    elif to == "ctranslate2":
        export_ctranslate2(stored, output, quantization)
    elif to == "onnx":
        export_onnx(stored, output)
    else:
        export_argos(stored, output, quantization)
    typer.echo(f"{output}: written and checked", err=True)
