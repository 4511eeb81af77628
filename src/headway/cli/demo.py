"""headway demo"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.options import Threads

if TYPE_CHECKING:
    from headway.training.recipe import Recipe
    from headway.translator import Translator

SAMPLES = 5


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the corpus and the model.")] = Path(
        "headway-demo"
    ),
    languages: Annotated[str, typer.Option(help="Locales of the dates, source-target.")] = "en-ko",
    threads: Threads = None,
) -> None:
    """Train a small model on dates in two minutes, and try it.

    Makes the corpus, trains, translates dates that the model has never seen, draws its attention, and writes a page
    in which the model runs without a server (with the extra `web`).

    \b
    headway demo
    headway demo --out demo-fr --languages en-fr
    headway demo --out demo-gb --languages en_GB-ko          here 03/04/1999 is a day in April, not in March
    """
    from headway.cli.train import bound_spinning, program, run_training, threads_again

    bound_spinning()
    from headway.cli.data import parse_languages
    from headway.corpora.dates import dates_corpus
    from headway.storage.atomic import write_directory
    from headway.threads import use_threads
    from headway.training.reading import load_recipe
    from headway.training.run_directory import refuse_changes
    from headway.translator import Translator

    use_threads(threads)
    source, target = parse_languages(languages)
    run, recipe = out / "run", _recipe(out / "data", source, target)
    if (run / "recipe.yaml").exists():
        refuse_changes(load_recipe(run / "recipe.yaml").model_dump(mode="json"), recipe)
    if not (out / "data").exists():
        corpus = dates_corpus(source, target)
        with write_directory(out / "data") as folder:
            corpus.write(folder)
        typer.echo(
            f"corpus: {len(corpus.pairs['train']):,} dates and times, {source} -> {target}, in {out / 'data'}", err=True
        )
    again = f"{program()} demo --out {out} --languages {languages}{threads_again(threads)}"
    run_training(recipe, run, again)
    translator = Translator.load(run)
    _show_accuracy(translator, out / "data", source, target)
    _show_alignments(translator, out / "data", source, target)
    _show_samples(translator, out / "data", source)
    _write_page(translator, out)
    headway = program()
    typer.echo(
        f"\nTry next:\n"
        f"  head -3 {out}/data/test.{source} | {headway} translate {run}\n"
        f"  {headway} show {run}\n"
        f"  {headway} evaluate {run} --source {out}/data/test.{source} --reference {out}/data/test.{target}\n"
        f"  {headway} train --help      your own two text files"
    )


def _recipe(data: Path, source: str, target: str) -> Recipe:
    from headway.training.reading import make_recipe

    files: dict[str, Any] = {
        split: {"source": str(data / f"{split}.{source}"), "target": str(data / f"{split}.{target}")}
        for split in ("train", "valid")
    }
    document = {
        "data": {**files, "source_language": source, "target_language": target, "domain": "dates"},
        "tokenizer": {"kind": "bpe", "vocab_size": 600},
        "model": {"preset": "tiny", "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1},
        "training": {
            "max_steps": 800,
            "tokens_per_batch": 4096,
            "learning_rate": 2e-3,
            "schedule": "cosine",
            "warmup_steps": 200,
            "validate_every": 400,
        },
    }
    return make_recipe(document, origin="demo")


def _show_accuracy(translator: Translator, data: Path, source: str, target: str) -> None:
    from headway.text.corpus import read_pairs

    pairs = list(read_pairs([data / f"test.{source}"], [data / f"test.{target}"]))
    translations = translator.translate([pair.source for pair in pairs])
    right = sum(translation.text == pair.target for translation, pair in zip(translations, pairs, strict=True))
    typer.echo(
        f"\n{right} of {len(pairs)} dates that it has never seen are translated exactly: {right / len(pairs):.1%}\n"
    )


def _show_alignments(translator: Translator, data: Path, source: str, target: str) -> None:
    from headway.evaluation import alignment_error_rate, parse_pharaoh
    from headway.text.corpus import read_lines

    if not (data / "test.align").exists():  # made by an older version
        return
    sources, targets, known = (list(read_lines(data / f"test.{suffix}")) for suffix in (source, target, "align"))
    found = translator.align(sources, targets)
    error = alignment_error_rate(found, [parse_pharaoh(line) for line in known])
    typer.echo(f"Its attention links their words with an alignment error rate of {error:.1%}\n")


def _show_samples(translator: Translator, data: Path, source: str) -> None:
    from itertools import islice

    from headway.insight import draw_map
    from headway.text.corpus import read_lines

    samples = list(islice(read_lines(data / f"test.{source}"), SAMPLES))
    for sample, translation in zip(samples, translator.translate(samples), strict=True):
        typer.echo(f"  {sample:<44} -> {translation.text}")
    longest = max(samples, key=len)
    record = translator.inspect(longest)
    weights = record.attention["cross"][-1].mean(axis=0)  # last layer, mean of its heads: (target, source)
    typer.echo(
        f"\nWhere the model looks ({longest}): each row is a token that it writes; the darker a cell, the more it "
        "reads there\n"
    )
    typer.echo(draw_map(weights, *record.maps.labels("cross")))


def _write_page(translator: Translator, out: Path) -> None:
    """A page in which the model runs by itself; a notice where it can't be made."""
    from headway.errors import UserError
    from headway.text.corpus import read_lines
    from headway.web.export import export_web

    stored, page = translator.stored, out / "page.html"
    translator.domain = list(read_lines(out / "data" / f"test.{stored.source_language}"))
    try:
        export_web(stored, page, examples=translator.domain[:SAMPLES], order=translator.word_order())
    except UserError as error:
        typer.echo(f"notice: {page}: not written: {error}", err=True)
    else:
        typer.echo(f"\n{page}: translates in the browser alone, open it by double click")
