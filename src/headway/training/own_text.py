"""A run on text alone, from the files to the recipe: parts are set apart, and a recipe is chosen for them.

Until the recipe is there, `choosing.json` says what was asked for, and a run that goes on chooses again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headway.data.corpus import CorpusFiles, as_corpus
from headway.data.lines import Layout
from headway.data.splitting import split_corpus
from headway.errors import UserError
from headway.recipe.choosing import ENDLESS, TrainingSpeed, TrainingText, choose, is_limited
from headway.recipe.planning import Corpus, work_per_sentence
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import count, on_meta
from headway.storage.atomic import write_file, write_json
from headway.storage.untrusted import read_json
from headway.training.finishing import SHARE_OF_END
from headway.training.loop import take_step
from headway.training.ranks import Alone
from headway.training.reporter import Reporter
from headway.training.run_directory import ASKED, only_trainer, write_recipe
from headway.training.start import start

CHOICES = "choices.txt"
"""The file with the reasons of a run's recipe."""
TEXT = "text"
"""The folder with the parts of the text."""
FILTERS = {"max_ratio": 6, "script": True, "duplicates": "pair"}
"""For training pairs where the parts are not given; untranslated copies go, too, where the languages differ."""
MINUTES = 30.0
"""The time of a run, where none is given."""
MEASURING = "measuring"
"""The folder of a training by which speed is measured."""
MEASURED_SECONDS, UNMEASURED_STEPS = 4.0, 2


@dataclass(frozen=True)
class RunRequest:
    """The request for a run without a recipe."""

    source: list[str]
    target: list[str]
    """Empty where the source files hold both sides."""
    valid_source: list[str]
    """Empty where parts are to be set apart."""
    valid_target: list[str]
    columns: tuple[int, int] | None
    """Of source and target in .tsv files, from 0."""
    document: Layout | None
    """The place in a line that names its document."""
    overrides: list[str]
    minutes: float
    fast: bool

    @property
    def text(self) -> tuple[Any, ...]:
        """The fields that decide which parts there are."""
        return self.source, self.target, self.columns, self.document

    @classmethod
    def read(cls, run: Path) -> RunRequest:
        """The request of the run in the folder."""
        found = read_json(run / ASKED)
        columns, document = found["columns"], found["document"]
        return cls(**{**found, "columns": columns and tuple(columns), "document": document and Layout(**document)})


def choose_for(asked: RunRequest, run: Path, began: float, tell: Callable[[str], None]) -> Recipe:
    """Makes the folder of a run, with its text and its recipe, which it returns. began: when the minutes began, by
    `time.monotonic`. Raises UserError, and leaves no folder then that wasn't there."""
    is_new = not run.exists()
    with only_trainer(run):
        return _chosen_alone(asked, run, began, tell, is_new=is_new)


def _chosen_alone(asked: RunRequest, run: Path, began: float, tell: Callable[[str], None], *, is_new: bool) -> Recipe:
    try:
        shutil.rmtree(run / MEASURING, ignore_errors=True)  # of a process that was killed
        if (run / ASKED).exists() and RunRequest.read(run).text != asked.text:
            shutil.rmtree(run / TEXT, ignore_errors=True)
        write_json(run / ASKED, asdict(asked))
        return _chosen(asked, run, began, tell)
    except UserError:
        if is_new:
            shutil.rmtree(run)
        raise


def _chosen(asked: RunRequest, run: Path, began: float, tell: Callable[[str], None]) -> Recipe:
    data = _data(asked, run, tell)
    section = make_recipe({"data": data}, [*asked.overrides, ENDLESS], "command line").data
    text = TrainingText.of([section.files_of(corpus) for corpus in section.corpora])

    def measured(recipe: Recipe) -> TrainingSpeed:
        try:
            return measure(recipe, run / MEASURING)
        finally:
            shutil.rmtree(run / MEASURING, ignore_errors=True)

    def seconds_left() -> float:
        return 60 * asked.minutes * (1 - SHARE_OF_END) - (time.monotonic() - began)

    if not is_limited(asked.overrides):
        tell(f"choosing a recipe for {asked.minutes:g} minutes (--minutes)")
    choice = choose(data, asked.overrides, text, seconds_left, measured, fast=asked.fast)
    recipe = choice.recipe()
    reasons = [f"{name}: {reason}" for name, reason in choice.reasons.items()]
    for line in reasons:
        tell(line)
    write_file(run / CHOICES, "".join(f"{line}\n" for line in reasons).encode())
    write_recipe(run, recipe)
    (run / ASKED).unlink()
    return recipe


def _data(asked: RunRequest, run: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """The recipe's section, with the parts that are given or set apart."""
    given = {"source": asked.source, "target": asked.target}
    section = make_recipe({"data": {"train": given, "valid": given}}, [*asked.overrides, ENDLESS], "command line").data
    languages = section.source_language, section.target_language
    if asked.valid_source:
        return {"train": given, "valid": {"source": asked.valid_source, "target": asked.valid_target}}
    corpus = replace(as_corpus(list(map(Path, asked.source)), list(map(Path, asked.target))), columns=asked.columns)
    split = split_corpus(corpus, run / TEXT, languages, document=asked.document, tell=tell)
    tell(split.summary())
    parts = {"train": split.train, "valid": split.valid, "held_out": split.test}
    return {
        **{name: _files(part) for name, part in parts.items() if part is not None},
        "filters": {**FILTERS, "copies": languages[0] != languages[1]},
        "source_language": languages[0],
        "target_language": languages[1],
    }


def _files(corpus: CorpusFiles) -> dict[str, list[str]]:
    return {"source": list(map(str, corpus.sources)), "target": list(map(str, corpus.targets))}


def measure(recipe: Recipe, folder: Path) -> TrainingSpeed:
    """Trains for some seconds in a folder that is made for that. Raises UserError."""
    began = time.monotonic()
    run = start(recipe, folder, lambda _: None, Alone())
    before = time.monotonic() - began
    run.progress.flops = 0.0  # of these steps alone, whatever a model to start from took
    steps, seconds = (step for epoch in range(10**9) for step in run.train.plan.steps(epoch)), list[float]()
    while len(seconds) < UNMEASURED_STEPS + 1 or sum(seconds[UNMEASURED_STEPS:]) < MEASURED_SECONDS:
        began = time.monotonic()
        take_step(run, next(steps), None, Reporter(quiet=True))
        seconds.append(time.monotonic() - began)
    source, target = run.data.train.mean_lengths
    corpus = Corpus(len(run.data.train), len(run.data.train), (source + 1, target + 1), 0)
    beginning, parts = run.train.plan.beginning()
    return TrainingSpeed(
        seconds_of_step=sum(seconds[UNMEASURED_STEPS:]) / (len(seconds) - UNMEASURED_STEPS),
        seconds_before=before,
        steps_of_epoch=len(beginning) * parts,
        corpus=corpus,
        parameters=count(on_meta(run.model.config).parameters()),
        work_of_line=work_per_sentence(run.model.config, corpus, 1),
        work_of_step=run.progress.flops / len(seconds),
        lines=len(run.data.valid_texts),
    )
