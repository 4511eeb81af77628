"""Target text alone becomes training pairs: a model of the other direction translates it (Sennrich et al., 2016;
drawing the translations at random: Edunov et al., 2018).

The translations are written beside the recipe's other text, once, by the job that `headway translate --resume` is: a
killed one continues, and a finished one is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from headway.decoding import Sampling
from headway.errors import UserError
from headway.storage import StoredModel, load_model
from headway.storage.checksums import checksum
from headway.storage.model_directory import model_fingerprint
from headway.text.corpus import read_lines
from headway.text.lines import Layout, Line
from headway.training.recipe import DataSection, MonolingualFiles
from headway.translator import Translator
from headway.translator.job import Job
from headway.translator.lines import LineOptions, LineTranslator, Written


def back_translate(data: DataSection, notice: Callable[[str], None], look_around: Callable[[], None]) -> None:
    """Writes the source files of `data.monolingual` that aren't there. look_around: called between chunks of lines, and
    may raise. Raises UserError, also for a source file that is there and was made otherwise, before it translates."""
    for corpus in data.monolingual:
        _jobs(_reverse_translator(corpus, data), corpus)
    for corpus in data.monolingual:
        translator = _reverse_translator(corpus, data)
        for target, job in zip(corpus.target, _jobs(translator, corpus), strict=True):
            notice(f"monolingual: {target}, translated by {corpus.reverse}")
            _translate_file(translator, target, job, notice, look_around)


def work_of_reverse_models(data: DataSection) -> Sequence[float | None]:
    """The floating-point operations that training each has taken; None where that is unknown, or the model is gone."""
    models = dict.fromkeys(corpus.reverse for corpus in data.monolingual)
    return [load_model(model).training_flops if model.exists() else None for model in models]


def _reverse_translator(corpus: MonolingualFiles, data: DataSection) -> LineTranslator:
    """Raises UserError for a model that translates in the direction of the recipe."""
    stored = load_model(corpus.reverse)
    _check_direction(stored, corpus, data)
    languages = stored.source_tokenizer.target_tags
    options = LineOptions(
        sample=Sampling() if corpus.sample else None,
        target_language=data.source_language if languages else None,
    )
    return LineTranslator(Translator(stored), options)


def _check_direction(stored: StoredModel, corpus: MonolingualFiles, data: DataSection) -> None:
    recipe = data.source_language, corpus.tag or data.target_language
    model = stored.source_language, stored.target_language
    if model == recipe and model[0] != model[1]:
        raise UserError(
            f"{corpus.reverse}: translates {model[0]} to {model[1]}, as the recipe's model shall; "
            f"data.monolingual.reverse needs a model from {model[1]} to {model[0]}"
        )


def _jobs(translator: LineTranslator, corpus: MonolingualFiles) -> list[Job]:
    """One for each file. Raises UserError for a source file that is there and none of them made."""
    jobs = []
    for target, source in zip(corpus.target, corpus.source, strict=True):
        identity = {
            "model": model_fingerprint(corpus.reverse),
            "options": translator.options.to_dict(),
            "device": translator.translator.device.type,
            "text": checksum(target),
        }
        job = Job(source, identity, how_to_continue="the same command", how_to_restart="delete it")
        if source.exists() and not job.is_begun:
            raise UserError(
                f"{source}: is there already, and isn't {target} as {corpus.reverse} translates it; delete it, choose "
                "another data.monolingual.source, or make the two files a corpus of data.train"
            )
        jobs.append(job)
    return jobs


def _translate_file(
    translator: LineTranslator,
    target: Path,
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

    job.run(Layout().lines(read_lines(target)), translate, resume=True, notice=notice)
    if faults:
        notice(f"monolingual: {faults:,} translations are missing or were cut off")
