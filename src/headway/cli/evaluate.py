"""headway evaluate"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.loading import load_translator
from headway.cli.options import (
    BeamSize,
    Device,
    Engine,
    Ensemble,
    JsonOutput,
    LengthPenalty,
    Mbr,
    Metric,
    Model,
    PrecisionOption,
    Sample,
    Source,
    TargetLanguage,
    Threads,
    Tokenize,
    check_output,
    parse_sampling,
    writer,
)
from headway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.translator import Translator


def evaluate(
    model: Model,
    source: Source,
    reference: Annotated[Path | None, typer.Option(help="The reference translation, line for line.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the translations to this file.")] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="OTHER", help="Another model, or a text file of translations: is the difference significant?"
        ),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    mbr: Mbr = None,
    sample: Sample = None,
    tokenize: Tokenize = None,
    metric: Metric = None,
    target_language: TargetLanguage = None,
    ensemble: Ensemble = None,
    as_json: JsonOutput = False,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "torch",
    threads: Threads = None,
) -> None:
    """Measure BLEU, chrF and TER against a reference.

    Translates the source and scores the translations with sacreBLEU, and with your own metrics.

    \b
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en --compare runs/other
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en --metric my_metrics:exact
    """
    from headway.cli.test_set import TestSet, shown_chance, shown_score, tokenization_for
    from headway.evaluation import check_tokenize, score_translations
    from headway.threads import use_threads

    check_output(output)
    if (
        output is not None
        and output.exists()
        and any(file is not None and file.exists() and output.samefile(file) for file in (source, reference, compare))
    ):
        raise UserError(f"--output {output}: is a file that is read here; choose another name")
    if tokenize is not None:
        check_tokenize(tokenize)
    sampling = None if sample is None else parse_sampling(sample)
    use_threads(threads)
    test_set = TestSet.read(source, reference, metric or [], model, target_language)
    translator = load_translator(model, device, precision, ensemble, engine)

    def translated(translator: Translator) -> list[str]:
        options = {"beam_size": beam_size, "length_penalty": length_penalty, "mbr": mbr, "sample": sampling}
        return test_set.translated(translator, target_language, options)

    others = (
        None
        if compare is None
        else _other_translations(compare, len(test_set.sources), translator, translated, device, precision, engine)
    )
    hypotheses = translated(translator)
    if output is not None:
        with writer(output) as file:
            file.writelines(f"{line}\n" for line in hypotheses)
    tokenize = tokenize or tokenization_for(translator.stored, target_language)
    scores = score_translations(hypotheses, test_set.references, tokenize, with_ter=True)
    measured = test_set.measured(hypotheses)
    comparisons = (
        []
        if others is None
        else test_set.compared((hypotheses, measured), (others, test_set.measured(others)), tokenize)
    )
    if as_json:
        by_metrics = {"metrics": {one.metric: one.score for one in measured}} if measured else {}
        compared = {"comparison": [asdict(comparison) for comparison in comparisons]} if comparisons else {}
        document = {**asdict(scores), "lines": len(test_set.sources), **by_metrics, **compared}
        typer.echo(json.dumps(document, indent=2))
        return
    typer.echo(f"BLEU {scores.bleu:.2f}  {scores.bleu_signature}")
    typer.echo(f"chrF {scores.chrf:.2f}  {scores.chrf_signature}")
    typer.echo(f"TER  {scores.ter:.2f}  {scores.ter_signature}")
    for one in measured:
        typer.echo(f"{one.metric} {shown_score(one.metric, one.score)}")
    for one in comparisons:
        typer.echo(
            f"{one.metric} {shown_score(one.metric, one.score)} against {shown_score(one.metric, one.other)}: "
            f"{shown_score(one.metric, one.score - one.other, signed=True)}, {shown_chance(one.p_value)}  "
            f"{one.signature}".rstrip()
        )


def _other_translations(
    other: Path,
    count: int,
    translator: Translator,
    translated: Callable[[Translator], list[str]],
    device: str,
    precision: str,
    engine: str,
) -> list[str]:
    """Those of a text file, or of another model."""
    from headway.cli.test_set import refuse_endless
    from headway.text.corpus import read_lines

    if other.is_dir():
        return translated(load_translator(other, device, precision, engine=engine))
    lines = list(read_lines(other))
    if len(lines) != count:
        raise UserError(f"{other} has {len(lines)} lines, but there are {count} to compare with")
    refuse_endless(other, lines, translator)
    return lines
