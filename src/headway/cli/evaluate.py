"""headway evaluate and headway score, and the test set of the commands that translate and score one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from headway.cli import files, options
from headway.data.corpus import read_lines, same_text
from headway.errors import UserError
from headway.text.characters import is_too_long

if TYPE_CHECKING:
    from headway.evaluation import Comparison, Measured
    from headway.storage import ModelInfo
    from headway.translator import Translator

    System = tuple[Sequence[str], Sequence[Measured]]
    """Translations by a system, and their scores by the metrics."""


@options.with_search_options
def evaluate(
    model: options.Model,
    source: options.Source,
    reference: options.Reference = None,
    *,
    output: Annotated[Path | None, options.output("Write the translations to this file.")] = None,
    compare: Annotated[
        Path | None, Option(metavar="OTHER", help="Another model, or a file of translations, to test the difference.")
    ] = None,
    search: dict[str, Any],
    tokenize: options.Tokenize = None,
    metric: options.Metric = None,
    target_language: options.TargetLanguage = None,
    ensemble: options.Ensemble = None,
    as_json: options.JsonOutput = False,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    engine: options.Engine = "auto",
    core: options.Core = None,
    threads: options.Threads = None,
) -> None:
    """Measure BLEU, chrF and TER against a reference.

    Translates the source and scores the translations with sacreBLEU, and with your own metrics.

    \b
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en --compare runs/other
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en --metric my_metrics:exact
    """
    from headway.evaluation import score_translations

    options.check_output(output)
    if output is not None and output.exists():
        read = [file for file in (source, reference, compare) if file is not None and file.exists()]
        if any(map(output.samefile, read)):
            raise UserError(f"--output {output}: is a file that is read here; choose another name")
    test_set = TestSet(source, reference, metric, model, target_language, tokenize)
    load = partial(files.load_translator, device=device, precision=precision, engine=engine, threads=threads)
    translator = load(model, ensemble=ensemble, core=core)
    others = None
    if compare is not None:
        if compare.is_dir():
            others = test_set.translated(load(compare), **search)
        else:
            others = list(read_lines(compare))
            if len(others) != (count := len(test_set.sources)):
                raise UserError(f"{compare} has {len(others)} lines, but there are {count} to compare with")
            refuse_endless(compare, others, translator)
    hypotheses = test_set.translated(translator, **search)
    numbers = test_set.wrong_numbers(hypotheses, translator.info)
    if output is not None:
        with files.writer(output) as file:
            file.writelines(f"{line}\n" for line in hypotheses)
    tokenize = test_set.tokenization(translator.info)
    scores = score_translations(hypotheses, test_set.references, tokenize, with_ter=True)
    measured, comparisons = test_set.measured(hypotheses), []
    if others is not None:
        comparisons = test_set.compared((hypotheses, measured), (others, test_set.measured(others)), tokenize)
    if as_json:
        document = {**asdict(scores), "lines": len(test_set.sources), "numbers": numbers}
        document |= {"metrics": {one.metric: one.score for one in measured}} if measured else {}
        document |= {"comparison": [asdict(one) for one in comparisons]} if comparisons else {}
        files.print_json(document)
        return
    typer.echo(f"BLEU {scores.bleu:.2f}  {scores.bleu_signature}")
    typer.echo(f"chrF {scores.chrf:.2f}  {scores.chrf_signature}")
    typer.echo(f"TER  {scores.ter:.2f}  {scores.ter_signature}")
    if numbers["lines"]:
        typer.echo(
            "wrong numbers: {wrong:,} of {lines:,} lines with numbers; references {references:,}".format(**numbers)
        )
    for one in measured:
        typer.echo(f"{one.metric} {shown_score(one.metric, one.score)}")
    for one in comparisons:
        against = f"{shown_score(one.metric, one.score)} against {shown_score(one.metric, one.other)}"
        typer.echo(f"{one.metric} {against}: {shown_difference(one)}  {one.signature}".rstrip())


def score(
    model: options.Model,
    source: options.Source,
    target: options.Translation = None,
    target_language: options.TargetLanguage = None,
    ensemble: options.Ensemble = None,
    alignments: options.Alignments = False,
    pieces: options.LinkedPieces = False,
    as_json: options.JsonOutput = False,
    device: options.Device = "auto",
    threads: options.Threads = None,
) -> None:
    """Score given translations by log-probability.

    Prints the total log-probability of each, in nats, one per line, computed in fp32. It equals the score of
    `translate --precision fp32` if the tokens are the same. A blank source scores 0 with a blank target and -inf with
    any other; nan means that a side is too long for the model, or that the source lacks its tag. In JSON, -inf and nan
    are null.

    \b
    headway score runs/multi30k-de-en --source test.de --target test.en
    headway score runs/multi30k-de-en --source test.de --target test.en --alignments
    """
    from headway.translator.aligning import to_pharaoh
    from headway.translator.lines import language_prefix, tag_fault

    if pieces and not alignments:
        raise UserError("--pieces says what --alignments join: give both")
    pairs = files.parallel_pairs([source], [target], model, target_language)
    translator = files.load_translator(model, device, "fp32", threads=threads, ensemble=ensemble)
    if alignments:
        files.tell_of_aligner(translator, model)
    tag = language_prefix(translator, target_language)
    number, failed, same, read = 0, False, True, [source, target] if target else [source]
    for chunk in files.arriving_chunks(pairs, lambda pair: len(pair.source) + len(pair.target), *read):
        same = same and same_text(chunk)
        faults = [tag_fault(translator, tag + pair.source) for pair in chunk]
        sources = ["" if fault else tag + pair.source for pair, fault in zip(chunk, faults, strict=True)]
        sides = sources, [pair.target for pair in chunk]
        totals = [math.nan if fault else total for fault, total in zip(faults, translator.score(*sides), strict=True)]
        every = translator.align(*sides, pieces=pieces) if alignments else [[] for _ in chunk]
        for pair, fault, total, links in zip(chunk, faults, totals, every, strict=True):
            number += 1
            if math.isnan(total):
                failed = True
                reason = fault or f"is longer than the model's {translator.longest_source} tokens"
                files.tell(f"headway: line {number} {reason}")
            if as_json:
                known = total if math.isfinite(total) else None  # JSON knows no infinity
                document = {"score": known, "source": pair.source, "target": pair.target}
                typer.echo(json.dumps(document | ({"alignments": links} if alignments else {}), ensure_ascii=False))
            else:
                typer.echo(f"{total:.4f} ||| {to_pharaoh(links)}" if alignments else f"{total:.4f}")
    if number and same:
        files.tell("warning: source and target are the same text")
    raise typer.Exit(2 if failed else 0)


class TestSet:
    """Sources and references, line for line, and the metrics beside BLEU, chrF and TER."""

    def __init__(
        self,
        source: Path,
        reference: Path | None,
        metrics: Sequence[str] | None,
        model: Path,
        target_language: str | None,
        tokenize: str | None = None,
    ) -> None:
        """Reads the test set for this model. Raises UserError, before any other work."""
        from headway.evaluation import check_tokenize, load_metric

        if tokenize is not None:
            check_tokenize(tokenize)
        pairs = list(files.parallel_pairs([source], [reference], model, target_language))
        if not pairs:
            raise UserError(f"{source}: has no lines to translate")
        if same_text(pairs):
            files.tell("warning: source and reference are the same text")
        self.source_file, self.file = source, reference or source
        self.sources, self.references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        self.metrics = [load_metric(name) for name in dict.fromkeys(metrics or [])]
        self.target_language, self.tokenize = target_language, tokenize

    def translated(self, translator: Translator, **search: Any) -> list[str]:
        """Translations of the sources. Raises UserError for references that aren't sentences, and as `tagged`."""
        refuse_endless(self.file, self.references, translator)
        translations = translator.translate(self.tagged(translator), **search)
        for stopped, meaning in (("too_long", "too long for the model and left blank"), ("max_length", "cut off")):
            if count := sum(translation.stopped == stopped for translation in translations):
                files.tell(f"notice: {translator.info.name}: {count} of {len(self.sources)} lines are {meaning}")
        return [translation.text for translation in translations]

    def tagged(self, translator: Translator) -> list[str]:
        """The sources, each with the tag of the language if given. Raises UserError where a tag is missing."""
        from headway.translator.lines import language_prefix, tag_fault

        tag = language_prefix(translator, self.target_language)
        for number, source in enumerate(self.sources, start=1):
            if fault := tag_fault(translator, tag + source):
                raise UserError(f"{self.source_file}, line {number}: {fault}; add it, or give --target-language")
        return [tag + source for source in self.sources]

    def tokenization(self, info: ModelInfo) -> str:
        return self.tokenize or tokenization_for(info, self.target_language)

    def wrong_numbers(self, translations: Sequence[str], info: ModelInfo) -> dict[str, int]:
        """The lines whose source has numbers, and in how many the translation and the reference have other ones."""
        from headway.text.numbers import check_numbers
        from headway.translator.codec import languages_of

        lines, wrong, references = 0, 0, 0
        for source, translation, reference in zip(self.sources, translations, self.references, strict=True):
            tag, body = info.source_tokenizer.split_tag(source)
            languages = languages_of(info, tag or self.target_language or "")
            if any(map(str.isdecimal, body)):
                lines += 1
                wrong += bool(check_numbers(body, translation, languages))
                references += bool(check_numbers(body, reference, languages))
        return {"lines": lines, "wrong": wrong, "references": references}

    def measured(self, translations: Sequence[str]) -> list[Measured]:
        return [metric.measure(self.sources, translations, self.references) for metric in self.metrics]

    def compared(self, system: System, other: System, tokenize: str) -> list[Comparison]:
        from headway.evaluation import compare_measured, compare_translations

        by_metrics = [compare_measured(*pair) for pair in zip(system[1], other[1], strict=True)]
        return [*compare_translations(system[0], other[0], self.references, tokenize), *by_metrics]


