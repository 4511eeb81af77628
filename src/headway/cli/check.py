"""headway check"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.options import JsonOutput
from headway.errors import UserError

Files = Annotated[
    list[Path],
    typer.Option(help="Text file, or a .tsv or .jsonl file with both sides. Repeat the option for more files."),
]


def check(
    source: Files,
    target: Annotated[
        list[Path] | None,
        typer.Option(help="Its translation, line for line. Repeat the option for more files."),
    ] = None,
    valid_source: Annotated[
        list[Path] | None,
        typer.Option(help="Text for validation or testing. Repeat the option for more files."),
    ] = None,
    valid_target: Annotated[
        list[Path] | None,
        typer.Option(help="The translation of the validation or test text. Repeat the option for more files."),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Find lines that look wrong in a parallel corpus.

    Checks lengths and their ratios, scripts, encoding and repeats, and names the lines.

    \b
    headway check --source train.de --target train.en
    headway check --source train.de --target train.en --valid-source test.de --valid-target test.en
    """
    from headway.cli.inputs import parallel_pairs
    from headway.text.check import check_corpus

    if valid_target and not valid_source:
        raise UserError("--valid-target needs its --valid-source")
    pairs = list(parallel_pairs(source, target or [], lenient=True))
    held_out = parallel_pairs(valid_source, valid_target or [], lenient=True) if valid_source else ()
    if not pairs:
        raise UserError(f"{source[0]}: is empty")
    found = check_corpus(pairs, held_out)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
        return
    typer.echo(f"{found.pairs:,} pairs, {found.character_ratio:.2f} target characters for each source character")
    for name, side in (("source", found.source), ("target", found.target)) if found.usable else ():
        mean = side.words / found.usable
        typer.echo(
            f"{name}: {side.words:,} words, {mean:.1f} a line, at most {side.longest_words} ({side.longest_place}), "
            f"mainly {side.script}"
        )
    for finding in found.findings:
        more = ", ..." if finding.count > len(finding.places) else ""
        typer.echo(
            f"{finding.count:>7,}  {finding.name}: {finding.meaning}\n         {', '.join(finding.places)}{more}"
        )
    if not found.findings:
        typer.echo("nothing to doubt")
