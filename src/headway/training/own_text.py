"""A run on text without a recipe: parts of the text are set apart, and a recipe is chosen for it.

Until the recipe is there, the request stays in `choosing.json`, and a resumed run chooses again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from headway.data.corpus import as_corpus
from headway.data.lines import Layout
from headway.data.splitting import split_corpus
from headway.errors import UserError
from headway.recipe.choosing import ENDLESS, TrainingSpeed, TrainingText, choose, is_limited
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import count, forward_work
from headway.storage.atomic import write_file, write_json
from headway.storage.untrusted import read_json
from headway.training.finishing import SHARE_OF_END
from headway.training.loop import take_step
from headway.training.ranks import SingleProcess
from headway.training.reporter import Reporter
from headway.training.run_directory import REQUEST, training_lock, write_recipe
from headway.training.start import start

CHOICES = "choices.txt"
TEXT = "text"
MEASURING = "measuring"
"""The folder of a training by which speed is measured."""
FILTERS = {"max_ratio": 6, "script": True, "duplicates": "pair"}
"""Filters of training pairs if no parts are given, and `copies` if the languages differ."""
MINUTES = 30.0
TEXT_KEYS = ("source", "target", "columns", "document")
"""The fields of a request that decide the parts of the text."""
MEASURED_SECONDS, UNMEASURED_STEPS = 4.0, 2
SPEED_OF_SEARCH = 1 / 8
"""Approximate FLOP/s of greedy search with torch, by those of training."""
TEACHING = 0.75
"""Time in which a teacher translates a line, with a beam, but by CTranslate2, by that of greedy search with torch."""


@dataclass(frozen=True)
class RunRequest:
    """The request for a run without a recipe."""

    source: list[str]
    target: list[str]
    """Empty if the source files hold both sides."""
    valid_source: list[str]
    """Empty if parts are to be set apart."""
    valid_target: list[str]
    columns: tuple[int, int] | None
    """Columns of source and target in .tsv files, from 0."""
    document: Layout | None
    """The place in a line that names its document."""
    overrides: list[str]
    minutes: float
    fast: bool

    @classmethod
    def read(cls, run: Path) -> RunRequest:
        return TypeAdapter(cls).validate_python(read_json(run / REQUEST))


def choose_for(request: RunRequest, run: Path, began: float, tell: Callable[[str], None]) -> Recipe:
    """Makes the folder of a run, with its text and its recipe, and returns the recipe. began: the start of the minutes,
    by `time.monotonic`. Raises UserError, and then removes a folder that is new."""
    is_new = not run.exists()
    with training_lock(run):
        try:
            if (run / REQUEST).exists():
                before = RunRequest.read(run)
                if any(getattr(before, name) != getattr(request, name) for name in TEXT_KEYS):
                    shutil.rmtree(run / TEXT, ignore_errors=True)
            write_json(run / REQUEST, asdict(request))
            return _choose(request, run, began, tell)
        except UserError:
            if is_new:
                shutil.rmtree(run)
            raise


def _choose(request: RunRequest, run: Path, began: float, tell: Callable[[str], None]) -> Recipe:
    data = _data(request, run, tell)
    section = make_recipe({"data": data}, [*request.overrides, ENDLESS], "command line").data
    text = TrainingText.of([section.files_of(corpus) for corpus in section.corpora])
    end = began + 60 * request.minutes * (1 - SHARE_OF_END)
    if not is_limited(request.overrides):
        tell(f"choosing a recipe for {request.minutes:g} minutes (--minutes)")
    try:
        measured = partial(measure, folder=run / MEASURING)
        choice = choose(data, request.overrides, text, lambda: end - time.monotonic(), measured, fast=request.fast)
    finally:
        shutil.rmtree(run / MEASURING, ignore_errors=True)
    recipe = choice.recipe()
    reasons = [f"{name}: {reason}" for name, reason in choice.reasons.items()]
    for line in reasons:
        tell(line)
    write_file(run / CHOICES, "".join(f"{line}\n" for line in reasons).encode())
    write_recipe(run, recipe)
    (run / REQUEST).unlink()
    return recipe


def _data(request: RunRequest, run: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """The section `data` of the recipe, with the parts that are given or set apart."""
    given = {"source": request.source, "target": request.target}
    document = {"data": {"train": given, "valid": given}}
    section = make_recipe(document, [*request.overrides, ENDLESS], "command line").data
    if request.valid_source:
        return {"train": given, "valid": {"source": request.valid_source, "target": request.valid_target}}
    corpus = as_corpus(list(map(Path, request.source)), list(map(Path, request.target)))
    source, target = languages = section.source_language, section.target_language
    corpus = replace(corpus, columns=request.columns)
    split = split_corpus(corpus, run / TEXT, languages, document=request.document, tell=tell)
    tell(split.summary())
    parts = (("train", split.train), ("valid", split.valid), ("held_out", split.test))
    files = {
        name: {"source": list(map(str, part.sources)), "target": list(map(str, part.targets))}
        for name, part in parts
        if part is not None
    }
    filters = {**FILTERS, "copies": source != target}
    return {**files, "filters": filters, "source_language": source, "target_language": target}


def measure(recipe: Recipe, folder: Path) -> TrainingSpeed:
    """Trains for some seconds in the folder, which it makes anew. Raises UserError."""
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    run = start(recipe, folder, lambda _: None, SingleProcess())
    before = time.monotonic() - began
    run.progress.flops = 0.0  # of these steps alone
    steps, seconds = (step for epoch in range(10**9) for step in run.train.plan.steps(epoch)), list[float]()
    while len(seconds) < UNMEASURED_STEPS + 1 or sum(seconds[UNMEASURED_STEPS:]) < MEASURED_SECONDS:
        began = time.monotonic()
        take_step(run, next(steps), None, Reporter(quiet=True))
        seconds.append(time.monotonic() - began)
    seconds_of_step = sum(seconds[UNMEASURED_STEPS:]) / (len(seconds) - UNMEASURED_STEPS)
    lengths = [length + 1 for length in run.data.train.mean_lengths]
    lines_of_step = run.progress.flops / len(seconds) / sum(forward_work(run.model.config, *lengths, *lengths))
    seconds_of_line = seconds_of_step / lines_of_step / SPEED_OF_SEARCH
    return TrainingSpeed(
        seconds_of_step=seconds_of_step,
        seconds_before=before,
        seconds_of_validation=len(run.data.valid_texts) * seconds_of_line,
        seconds_of_teaching=TEACHING * len(run.data.train) * seconds_of_line,
        steps_of_epoch=run.steps_per_epoch,
        parameters=count(run.model.parameters()),
    )
