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
    Model,
    PrecisionOption,
    Source,
    TargetLanguage,
    Threads,
    check_output,
    writer,
)
from headway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.translator import Translator


def evaluate(
    model: Model,
    source: Source,
    reference: Annotated[Path | None, typer.Option(help="Its translation by a person, line for line.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the translations here.")] = None,
    compare: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Another model, or a text file of translations: is it better than chance?"),
    ] = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    mbr: Mbr = None,
    tokenize: Annotated[
        str | None,
        typer.Option(help="sacreBLEU's, such as 13a, none, zh, char; default by language, none for whole words."),
    ] = None,
    target_language: TargetLanguage = None,
    ensemble: Ensemble = None,
    as_json: JsonOutput = False,
    device: Device = "auto",
    precision: PrecisionOption = "auto",
    engine: Engine = "torch",
    threads: Threads = None,
) -> None:
    """Measure BLEU, chrF and TER against a reference.

    Translates the source and scores the translations with sacreBLEU.

    \b
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en --compare runs/other
    """
    from headway.evaluation import check_tokenize, compare_translations, score_translations, tokenization
    from headway.text.corpus import read_pairs, same_text
    from headway.threads import use_threads

    pairs = list(read_pairs([source], [reference] if reference else []))
    if not pairs:
        raise UserError(f"{source}: has no lines to translate")
    check_output(output)
    if (
        output is not None
        and output.exists()
        and any(file is not None and file.exists() and output.samefile(file) for file in (source, reference, compare))
    ):
        raise UserError(f"--output {output}: is a file that is read here; choose another name")
    if same_text(pairs):
        typer.echo("headway: warning: source and reference are the same text", err=True)
    if tokenize is not None:
        check_tokenize(tokenize)
    use_threads(threads)
    translator = load_translator(model, device, precision, ensemble, engine)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    _refuse_endless(reference or source, references, translator)

    def translated(translator: Translator) -> list[str]:
        return _translations(
            translator,
            sources,
            target_language,
            {"beam_size": beam_size, "length_penalty": length_penalty, "mbr": mbr},
        )

    others = (
        None
        if compare is None
        else _other_translations(compare, len(pairs), translator, translated, device, precision, engine)
    )
    hypotheses = translated(translator)
    if output is not None:
        with writer(output) as file:
            file.writelines(f"{line}\n" for line in hypotheses)
    stored = translator.stored
    tokenize = tokenize or tokenization(
        target_language or stored.target_language, tokenized=stored.target_tokenizer.kind == "word"
    )
    scores = score_translations(hypotheses, references, tokenize, with_ter=True)
    comparisons = [] if others is None else compare_translations(hypotheses, others, references, tokenize)
    if as_json:
        compared = {"comparison": [asdict(comparison) for comparison in comparisons]} if comparisons else {}
        typer.echo(json.dumps({**asdict(scores), "lines": len(pairs), **compared}, indent=2))
        return
    typer.echo(f"BLEU {scores.bleu:.2f}  {scores.bleu_signature}")
    typer.echo(f"chrF {scores.chrf:.2f}  {scores.chrf_signature}")
    typer.echo(f"TER  {scores.ter:.2f}  {scores.ter_signature}")
    for comparison in comparisons:
        difference = comparison.score - comparison.other
        typer.echo(
            f"{comparison.metric} {comparison.score:.2f} against {comparison.other:.2f}: {difference:+.2f}, "
            f"p = {comparison.p_value:.3f} ({'significant' if comparison.p_value < 0.05 else 'may be chance'})  "
            f"{comparison.signature}"
        )


def _translations(
    translator: Translator, sources: Sequence[str], target_language: str | None, options: dict[str, float | None]
) -> list[str]:
    from headway.translator.lines import language_prefix

    tag = language_prefix(translator, target_language)
    translations = translator.translate([tag + source for source in sources], **options)  # type: ignore[arg-type]
    for stopped, meaning in (("too_long", "too long for the model and left blank"), ("max_length", "cut off")):
        if count := sum(translation.stopped == stopped for translation in translations):
            typer.echo(f"headway: {count} of {len(sources)} lines are {meaning}", err=True)
    return [translation.text for translation in translations]


def _refuse_endless(file: Path, texts: Sequence[str], translator: Translator) -> None:
    """Raises UserError for a text that is no sentence: scores would take minutes and memory without end."""
    from headway.text.tokenizer import is_too_long

    for number, text in enumerate(texts, start=1):
        if is_too_long(text, translator.longest_source):
            raise UserError(
                f"{file}, line {number}: has {len(text):,} characters, too many to be scored; split the line"
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
    from headway.text.corpus import read_lines

    if other.is_dir():
        return translated(load_translator(other, device, precision, engine=engine))
    lines = list(read_lines(other))
    if len(lines) != count:
        raise UserError(f"{other} has {len(lines)} lines, but there are {count} to compare with")
    _refuse_endless(other, lines, translator)
    return lines
