"""Synthetic training pairs: a model translates text in one language.

A model of the other direction translates target text (back-translation, Sennrich et al., 2016; with sampling: Edunov et
al., 2018). A teacher translates source text (sequence-level distillation, Kim and Rush, 2016).

The translations are written beside the recipe's other text by the job that `headway translate --resume` is: a killed
one continues, and a finished one is not repeated.
"""

from collections.abc import Callable
from pathlib import Path

from headway.data.corpus import read_lines
from headway.data.lines import Layout
from headway.data.options import DataSection, Synthesis
from headway.decoding import Sampling
from headway.errors import UserError
from headway.storage.checksums import checksum
from headway.storage.model_directory import model_fingerprint
from headway.translator import Translator
from headway.translator.job import Job
from headway.translator.lines import JobNotice, LineOptions, LineTranslator

REMEDY = "delete it, name another file, or make the two files a corpus of data.train"


def write_synthetic(data: DataSection, notice: Callable[[str], None]) -> None:
    """Writes the translations of `data.syntheses` that don't exist yet. Raises UserError before it translates, also
    for a file that exists and isn't such a translation."""
    faults = 0

    def count_or_tell(one: JobNotice) -> None:
        nonlocal faults
        if one.fault is None:
            notice(one.text)
        else:
            faults += 1

    for synthesis in data.syntheses:
        _translator(synthesis)  # all are checked before the first translates
        _jobs(synthesis, REMEDY)
    for synthesis in data.syntheses:
        translator = _translator(synthesis)
        for text, job in zip(synthesis.given, _jobs(synthesis, REMEDY), strict=True):
            notice(f"{text}: translated by {synthesis.writer}")
            faults = 0
            job.run(Layout().lines(read_lines(text)), translator.translate, resume=True, notice=count_or_tell)
            if faults:
                notice(f"{text}: {faults:,} translations are missing or were cut off")


def check_synthetic(data: DataSection, folder: Path) -> None:
    """Checks data that were prepared in the folder before: raises UserError if translations aren't those of the text by
    the model, as far as models, text and translations still exist."""
    for synthesis in data.syntheses:
        if all(file.exists() for file in (synthesis.writer, *synthesis.given, *synthesis.written)):
            _jobs(synthesis, f"name another file and another folder than {folder}")


def _translator(synthesis: Synthesis) -> LineTranslator:
    """Loads the model. Raises UserError if it translates in the other direction."""
    translator = Translator.load(synthesis.writer)
    info, (source, target) = translator.info, synthesis.languages
    if (info.source_language, info.target_language) == (target, source) and source != target:
        needed = f"{synthesis.key} needs a model from {source} to {target}"
        raise UserError(f"{synthesis.writer}: translates {target} to {source}; {needed}")
    options = LineOptions(
        search={"sample": Sampling() if synthesis.sample else None},
        target_language=(f"{source}:{target}" if info.source_tokenizer.many_sources else target)
        if translator.target_languages
        else None,
    )
    return LineTranslator(translator, options)


def _jobs(synthesis: Synthesis, remedy: str) -> list[Job]:
    """A job for each file. Raises UserError for a file that exists and isn't the translation."""
    jobs, model = [], model_fingerprint(synthesis.writer)
    for text, translations in zip(synthesis.given, synthesis.written, strict=True):
        identity = {
            "model": model,
            "sample": synthesis.sample,
            "target_language": synthesis.languages[1],
            "text": checksum(text),
        }
        job = Job(translations, identity, "the same command", "delete it", checksum)  # a copy of the folder is as good
        if translations.exists() and not job.is_begun:
            raise UserError(
                f"{translations}: already exists, and isn't the translation of {text} by {synthesis.writer}; {remedy}"
            )
        jobs.append(job)
    return jobs
