"""One-sided text becomes training pairs: a model translates it.

A model of the other direction translates target text (back-translation, Sennrich et al., 2016; drawing the translations
at random: Edunov et al., 2018). A teacher translates source text (sequence-level distillation, Kim and Rush, 2016).

The translations are written beside the recipe's other text, once, by the job that `headway translate --resume` is: a
killed one continues, and a finished one is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from headway.decoding import Sampling
from headway.errors import UserError
from headway.storage import load_model
from headway.storage.checksums import checksum
from headway.storage.model_directory import model_fingerprint
from headway.text.corpus import read_lines
from headway.text.lines import Layout, Line
from headway.training.recipe import DataSection, SyntheticFiles
from headway.translator import Translator
from headway.translator.job import Job
from headway.translator.lines import LineOptions, LineTranslator, Written


def write_synthetic(data: DataSection, notice: Callable[[str], None], look_around: Callable[[], None]) -> None:
    """Writes the translations of `data.synthetic` that aren't there. look_around: called between chunks of lines, and
    may raise. Raises UserError, also for a file that is there and was made otherwise, before it translates."""
    for corpus in data.synthetic:
        _jobs(_translator(corpus, data), corpus)
    for corpus in data.synthetic:
        translator = _translator(corpus, data)
        for text, job in zip(corpus.given, _jobs(translator, corpus), strict=True):
            notice(f"{text}: translated by {corpus.writer}")
            _translate_file(translator, text, job, notice, look_around)


def work_of_writers(data: DataSection) -> Sequence[float | None]:
    """The floating-point operations that training each model has taken; None where that is unknown, or it is gone."""
    models = dict.fromkeys(corpus.writer for corpus in data.synthetic)
    return [load_model(model).training_flops if model.exists() else None for model in models]


def _translator(corpus: SyntheticFiles, data: DataSection) -> LineTranslator:
    """Raises UserError for a model of the other direction than is needed."""
    stored = load_model(corpus.writer)
    languages = data.source_language, corpus.tag or data.target_language
    source, target = reversed(languages) if corpus.is_reversed else languages
    if (stored.source_language, stored.target_language) == (target, source) != (source, target):
        raise UserError(
            f"{corpus.writer}: translates {target} to {source}; {corpus.key} needs a model from {source} to {target}"
        )
    options = LineOptions(
        sample=Sampling() if corpus.by_sampling else None,
        target_language=target if stored.source_tokenizer.target_tags else None,
    )
    return LineTranslator(Translator(stored), options)


def _jobs(translator: LineTranslator, corpus: SyntheticFiles) -> list[Job]:
    """One for each file. Raises UserError for a file that is there and none of them made."""
    jobs = []
    for text, translations in zip(corpus.given, corpus.written, strict=True):
        identity = {
            "model": model_fingerprint(corpus.writer),
            "options": translator.options.to_dict(),
            "device": translator.translator.device.type,
            "text": checksum(text),
        }
        job = Job(translations, identity, how_to_continue="the same command", how_to_restart="delete it")
        if translations.exists() and not job.is_begun:
            raise UserError(
                f"{translations}: is there already, and isn't {text} as {corpus.writer} translates it; delete it, name "
                "another file, or make the two files a corpus of data.train"
            )
        jobs.append(job)
    return jobs


def _translate_file(
    translator: LineTranslator,
    text: Path,
    job: Job,
    notice: Callable[[str], None],
    look_around: Callable[[], None],
) -> None:
    faults = 0

    def translate(lines: list[Line]) -> Written:
        nonlocal faults
        look_around()
        written = translator.translate(lines)
        faults += len(written.notices)
        return replace(written, notices=[])

    job.run(Layout().lines(read_lines(text)), translate, resume=True, notice=notice)
    if faults:
        notice(f"{text}: {faults:,} translations are missing or were cut off")
