"""A test set and the scores of systems on it, for the commands that translate and score one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.evaluation import Comparison, Measured, NamedMetric
    from headway.storage import StoredModel
    from headway.translator import Translator


@dataclass(frozen=True)
class TestSet:
    """Sources and references, line for line, and the metrics beside BLEU, chrF and TER."""

    file: Path
    """The references', for messages."""
    source_file: Path
    sources: list[str]
    references: list[str]
    metrics: list[NamedMetric]

    @staticmethod
    def read(
        source: Path,
        reference: Path | None,
        metrics: Sequence[str],
        model: Path,
        target_language: str | None,
    ) -> TestSet:
        """The test set for a model that translates into this language. Raises UserError, before any other work."""
        from headway.cli.inputs import parallel_pairs
        from headway.evaluation import load_metric
        from headway.text.corpus import same_text

        pairs = list(parallel_pairs([source], [reference] if reference else [], model, target_language))
        if not pairs:
            raise UserError(f"{source}: has no lines to translate")
        if same_text(pairs):
            typer.echo("headway: warning: source and reference are the same text", err=True)
        return TestSet(
            reference or source,
            source,
            [pair.source for pair in pairs],
            [pair.target for pair in pairs],
            [load_metric(name) for name in dict.fromkeys(metrics)],
        )

    def translated(
        self, translator: Translator, target_language: str | None, options: dict[str, float | None]
    ) -> list[str]:
        """Translations of the sources. Raises UserError for references that aren't sentences, and as `tagged`."""
        refuse_endless(self.file, self.references, translator)
        translations = translator.translate(self.tagged(translator, target_language), **options)  # type: ignore[arg-type]
        for stopped, meaning in (("too_long", "too long for the model and left blank"), ("max_length", "cut off")):
            if count := sum(translation.stopped == stopped for translation in translations):
                typer.echo(f"headway: {count} of {len(self.sources)} lines are {meaning}", err=True)
        return [translation.text for translation in translations]

    def tagged(self, translator: Translator, target_language: str | None) -> list[str]:
        """The sources, each with the tag of the language if given. Raises UserError where a tag is missing."""
        from headway.translator.lines import language_prefix, tag_fault

        tag = language_prefix(translator, target_language)
        for number, source in enumerate(self.sources, start=1):
            if fault := tag_fault(translator, tag + source):
                raise UserError(f"{self.source_file}, line {number}: {fault}; add it, or give --target-language")
        return [tag + source for source in self.sources]

    def measured(self, translations: Sequence[str]) -> list[Measured]:
        """What the metrics say of them."""
        return [metric.measure(self.sources, translations, self.references) for metric in self.metrics]

    def compared(
        self,
        ours: tuple[Sequence[str], Sequence[Measured]],
        other: tuple[Sequence[str], Sequence[Measured]],
        tokenize: str,
    ) -> list[Comparison]:
        """Two systems, of each the translations and what the metrics say of them: by BLEU, chrF and each metric."""
        from headway.evaluation import compare_measured, compare_translations

        by_metrics = [compare_measured(*pair) for pair in zip(ours[1], other[1], strict=True)]
        return [*compare_translations(ours[0], other[0], self.references, tokenize), *by_metrics]


def refuse_endless(file: Path, texts: Sequence[str], translator: Translator) -> None:
    """Raises UserError for a text that is no sentence: scores would take minutes and memory without end."""
    from headway.text.tokenizer import is_too_long

    for number, text in enumerate(texts, start=1):
        if is_too_long(text, translator.longest_source):
            raise UserError(
                f"{file}, line {number}: has {len(text):,} characters, too many to be scored; split the line"
            )


def tokenization_for(stored: StoredModel, target_language: str | None = None) -> str:
    """sacreBLEU's tokenisation of what a model writes, in one of its target languages or in all."""
    from headway.evaluation import tokenization

    tags = stored.source_tokenizer.target_tags
    languages = [target_language] if target_language else tags or [stored.target_language]
    return tokenization(*languages, tokenized=stored.target_tokenizer.kind == "word")


def shown_score(metric: str, score: float, *, signed: bool = False) -> str:
    """BLEU, chrF and TER with two decimals; another metric may go from 0 to 1 and has four."""
    return f"{score:{'+' if signed else ''}.{2 if metric in ('BLEU', 'chrF', 'TER') else 4}f}"


def shown_chance(p_value: float | None) -> str:
    """What a comparison tells of chance."""
    if p_value is None:
        return "one score of all lines, so chance can't be told"
    return f"p = {p_value:.3f} ({'significant' if p_value < 0.05 else 'may be chance'})"
