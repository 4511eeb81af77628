"""How much faster is a student than its teacher, and how good is it?

    python benchmarks/students.py SOURCE REFERENCE MODEL:BEAM MODEL:BEAM ... [--precision int8] [--rounds 3]
        [--batches 16 32 64 128]

Models with the beams that they are used with, the teacher first, all with `--engine ctranslate2` in alternating rounds
of one run: sentences a second with all sentences at once, by the batch size that is fastest for each, and milliseconds
for one sentence alone, medians, tokenisation included; BLEU, and how many lines are equal to those of the model before.
A model with a shortlist (`headway shortlist`) uses it as CTranslate2's vocabulary map. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headway.bench.contenders import Contender
from headway.bench.machine import versions
from headway.data.corpus import read_lines
from headway.decoding import ctranslate2_searcher, searcher
from headway.devices import TranslatingPrecision
from headway.errors import UserError
from headway.evaluation import score_translations, tokenization
from headway.storage import find_model, load_model
from headway.translator import Translator

ALONE = 100
"""Sentences that are translated one by one."""
TOKENS_OF_A_SENTENCE = 64
"""So many fit into a batch for each of its sentences."""

Translate = Callable[[list[str], int], list[str]]


def translating(model: Path, beam_size: int, precision: TranslatingPrecision) -> Translate:
    translator = Translator(load_model(model), device="cpu", precision=precision, engine="ctranslate2")

    def translate(texts: list[str], batch: int) -> list[str]:
        ctranslate2_searcher.SENTENCES_PER_BATCH = batch
        searcher.TOKENS_PER_BATCH = TOKENS_OF_A_SENTENCE * batch
        return [one.text for one in translator.translate(texts, beam_size=beam_size)]

    return translate


@dataclass
class Measured:
    """What is known of a model."""

    model: Path
    beam_size: int
    contender: Contender
    seconds: dict[int, list[float]] = field(default_factory=dict)
    """By the number of sentences in a batch."""
    alone: list[float] = field(default_factory=list)
    """Seconds of each sentence."""
    lines: dict[int, list[str]] = field(default_factory=dict)

    def measure(self, texts: list[str], batches: list[int], *, keep: bool) -> None:
        """A round. keep: it counts, and isn't there to warm up."""
        for batch in batches:
            seconds, self.lines[batch] = self.contender.work(texts, batch)
            if keep:
                self.seconds.setdefault(batch, []).append(seconds)
        times = [self.contender.work([text], 1)[0] for text in texts[:ALONE]]
        if keep:
            self.alone += times

    @property
    def best_batch(self) -> int:
        return min(self.seconds, key=lambda batch: statistics.median(self.seconds[batch]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("models", nargs="+", metavar="MODEL:BEAM")
    parser.add_argument("--precision", default="int8")
    parser.add_argument(
        "--batches", nargs="+", type=int, default=[16, 32, 64, 128], help="Sentences a batch that are tried."
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    texts, references = (list(read_lines(file)) for file in (options.source, options.reference))
    if len(texts) != len(references):
        parser.error(f"{options.source} has {len(texts):,} lines, {options.reference} has {len(references):,}")
    if options.rounds < 1:
        parser.error("--rounds: must be at least 1")
    measured = []
    for named in options.models:
        model, _, beam_size = named.rpartition(":")
        if not model or not beam_size.isdigit() or int(beam_size) < 1:
            parser.error(f"{named}: must be a model and its beam, such as runs/mine:5")
        try:
            find_model(Path(model))
        except UserError as error:
            parser.error(str(error))
        contender = Contender(named, translating, Path(model), int(beam_size), options.precision)
        measured.append(Measured(Path(model), int(beam_size), contender))
    for round_ in range(-1, options.rounds):
        for one in measured:
            one.measure(texts, options.batches, keep=round_ >= 0)
    print(", ".join(f"{name} {value}" for name, value in versions("ctranslate2").items()))
    print("\n".join(lines_of(measured, references)))
    for one in measured:
        one.contender.end()


def lines_of(measured: list[Measured], references: list[str]) -> Iterator[str]:
    yield (
        "| Model | parameters | beam | batch | sentences/s | ratio to the first's speed | one sentence, ms | "
        "ratio to the first's time | BLEU | lines equal to those before |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    first_seconds = first_alone = None
    before: list[str] | None = None
    for one in measured:
        stored = load_model(one.model)
        tokenize = tokenization(stored.target_language, tokenized=stored.target_tokenizer.kind == "word")
        lines = one.lines[one.best_batch]
        seconds, alone = statistics.median(one.seconds[one.best_batch]), statistics.median(one.alone)
        first_seconds, first_alone = first_seconds or seconds, first_alone or alone
        equal = "" if before is None else f"{sum(a == b for a, b in zip(lines, before, strict=True))} of {len(lines)}"
        before = lines
        name = f"{one.model}{', with its shortlist' if stored.shortlist is not None else ''}"
        parameters = sum(parameter.numel() for parameter in stored.model.parameters())
        yield (
            f"| {name} | {parameters / 1e6:.1f}M | {one.beam_size} | {one.best_batch} | {len(lines) / seconds:,.0f} | "
            f"{first_seconds / seconds:.2f} | {1000 * alone:.1f} | {alone / first_alone:.2f} | "
            f"{score_translations(lines, references, tokenize).bleu:.2f} | {equal} |"
        )


if __name__ == "__main__":
    main()