def refuse_endless(file: Path, texts: Sequence[str], translator: Translator) -> None:
    """Raises UserError for a text that is far longer than a sentence: scoring it would take minutes and much memory."""
    for number, text in enumerate(texts, start=1):
        if is_too_long(text, translator.longest_source):
            too_many = f"has {len(text):,} characters, too many to be scored; split the line"
            raise UserError(f"{file}, line {number}: {too_many}")


def tokenization_for(info: ModelInfo, target_language: str | None = None) -> str:
    """sacreBLEU's tokenisation of a model's translations, into one of its target languages or into all."""
    from headway.evaluation import tokenization

    given = (target_language or "").rpartition(":")[2]
    languages = [given] if given else info.source_tokenizer.target_tags or [info.target_language]
    return tokenization(*languages, tokenized=info.target_tokenizer.kind == "word")


def shown_score(metric: str, score: float, sign: str = "") -> str:
    """BLEU, chrF and TER with two decimals; another metric may go from 0 to 1 and has four."""
    return f"{score:{sign}.{2 if metric in ('BLEU', 'chrF', 'TER') else 4}f}"


def shown_difference(one: Comparison) -> str:
    difference = shown_score(one.metric, one.score - one.other, "+")
    if one.p_value is None:
        return f"{difference}, one score of all lines, so chance can't be told"
    return f"{difference}, p = {one.p_value:.3f} ({'significant' if one.p_value < 0.05 else 'may be chance'})"
