"""headway compare"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.evaluate import TestSet, shown_difference, shown_score
from headway.cli.files import load_translator, print_json, print_table, tell
from headway.errors import UserError
from headway.insight.pictures import draw_curves, save_picture
from headway.insight.terminal import draw_plot, shown

if TYPE_CHECKING:
    from headway.evaluation import Comparison
    from headway.recipe.recipe import BestBy
    from headway.training.reporter import RunRecord
    from headway.translator import Translator

FORMS: dict[BestBy, str] = {"valid_loss": ".3f", "valid_bleu": ".2f"}


@options.with_search_options
def compare(
    context: typer.Context,
    runs: Annotated[list[Path], Argument(metavar="RUN RUN...", help="Run directories, compared with the first.")],
    *,
    output: Annotated[Path | None, options.output("Draw the curves into this picture (.svg, .png).")] = None,
    source: Annotated[Path | None, Option(help="Test set to translate: text, or a file of both sides.")] = None,
    reference: options.Reference = None,
    search: dict[str, Any],
    tokenize: options.Tokenize = None,
    metric: options.Metric = None,
    target_language: options.TargetLanguage = None,
    as_json: options.JsonOutput = False,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    engine: options.Engine = "auto",
    threads: options.Threads = None,
) -> None:
    """Show how runs differ: recipes, curves and scores.

    Shows the recipe keys that differ, the curves of validation loss and BLEU, and, with a test set, the scores of
    each run's best model, with paired bootstrap against the first.

    \b
    headway compare runs/base runs/large
    headway compare runs/base runs/large runs/dropout --output curves.svg
    headway compare runs/base runs/large --source test.de --reference test.en
    """
    from headway.storage import find_model
    from headway.training.reporter import read_run
    from headway.training.run_directory import differing_keys

    if not 2 <= len(runs) <= len(ascii_uppercase):
        raise UserError(f"give 2 to {len(ascii_uppercase)} runs to compare, not {len(runs)}")
    for place, run in enumerate(runs):
        if run.resolve() in (earlier.resolve() for earlier in runs[:place]):
            raise UserError(f"{run}: is given twice")
    options.check_picture(output)
    given = options.given_options(context)
    test_set = None
    if source is not None:
        test_set = TestSet(source, reference, metric, runs[0], target_language, tokenize)
    elif left := given.keys() - {"output", "as_json"}:
        raise UserError(f"{given[min(left)]} is for a test set; give --source and --reference, too")
    records = [read_run(run, tell) for run in runs]
    differing = differing_keys([one.recipe for one in records])
    if output is not None:
        save_picture(draw_curves(_panels(records, output), "step"), output)
    document: dict[str, Any] = {
        "runs": [str(run) for run in runs],
        "recipe": differing,
        "last_step": [one.last_step for one in records],
        "curves": [one.curves for one in records],
    }
    if not as_json:
        _show_records(records, differing)
    if test_set is not None:
        for run in runs:  # before one of them has translated for minutes
            find_model(run)
        load = partial(load_translator, device=device, precision=precision, engine=engine, threads=threads)
        scored = _scored(runs, test_set, map(load, runs), search)
        comparisons = [[asdict(one) for one in of_run] for of_run in scored]
        document["test_set"] = {"lines": len(test_set.sources), "comparison": comparisons}
        if not as_json:
            _show_scores(test_set, scored)
    if as_json:
        print_json(document)


def _panels(records: Sequence[RunRecord], output: Path) -> dict[str, dict[str, tuple[list[int], list[float]]]]:
    """Steps and values by measure and run, without empty curves. Raises UserError if all are empty."""
    panels = {
        measure: {
            str(one.folder): (list(curve), list(curve.values())) for one in records if (curve := one.curves[measure])
        }
        for measure in FORMS
    }
    if not any(panels.values()):
        raise UserError(f"--output {output}: no run has a validation in its log.jsonl, so there are no curves to draw")
    return {measure: curves for measure, curves in panels.items() if curves}


def _show_records(records: Sequence[RunRecord], differing: dict[str, list[Any]]) -> None:
    """Prints recipes and curves, in which each run is a letter."""
    letters = list(ascii_uppercase[: len(records)])
    print_table([[letter, shown(str(one.folder))] for letter, one in zip(letters, records, strict=True)])
    typer.echo("\nrecipe keys that differ" if differing else "\nthe recipes are the same")
    if differing:
        texts = [
            [key, *(shown(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) for one in values)]
            for key, values in differing.items()
        ]
        print_table([["", *letters], *texts])
    rows = [["last step", *(f"{one.last_step:,}" if one.last_step else "-" for one in records)]]
    for measure, form in FORMS.items():
        points = [one.best(measure) for one in records]
        rows.append([f"best {measure}", *(f"{one[1]:{form}} at step {one[0]:,}" if one else "-" for one in points)])
    typer.echo("\nvalidations")
    print_table([["", *letters], *rows])
    for measure, form in FORMS.items():
        curves = {letter: curve for letter, one in zip(letters, records, strict=True) if (curve := one.curves[measure])}
        if curves:
            typer.echo(f"\n{measure} by step\n\n{draw_plot(curves, form)}")


def _scored(
    runs: Sequence[Path], test_set: TestSet, translators: Iterable[Translator], search: dict[str, Any]
) -> list[list[Comparison]]:
    """The comparison of each run but the first with the first, by every metric. Raises UserError."""
    tokenizations: dict[str, Path] = {}
    systems = []
    for run, translator in zip(runs, translators, strict=True):
        tokenizations.setdefault(test_set.tokenization(translator.info), run)
        if len(tokenizations) > 1:
            found = ", ".join(f"{of_run} as {name}" for name, of_run in tokenizations.items())
            raise UserError(f"BLEU would tokenise the runs' translations differently ({found}); choose with --tokenize")
        translations = test_set.translated(translator, **search)
        systems.append((translations, test_set.measured(translations)))
    [chosen] = tokenizations
    return [test_set.compared(system, systems[0], chosen) for system in systems[1:]]


def _show_scores(test_set: TestSet, scored: Sequence[Sequence[Comparison]]) -> None:
    typer.echo(f"\nscores of {test_set.file}, {len(test_set.sources):,} lines, differences from A by paired bootstrap")
    rows = [["", *ascii_uppercase[: len(scored) + 1]]]
    for of_metric in zip(*scored, strict=True):
        name = of_metric[0].metric
        cells = [f"{shown_score(name, one.score)}: {shown_difference(one)}" for one in of_metric]
        rows.append([name, shown_score(name, of_metric[0].other), *cells])
    print_table(rows)
    for one in scored[0]:
        if one.signature:
            typer.echo(f"{one.metric}  {one.signature}")
