"""headway perturb"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.inputs import as_they_arrive, input_lines
from headway.cli.options import check_output, writer
from headway.errors import UserError


def perturb(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="lower, upper, typos, punctuation (removed at the end), or diacritics (removed)."
        ),
    ],
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="Text, one sentence per line, also .gz, .xz, .zst.")
    ] = "-",
    seed: Annotated[int, typer.Option(help="Random seed of the typos; the same seed gives the same typos.")] = 1,
    output: Annotated[Path | None, typer.Option(help="Write the text to this file.")] = None,
) -> None:
    """Make a noisy copy of a test set, to measure robustness.

    The noise of a line depends only on its text and the seed. data.noise in a recipe trains with the same kinds of
    noise.

    \b
    headway perturb typos test.de --output test.typos.de
    headway perturb upper test.de
    headway evaluate runs/mine --source test.typos.de --reference test.en
    """
    from headway.text.lines import Layout, chunks
    from headway.text.noise import KINDS, perturbed

    if kind not in KINDS:
        raise UserError(f"KIND {kind}: unknown; choose one of {', '.join(KINDS)}")
    check_output(output)
    lines = input_lines(file, Layout(), None)
    with nullcontext(sys.stdout) if output is None else writer(output) as out:
        for chunk in chunks(as_they_arrive(lines, file), lambda line: len(line.text)):
            out.writelines(perturbed(line.text, kind, seed) + "\n" for line in chunk)
            out.flush()
