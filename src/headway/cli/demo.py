"""headway demo"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from headway.cli import options
from headway.cli.files import tell
from headway.cli.recipes import shipped_recipes
from headway.cli.texts import parse_languages
from headway.cli.train import bound_spinning, program, run_training
from headway.data.corpus import read_lines
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.translator import Translation, Translator

FOLDER = Path("headway-demo")
SAMPLES = 5


def demo(
    output: Annotated[Path, options.output("Folder for the corpus and the model.", "DIR")] = FOLDER,
    languages: Annotated[str, Option(help="Locales of the dates, source-target.")] = "en-ko",
    threads: options.Threads = None,
) -> None:
    """Train a small model on dates in two minutes, and try it.

    Makes the corpus, trains, translates dates that the model has never seen, draws its attention, and writes a page
    in which the model runs without a server (with the extra `web`).

    \b
    headway demo
    headway demo --output demo-fr --languages en-fr
    headway demo --output demo-gb --languages en_GB-ko       here 03/04/1999 is a day in April, not in March
    """
    bound_spinning()
    from headway.corpora.dates import dates_corpus
    from headway.evaluation import alignment_error_rate, parse_pharaoh
    from headway.page.watching import Watcher
    from headway.recipe.reading import load_recipe
    from headway.storage.atomic import write_directory
    from headway.training.run_directory import refuse_changes
    from headway.translator import Translator

    source, target = parse_languages(languages)
    run, data = output / "run", output / "data"
    sides = (("source", source), ("target", target))
    changes = {f"data.{side}_language": language for side, language in sides}
    changes |= {
        f"data.{part}.{side}": str(data / f"{part}.{code}") for part in ("train", "valid") for side, code in sides
    }
    overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
    recipe = load_recipe(shipped_recipes()["dates-en-ko"], overrides, as_in=Path("recipes"))
    if (run / "recipe.yaml").exists():
        refuse_changes(load_recipe(run / "recipe.yaml").model_dump(mode="json"), recipe)
    if not data.exists():
        corpus = dates_corpus(source, target)
        with write_directory(data) as folder:
            corpus.write(folder)
        tell(f"corpus: {len(corpus.pairs['train']):,} dates and times, {source} -> {target}, in {data}")
    run_training(recipe, run, f"demo --output {shlex.quote(str(output))} --languages {languages}", threads, Watcher())
    translator = Translator.load(run)
    sources, targets = (list(read_lines(data / f"test.{language}")) for language in (source, target))
    translations = translator.translate(sources)
    right = sum(found.text == wanted for found, wanted in zip(translations, targets, strict=True))
    share = right / len(sources)
    typer.echo(f"\n{right} of {len(sources)} unseen dates translated exactly: {share:.1%}\n")
    if (data / "test.align").exists():  # an older version has made none
        known = [parse_pharaoh(line) for line in read_lines(data / "test.align")]
        error = alignment_error_rate(translator.align(sources, targets), known)
        typer.echo(f"Its attention links their words with an alignment error rate of {error:.1%}\n")
    _show_samples(translator, sources[:SAMPLES], translations)
    _write_page(translator, run, output / "page.html")
    typer.echo(f"\nTry next:\n{_to_try(run, *(data / f'test.{language}' for language in (source, target)))}")


def _to_try(run: Path, source: Path, target: Path) -> str:
    """Commands to go on with, a line each. source, target: of the test set."""
    headway, model, text, reference = program(), *(shlex.quote(str(path)) for path in (run, source, target))
    return (
        f"  head -3 {text} | {headway} translate {model}\n"
        f"  {headway} show {model}\n"
        f"  {headway} evaluate {model} --source {text} --reference {reference}\n"
        f"  {headway} train --help      your own two text files"
    )


def _show_samples(translator: Translator, sources: list[str], translations: list[Translation]) -> None:
    from headway.insight.terminal import draw_map

    for source, translation in zip(sources, translations, strict=False):
        typer.echo(f"  {source:<44} -> {translation.text}")
    longest = max(sources, key=len)
    record = translator.inspect(longest)
    weights = record.attention["cross"][-1].mean(axis=0)  # last layer, mean of its heads: (target, source)
    title = f"Where the model looks ({longest}): each row is a token that it writes; the darker a cell, the more it"
    typer.echo(f"\n{title} reads there\n\n{draw_map(weights, *record.maps.labels('cross'))}")


def _write_page(translator: Translator, run: Path, page: Path) -> None:
    """Writes a page in which the model runs by itself, or a notice if that fails."""
    from headway.cli.export import page_export

    try:
        write, _ = page_export(translator, run)
        write(translator.stored, page)
    except UserError as error:
        tell(f"notice: {page}: not written: {error}")
    else:
        typer.echo(f"\n{page}: translates in the browser alone, open it by double click")
