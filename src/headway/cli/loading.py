"""Models for the commands that use one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.translator import Translator


def check_engine(precision: str, engine: str) -> None:
    """Raises UserError for a name that isn't known."""
    from headway.devices import EngineName, TranslatingPrecision

    for name, value, known in (
        ("precision", precision, get_args(TranslatingPrecision)),
        ("engine", engine, get_args(EngineName)),
    ):
        if value not in known:
            raise UserError(f"--{name} {value}: unknown; choose one of {', '.join(known)}")


def load_translator(
    model: Path,
    device: str,
    precision: str = "auto",
    ensemble: Sequence[Path] | None = None,
    engine: str = "torch",
    *,
    alignments: bool = False,
) -> Translator:
    """As the options say. alignments: the user is told where the model has no choice for them. Raises UserError."""
    from headway.translator import Translator

    check_engine(precision, engine)
    translator = Translator.load(model, device=device, precision=precision, ensemble=ensemble or [], engine=engine)  # type: ignore[arg-type]
    if alignments and translator.stored.aligner is None:
        notice = f"notice: {model} has no chosen attention, so the mean of all aligns; headway aligner chooses"
        typer.echo(notice, err=True)
    return translator
