"""A run on text without a recipe: parts of the text are set apart, and a recipe is chosen for it.

Until the recipe is there, the request stays in `choosing.json`, and a resumed run chooses again.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Any

from pydantic import TypeAdapter

from headway.data.corpus import CorpusFiles, Pair, as_corpus
from headway.data.filters import filter_tests, script_name
from headway.data.lines import Layout
from headway.data.options import DataSection, FiltersSection
from headway.data.splitting import RECORD, OtherSplitError, split_corpus, write_columns
from headway.data.two_sided import Sides
from headway.errors import UserError
from headway.evaluation import evenly
from headway.languages import english_name, read_code, script_family
from headway.recipe.choosing import ENDLESS, TrainingSpeed, TrainingText, choose, is_limited, share_of_protected
from headway.recipe.reading import UnclearLanguagesError, is_run, make_recipe
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import count, forward_work, work_of_step, work_of_update
from headway.storage.atomic import write_file, write_json
from headway.storage.untrusted import read_json
from headway.text.detection import lingua_detector, lingua_language, recognize, script_of
from headway.training.finishing import SHARE_OF_END
from headway.training.loop import read_steps, take_step
from headway.training.ranks import SingleProcess
from headway.training.reporter import Reporter
from headway.training.run_directory import REQUEST, training_lock, write_recipe
from headway.training.start import start

CHOICES = "choices.txt"
TEXT = "text"
MEASURING = "measuring"
FILTERS = {"max_ratio": 6, "script": True, "duplicates": "pair"}
"""Filters of training pairs if no parts are given, and `copies` if the languages differ."""
LEAST_BAD, MOST_BAD = 0.01, 0.5
"""Shares of the pairs: a filter that finds as many is chosen if parts are given. More are no accident."""
JUDGED, LEAST_KEPT = 10_000, 0.1
"""Approximate number of training pairs by which the text is judged, and the share that the filters must keep."""
SAMPLE = 100
"""Sentences of a side by which lingua tells which of two languages it is in."""
FIRST_PAIRS, RECOGNIZED = 10_000, 1_000
"""Pairs at the beginning from which sentences are taken to recognize languages that nothing names, and their number."""
MINUTES = 30.0
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
    document: Layout | None
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
            write_json(run / REQUEST, asdict(request))
            if is_run(run):  # a start that failed
                (run / "recipe.yaml").unlink()
            return _choose(request, run, began, tell)
        except UserError:
            if is_new:
                shutil.rmtree(run)
            raise


def refuse_other_text(request: RunRequest, run: Path, recipe: Recipe) -> None:
    """Raises UserError for a request with files of other names than those of the run, as far as it has kept them."""
    given = [*request.source, *request.target, *request.valid_source, *request.valid_target]
    corpora = [*recipe.data.train, *recipe.data.valid]
    begun = {file.name for corpus in corpora for file in (*corpus.source, *corpus.target)}
    if corpora[0].source[0].parent.name == TEXT:
        if not (run / TEXT / RECORD).is_file():  # columns that were written there
            return
        begun = {one["file"] for one in read_json(run / TEXT / RECORD)["inputs"]}
    alike = [{name for name in begun if fnmatch(name, one) or name == one} for one in (Path(one).name for one in given)]
    if not all(alike) or begun != set[str]().union(*alike):
        names = ", ".join(sorted(begun))
        again = f"--resume {shlex.quote(str(run))}"
        raise UserError(f"{run}: was begun with {names}; go on with {again} alone, or choose another --output")


def _choose(request: RunRequest, run: Path, began: float, tell: Callable[[str], None]) -> Recipe:
    request = with_languages(request, tell)
    data = _data(request, run, tell)
    section = make_recipe({"data": data}, [*request.overrides, ENDLESS], "command line").data
    corpora = [section.files_of(corpus) for corpus in section.corpora]
    text = TrainingText.of(corpora)
    every = max(1, text.pairs // JUDGED)
    sample = [*islice(chain.from_iterable(one.pairs() for one in corpora), 0, None, every)]
    text = replace(text, protected=share_of_protected(sample))
    judge_sides(sample, section, request, tell)
    bad: dict[str, float] = {}
    if request.valid_source and not is_limited(request.overrides):
        bad = shares_of_bad_pairs(sample, (section.source_language, section.target_language))
        data["filters"] = {name: FILTERS.get(name, True) for name in bad}
    end = began + 60 * request.minutes * (1 - SHARE_OF_END)
    if not is_limited(request.overrides):
        tell(f"choosing a recipe for {request.minutes:g} minute{'s' * (request.minutes != 1)} (--minutes)")
    try:
        measured = partial(measure, folder=run / MEASURING)
        choice = choose(data, request.overrides, text, lambda: end - time.monotonic(), measured, fast=request.fast)
    finally:
        shutil.rmtree(run / MEASURING, ignore_errors=True)
    recipe = choice.recipe()
    reasons = [
        f"data.filters.{name}: {data['filters'][name]}, for {share:.0%} of the training pairs"
        for name, share in bad.items()
    ]
    reasons += [f"{name}: {reason}" for name, reason in choice.reasons.items()]
    for line in reasons:
        tell(line)
    write_file(run / CHOICES, "".join(f"{line}\n" for line in reasons).encode())
    write_recipe(run, recipe)
    (run / REQUEST).unlink()
    return recipe


def with_languages(request: RunRequest, tell: Callable[[str], None]) -> RunRequest:
    """The request, with languages recognized from the text if neither keys nor file names tell them. Raises
    UserError."""
    try:
        _section(request)
    except UnclearLanguagesError as error:
        corpus = _corpus(request.source, request.target, ("", ""), request.columns)
        some = evenly([*islice(corpus.pairs(), FIRST_PAIRS)], RECOGNIZED)
        found = {side: recognize(" ".join(getattr(pair, side) for pair in some)) for side in error.sides}
        if not all(found.values()) or len({*found.values()}) < len(found):
            raise
        keys = [f"data.{side}_language={code}" for side, code in found.items()]
        tell(f"{' '.join(keys)}: recognized from the text, because the file names don't tell")
        return replace(request, overrides=[*request.overrides, *keys])
    return request


def _section(request: RunRequest) -> DataSection:
    """The section `data` by the keys of the request, before parts are set apart. Raises UserError."""
    given = {"source": request.source, "target": request.target}
    document = {"data": {"train": given, "valid": given}}
    return make_recipe(document, [*request.overrides, ENDLESS], "command line").data


def _data(request: RunRequest, run: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """The section `data` of the recipe, with the parts that are given or set apart."""
    given, section = {"source": request.source, "target": request.target}, _section(request)
    source, target = languages = section.source_language, section.target_language
    corpus = _corpus(request.source, request.target, languages, request.columns)
    if request.valid_source:
        if request.columns is None and (corpus.targets or not request.fast):  # a teacher needs a file for each side
            return {"train": given, "valid": {"source": request.valid_source, "target": request.valid_target}}
        shutil.rmtree(run / TEXT, ignore_errors=True)
        valid = _corpus(request.valid_source, request.valid_target, languages, request.columns)
        return _files_of(write_columns({"train": corpus, "valid": valid}, run / TEXT, languages))
    set_apart = partial(split_corpus, corpus, run / TEXT, languages, document=request.document, tell=tell)
    try:
        split = set_apart()
    except OtherSplitError:  # of an earlier start
        shutil.rmtree(run / TEXT)
        split = set_apart()
    tell(split.summary())
    files = _files_of({"held_out" if part == "test" else part: corpus for part, corpus in split.parts.items()})
    filters = {**FILTERS, "copies": _differ(languages)}
    return {**files, "filters": filters, "source_language": source, "target_language": target}


def _files_of(corpora: dict[str, CorpusFiles]) -> dict[str, Any]:
    return {
        key: {"source": [*map(str, one.sources)], "target": [*map(str, one.targets)]} for key, one in corpora.items()
    }


def _corpus(sources: list[str], targets: list[str], languages: Sides, columns: tuple[int, int] | None) -> CorpusFiles:
    return replace(as_corpus(list(map(Path, sources)), list(map(Path, targets)), languages), columns=columns)


def _differ(languages: Sides) -> bool:
    return len({read_code(one).language for one in languages}) > 1


def shares_of_bad_pairs(pairs: Sequence[Pair], languages: Sides) -> dict[str, float]:
    """The filters that a corpus needs, each with the share of the pairs that it finds."""
    known = all(map(script_family, languages))
    filters = FiltersSection(max_ratio=FILTERS["max_ratio"], script=known, copies=_differ(languages))
    tests = filter_tests(filters, languages)
    shares = {
        name: sum(bool(test(one.source, one.target)) for one in pairs) / max(1, len(pairs)) for name, test in tests
    }
    return {name: share for name, share in shares.items() if LEAST_BAD <= share <= MOST_BAD}


def judge_sides(pairs: Sequence[Pair], data: DataSection, request: RunRequest, tell: Callable[[str], None]) -> None:
    """Raises UserError if the filters drop nearly all pairs, as where source and target are exchanged. Warns where
    lingua, if it is there, finds each side in the language of the other."""
    filters, languages = data.filters, (data.source_language, data.target_language)
    tests = filter_tests(filters, languages)
    reasons = Counter(next((name for name, test in tests if test(one.source, one.target)), "") for one in pairs)
    sides = [one.source for one in pairs], [one.target for one in pairs]
    if (kept := reasons.pop("", 0)) < LEAST_KEPT * len(pairs):
        [(name, dropped)] = reasons.most_common(1)
        off, why = "false" if getattr(filters, name) is True else "null", ""
        if name == "script":
            found = [Counter(filter(None, map(script_of, texts))) for texts in sides]
            usual = [max(one, key=one.__getitem__, default="no script") for one in found]
            scripts = [script_name(code) for code in languages]
            remedy = (
                "exchange the sides" if usual == scripts[::-1] else "set data.source_language, data.target_language"
            )
            if usual != scripts:
                why = f": source and target are mostly {' and '.join(usual)}, not {' and '.join(scripts)}; {remedy}"
        raise UserError(
            f"{request.source[0]}: the filter {name} drops {dropped:,} of {len(pairs):,} pairs that were judged, "
            f"{kept:,} are left{why}; to keep such pairs: data.filters.{name}={off}"
        )
    with suppress(ImportError):
        known = [lingua_language(code) for code in languages]
        if None not in known and len(set(known)) > 1:
            detector = lingua_detector(languages, fast=True)
            if [detector.detect_language_of(" ".join(texts[:SAMPLE])) for texts in sides] == known[::-1]:
                names = [english_name(code) for code in languages[::-1]]
                tell(f"warning: source and target look like {' and '.join(names)}; if so, exchange the sides")


def measure(recipe: Recipe, folder: Path) -> TrainingSpeed:
    """Trains for some seconds in the folder, which it makes anew. A step with long rows takes several times as long as
    others, and few have them, so the time is that of a step with the mean work of an epoch. Raises UserError."""
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    run = start(recipe, folder, lambda _: None, SingleProcess())
    before = time.monotonic() - began
    config, plan = run.model.config, run.train.plan.beginning()[0]
    works = [work_of_step(config, step) + work_of_update(config, recipe.training.optimizer) for step in plan]
    most, usual = works.index(max(works)), cycle(range(len(plan)))
    measured, seconds = list[float](), list[float]()
    for number, step in enumerate(chain([most, next(usual), most], usual)):
        began = time.monotonic()
        read_steps(run, [take_step(run, plan[step])], None, Reporter(quiet=True))
        if number >= UNMEASURED_STEPS:
            measured.append(works[step])
            seconds.append(time.monotonic() - began)
        if len(seconds) > 1 and sum(seconds) >= MEASURED_SECONDS:
            break
    work = fmean(works)
    seconds_of_step = fmean(seconds) + slope(measured, seconds) * (work - fmean(measured))
    lengths = [length + 1 for length in run.data.train.mean_lengths]
    lines_of_step = work / sum(forward_work(config, *lengths, *lengths))
    seconds_of_line = seconds_of_step / lines_of_step / SPEED_OF_SEARCH
    return TrainingSpeed(
        seconds_of_step=seconds_of_step,
        seconds_before=before,
        seconds_of_validation=len(run.data.valid_texts) * seconds_of_line,
        seconds_of_teaching=TEACHING * len(run.data.train) * seconds_of_line,
        steps_of_epoch=run.steps_per_epoch,
        parameters=count(run.model.parameters()),
    )


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of the line through points that has the least squares; 0 if all have the same x."""
    return linear_regression(x, y).slope if len(set(x)) > 1 else 0.0
