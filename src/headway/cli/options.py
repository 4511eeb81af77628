"""Options that several commands share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best).")]
Source = Annotated[
    Path, typer.Option(help="Text, one sentence a line; or a .tsv or .jsonl file that holds both sides.")
]
BeamSize = Annotated[int | None, typer.Option(min=1, help="Hypotheses side by side; 1 is greedy.")]
LengthPenalty = Annotated[float | None, typer.Option(help="GNMT's alpha; 0 favours short translations.")]
Ensemble = Annotated[
    list[Path] | None, typer.Option(metavar="MODEL", help="Another model to translate with; may be given again.")
]
TargetLanguage = Annotated[
    str | None, typer.Option(metavar="CODE", help="Of a model with several: as if each line began with >>CODE<<.")
]
JsonOutput = Annotated[bool, typer.Option("--json", help="JSON: one document, or one a line.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
