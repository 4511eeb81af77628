"""headway perturb"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.inputs import input_lines
from headway.cli.options import check_output, writer
from headway.errors import UserError


def perturb(
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="lower, upper, typos, punctuation (no final one), or diacritics (none).")
    ],
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Text, one sentence per line, also .gz, .xz, .zst.")
    ] = "-",
    seed: Annotated[int, typer.Option(help="Of the typos; the same one gives the same typos.")] = 1,
    typos: Annotated[float | None, typer.Option(help="Share of the words that get a typo, above 0 to 1.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the text to this file.")] = None,
) -> None:
    """Make a test set noisy, to see how a model bears it.

    Each line follows from its text and the seed alone. data.noise of a recipe trains with the same kinds.

    \b
    headway perturb test.de --kind typos --output test.typos.de
    headway perturb test.de --kind typos --typos 0.3 --seed 2
    headway evaluate runs/mine --source test.typos.de --reference test.en
    """
    from headway.text.lines import Layout
    from headway.text.noise import KINDS, TYPOS, perturbed

    if kind not in KINDS:
        raise UserError(f"--kind {kind}: there are {', '.join(KINDS)}")
    if typos is not None and kind != "typos":
        raise UserError(f"--typos is for --kind typos, not for {kind}")
    share = TYPOS if typos is None else typos
    if not 0 < share <= 1:
        raise UserError(f"--typos {share}: must be above 0 and at most 1")
    check_output(output)
    lines = input_lines(file, Layout(), None)
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for line in lines:
            out.write(perturbed(line.text, kind, seed, share) + "\n")
