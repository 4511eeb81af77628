"""headway compare"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.loading import load_translator
from headway.cli.options import (
    BeamSize,
    Device,
    Engine,
    JsonOutput,
    LengthPenalty,
    Mbr,
    Metric,
    PrecisionOption,
    TargetLanguage,
    Threads,
    Tokenize,
    check_output,
    given_options,
)
from headway.cli.tables import print_table
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.cli.test_set import TestSet
    from headway.evaluation import Comparison, Measured
    from headway.training.comparing import RunRecord
    from headway.translator import Translator

FORMS = {"valid_loss": ".3f", "valid_bleu": ".2f"}
"""How the log's measures are shown."""


def compare(
    context: typer.Context,
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN RUN...", help="Run directories; the others are compared with the first."),
    ],
    output: Annotated[Path | None, typer.Option(help="Draw the curves into this picture (.svg, .png).")] = None,
    source: Annotated[
        Path | None,
        typer.Option(help="A test set to translate with each run: text, or a .tsv or .jsonl file with both sides."),
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="The reference translation, line for line.")] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    mbr: Mbr = None,
    tokenize: Tokenize = None,
    metric: Metric = None,
    target_language: TargetLanguage = None,
    as_json: JsonOutput = False,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "torch",
    threads: Threads = None,
) -> None:
    """Show how runs differ: recipes, curves and scores.

    Shows the recipe keys that differ, the curves of validation loss and BLEU, and, with a test set, the scores of
    each run's best model, with paired bootstrap against the first.

    \b
    headway compare runs/base runs/large
    headway compare runs/base runs/large runs/dropout --output curves.svg
    headway compare runs/base runs/large --source test.de --reference test.en
    """
    from headway.cli.test_set import TestSet
    from headway.evaluation import check_tokenize
    from headway.insight.pictures import check_picture_path, draw_curves, save_picture
    from headway.threads import use_threads
    from headway.training.comparing import read_run
    from headway.training.run_directory import differing_keys

    _check_runs(runs)
    given = given_options(context)
    if source is None and (left := given.keys() - {"output", "as_json"}):
        raise UserError(f"{given[min(left)]} is for a test set; give --source and --reference, too")
    check_output(output)
    if output is not None:
        check_picture_path(output)
    if tokenize is not None:
        check_tokenize(tokenize)
    use_threads(threads)
    test_set = None
    if source is not None:
        test_set = TestSet.read(source, reference, metric or [], runs[0], target_language)
    records = [read_run(run, lambda line: typer.echo(f"headway: {line}", err=True)) for run in runs]
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
        options = {"beam_size": beam_size, "length_penalty": length_penalty, "mbr": mbr}
        scored = _scored(
            runs,
            test_set,
            lambda run: load_translator(run, device, precision, engine=engine),
            lambda translator: test_set.translated(translator, target_language, options),
            tokenize,
            target_language,
        )
        document["test_set"] = {
            "lines": len(test_set.sources),
            "comparison": [[asdict(one) for one in of_run] for of_run in scored],
        }
        if not as_json:
            _show_scores(test_set, scored)
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _check_runs(runs: Sequence[Path]) -> None:
    """Raises UserError."""
    if not 2 <= len(runs) <= len(ascii_uppercase):
        raise UserError(f"give 2 to {len(ascii_uppercase)} runs to compare, not {len(runs)}")
    for place, run in enumerate(runs):
        if any(run.resolve() == earlier.resolve() for earlier in runs[:place]):
            raise UserError(f"{run}: is given twice")


def _panels(records: Sequence[RunRecord], output: Path) -> dict[str, dict[str, tuple[list[int], list[float]]]]:
    """By measure and run its steps and values; without what has none. Raises UserError where nothing has any."""
    panels: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for one in records:
        for measure, curve in one.curves.items():
            if curve:
                panels.setdefault(measure, {})[str(one.folder)] = (list(curve), list(curve.values()))
    if not panels:
        raise UserError(f"--output {output}: no run has a validation in its log.jsonl, so there are no curves to draw")
    return panels


def _show_records(records: Sequence[RunRecord], differing: dict[str, list[Any]]) -> None:
    """Recipes and curves, in which each run is a letter."""
    from headway.insight.terminal import draw_plot, shown
    from headway.training.comparing import MEASURES

    print_table([[letter, shown(str(one.folder))] for letter, one in zip(ascii_uppercase, records, strict=False)])
    letters = list(ascii_uppercase[: len(records)])
    typer.echo("\nrecipe keys that differ" if differing else "\nthe recipes are the same")
    if differing:
        print_table([["", *letters], *([key, *map(_value, of_key)] for key, of_key in differing.items())])
    rows = [["last step", *(f"{one.last_step:,}" if one.last_step else "-" for one in records)]]
    for measure in MEASURES:
        points = [one.best(measure) for one in records]
        rows.append(
            [f"best {measure}", *(f"{one[1]:{FORMS[measure]}} at step {one[0]:,}" if one else "-" for one in points)]
        )
    typer.echo("\nvalidations")
    print_table([["", *letters], *rows])
    for measure in MEASURES:
        curves = {letter: one.curves[measure] for letter, one in zip(letters, records, strict=True)}
        if curves := {letter: curve for letter, curve in curves.items() if curve}:
            typer.echo(f"\n{measure} by step\n\n{draw_plot(curves, FORMS[measure])}")


def _value(value: Any) -> str:
    """A recipe's, on one line."""
    from headway.insight.terminal import shown

    return shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _scored(
    runs: Sequence[Path],
    test_set: TestSet,
    load: Callable[[Path], Translator],
    translated: Callable[[Translator], list[str]],
    tokenize: str | None,
    target_language: str | None,
) -> list[list[Comparison]]:
    """Of each run but the first its comparison with the first, by every metric."""
    from headway.cli.test_set import tokenization_for
    from headway.storage import find_model

    for run in runs:  # before one of them has translated for minutes
        find_model(run)
    tokenizations: dict[str, Path] = {}
    systems: list[tuple[list[str], list[Measured]]] = []
    for run in runs:
        translator = load(run)
        tokenizations.setdefault(tokenize or tokenization_for(translator.stored, target_language), run)
        if len(tokenizations) > 1:
            found = ", ".join(f"{of_run} as {name}" for name, of_run in tokenizations.items())
            raise UserError(f"BLEU would tokenise the runs' translations differently ({found}); choose with --tokenize")
        translations = translated(translator)
        systems.append((translations, test_set.measured(translations)))
    [chosen] = tokenizations
    return [test_set.compared(system, systems[0], chosen) for system in systems[1:]]


def _show_scores(test_set: TestSet, scored: Sequence[Sequence[Comparison]]) -> None:
    from headway.cli.test_set import shown_chance, shown_score

    typer.echo(f"\nscores of {test_set.file}, {len(test_set.sources):,} lines, differences from A by paired bootstrap")
    rows = [["", *ascii_uppercase[: len(scored) + 1]]]
    for of_metric in zip(*scored, strict=True):
        name = of_metric[0].metric
        cells = [
            f"{shown_score(name, one.score)}: {shown_score(name, one.score - one.other, signed=True)}, "
            f"{shown_chance(one.p_value)}"
            for one in of_metric
        ]
        rows.append([name, shown_score(name, of_metric[0].other), *cells])
    print_table(rows)
    for one in scored[0]:
        if one.signature:
            typer.echo(f"{one.metric}  {one.signature}")
