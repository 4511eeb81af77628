"""headway data"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from headway.errors import UserError


def data(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="multi30k, tatoeba-ko-en; or a corpus that is generated: dates (the demo's), romanization (Korean "
            "names and how they are written in Latin letters).",
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Folder with the published files. Default: download them."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to put the corpus. Default: data/NAME.")
    ] = None,
    languages: Annotated[str, typer.Option(help="Locales of the dates corpus, source-target.")] = "en-ko",
) -> None:
    """Get a corpus and put it where the recipes expect it.

    Checksums verify that it is the corpus on which the published scores were measured.

    \b
    headway data multi30k                            downloads it
    headway data multi30k --from ~/downloads/multi30k
    headway data tatoeba-ko-en
    headway data dates --languages en-fr
    headway data romanization
    """
    output = output or Path("data") / name
    if name == "multi30k":
        from headway.corpora.multi30k import lay_out

        files = lay_out(output, source)
        typer.echo(f"{len(files)} files in {output}", err=True)
    elif name == "tatoeba-ko-en":
        from headway.corpora import tatoeba

        counts, as_published = tatoeba.lay_out(output, source)
        parts = ", ".join(f"{part} {count:,}" for part, count in counts.items())
        typer.echo(f"pairs: {parts}, in {output}", err=True)
        if not as_published:
            typer.echo("notice: not the version that the recipe's score was measured on", err=True)
    elif name == "dates":
        from headway.corpora.dates import dates_corpus

        refuse_source(name, source)
        dates_corpus(*parse_languages(languages)).write(output)
        typer.echo(f"train, valid and test in {output}", err=True)
    elif name == "romanization":
        from headway.corpora.romanization import romanization_corpus

        refuse_source(name, source)
        romanization_corpus().write(output)
        typer.echo(f"train, valid and test in {output}", err=True)
    else:
        raise UserError(f"corpus {name!r} is unknown; there are multi30k, tatoeba-ko-en, dates and romanization")


def refuse_source(name: str, source: Path | None) -> None:
    if source is not None:
        raise UserError(f"{name} is generated; leave --from out")


def command_that_makes(file: Path) -> str | None:
    """The `headway data` that puts a recipe's file where the recipe looks for it; None where there is none."""
    from headway.corpora import dates, multi30k, romanization, tatoeba

    corpora = (
        ("multi30k", multi30k.SHA256),
        ("tatoeba-ko-en", tatoeba.FILES),
        ("dates", dates.FILES),
        ("romanization", romanization.FILES),
    )
    place = Path(os.path.abspath(file))  # noqa: PTH100 - unlike `resolve` it takes any name, one with a NUL as well
    for name, files in corpora:
        for folder in place.parents:
            if folder.name == name and place.relative_to(folder).as_posix() in files:
                usual = folder == Path.cwd() / "data" / name
                return f"headway data {name}" + ("" if usual else f" --output {shlex.quote(str(folder))}")
    return None


def parse_languages(languages: str) -> tuple[str, str]:
    """`en-ko` to the two locales; a locale's own parts are joined by `_`, as in `en_GB-ko`."""
    source, dash, target = languages.partition("-")
    if not (source and dash and target):
        raise UserError(f"--languages {languages}: must be source-target, such as en-ko or en_GB-ko")
    if source == target:
        raise UserError(f"--languages {languages}: the two must differ")
    return source, target
