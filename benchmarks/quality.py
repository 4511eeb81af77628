"""How good are the models of the recipes? Trains each row of a table, with each of its seeds, and scores it.

    headway data multi30k && headway data tatoeba-ko-en
    python benchmarks/quality.py benchmarks/results.yaml [--work runs/quality] [--quick] [--print]
    python benchmarks/quality.py benchmarks/ablations.yaml [--only NAME ...] [--seeds SEED ...] [--threads 1]

A row of the table names a recipe, what is changed in it, the seeds and the test sets. A row without test sets is
scored on the recipe's validation set. Each finished run is a line of `finished.jsonl` in the folder --work at once; a
run that was cut off goes on from its last checkpoint. A row may also be `of` another: a stage of its runs, which is
scored as it is. Prints a Markdown table of all finished runs, with the mean over
the seeds, each compared by paired bootstrap with the first one that has the same references and seed. PFLOP and minutes
are those of all stages. --quick trains tiny models for some steps, to see that everything works.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from headway.data.corpus import read_lines
from headway.evaluation import compare_translations, score_translations
from headway.recipe.reading import load_recipe
from headway.recipe.recipe import Recipe
from headway.storage.changes import first_change
from headway.storage.model_directory import stage_of
from headway.storage.steps import step_folders
from headway.training.checkpoint import read_state
from headway.training.reporter import read_run

ROOT = Path(__file__).resolve().parent.parent
"""Commands run here, so paths in `changes` are relative to it; other paths of a table are relative to its folder."""
QUICK = [
    "model.preset=tiny",
    "decoding.beam_size=1",
    "decoding.max_length=5",
    "training.max_epochs=null",
    "training.max_steps=100",
    "training.validate_every=50",
    "training.warmup_steps=20",
]
"""What --quick changes. A model of so few steps would write each sentence up to the longest length."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TestSet(Section):
    source: Path
    reference: Path
    tokenize: str = "13a"
    """sacreBLEU's; none for tokenised files."""
    target_language: str | None = None


class Row(Section):
    """A model, trained once with each seed. In a table, `like: NAME` begins with what an earlier row has; `changes` are
    added to its."""

    name: str
    recipe: Path
    changes: list[str] = []
    """As on the command line of `headway train`. `$WORK/NAME-$SEED` is the run of the row NAME, same seed."""
    after: str | None = None
    """The row whose model, with the same seed, this one starts from."""
    of: str | None = None
    """The row whose runs this one is a stage of. It has all that row has, but for what it says itself."""
    stage: str | None = None
    """The name of that stage."""
    seeds: list[int] = [1]
    tests: list[TestSet] = []
    """None: the recipe's validation set."""

    def needs(self, name: str) -> bool:
        """Whether the row's runs are made with those of the row `name`."""
        run = re.compile(rf"\$WORK/{re.escape(name)}-\$SEED(?![\w.-])")  # and no file that is named so
        return self.after == name or any(run.search(change) for change in self.changes)


class Score(Section):
    """Of one model on one test set."""

    set: str
    tokenize: str
    bleu: float
    bleu_lowercased: float
    chrf: float
    translations: str
    """The file, in the folder --work."""
    references: str
    """The file, relative to ROOT."""


class Finished(Section):
    """A line of finished.jsonl."""

    name: str
    seed: int
    row: dict[str, Any]
    """As it was when it was run, with what its recipe says, to notice changes."""
    recipe: str
    """The resolved recipe."""
    parameters: int
    petaflop: float | None
    """Of all stages."""
    minutes: float
    """Of the run, with all stages that it has until then."""
    steps: int
    valid_loss: float
    """Of the best model, as is `valid_bleu`, which is greedy."""
    valid_bleu: float
    scores: list[Score]


def main() -> None:
    parser = argparse.ArgumentParser(description="How good are the models of the recipes?")
    parser.add_argument("table", type=Path)
    parser.add_argument("--work", type=Path, default=Path("runs/quality"))
    parser.add_argument("--quick", action="store_true", help="Train tiny models for some steps.")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="These rows; default all.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[], help="These of each row's seeds; default all.")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--print", action="store_true", help="Print what is finished, and train nothing.")
    options = parser.parse_args()
    rows = read_table(options.table, options.quick)
    if unknown := set(options.only) - rows.keys():
        sys.exit(f"{options.table}: has no row {min(unknown)}")
    work = (options.work / "quick" if options.quick else options.work).absolute()
    chosen = [
        (row, seed)
        for row in rows.values()
        for seed in row.seeds
        if (not options.only or row.name in options.only) and (not options.seeds or seed in options.seeds)
    ]
    if not chosen:
        sys.exit(f"{options.table}: no such row has one of these seeds")
    if not options.print:
        work.mkdir(parents=True, exist_ok=True)
        for row, seed in chosen:
            finish(rows, row, seed, work, options.threads)
    print("\n".join(lines_of(rows, read_finished(work), work)))


def read_table(file: Path, quick: bool = False) -> dict[str, Row]:
    """The rows by name, with paths relative to ROOT."""
    rows: dict[str, Row] = {}
    try:
        table = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        sys.exit(f"{file}: can't be read: {error}")
    if not isinstance(table, list) or not all(isinstance(said, dict) and "name" in said for said in table):
        sys.exit(f"{file}: must be a list of rows, each with a name")
    for said in table:
        for key in ("like", "after", "of"):
            if said.get(key) is not None and said[key] not in rows:
                sys.exit(f"{file}: {said['name']} is {key} {said[key]}, which isn't a row before it")
        begun = rows[base].model_dump(exclude_defaults=True) if (base := said.get("like") or said.get("of")) else {}
        own = {key: value for key, value in said.items() if key != "like"}
        changes = [*begun.get("changes", []), *(said.get("changes") or [])]
        try:
            row = Row.model_validate({**begun, **own, "changes": changes})
        except ValidationError as error:
            problem = error.errors()[0]
            sys.exit(f"{file}: {said['name']}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}")
        if row.name in rows:
            sys.exit(f"{file}: two rows are named {row.name}")
        rows[row.name] = row
    return {name: _from_root(row, file.parent, quick) for name, row in rows.items()}


def _from_root(row: Row, folder: Path, quick: bool) -> Row:
    def named(path: Path) -> Path:
        return Path(os.path.relpath(folder / path, ROOT))

    tests = [
        test.model_copy(update={"source": named(test.source), "reference": named(test.reference)}) for test in row.tests
    ]
    quickly = {"changes": [*row.changes, *QUICK], "seeds": row.seeds[:1]} if quick else {}
    return row.model_copy(update={"recipe": named(row.recipe), "tests": tests, **quickly})


def finish(rows: Mapping[str, Row], row: Row, seed: int, work: Path, threads: int | None) -> None:
    """Trains and scores the row with the seed, unless that is done, and appends the result to finished.jsonl."""
    for name in {*stages(rows, row), row.of} - {row.name, None}:
        if not is_finished(rows[name], seed, work):
            sys.exit(f"{work}: {row.name} needs {name}, which isn't finished with seed {seed}")
    if is_finished(row, seed, work):
        return
    run = work / f"{row.of or row.name}-{seed}"
    changes = [change.replace("$WORK", str(work)).replace("$SEED", str(seed)) for change in row.changes]
    changes.append(f"training.seed={seed}")
    if row.after is not None:
        changes.append(f"training.init_from={work / f'{row.after}-{seed}'}")
    if row.of is None:
        headway("train", row.recipe, *changes, "--resume", run, threads=threads)
    run = run / "stages" / row.stage if row.stage else stage_of(run)
    recipe = load_recipe(run / "recipe.yaml")
    shown = json.loads(headway("show", run, "--json"))
    progress = read_state(step_folders(run / "checkpoints")[-1]).progress
    curves = read_run(run, print).curves
    tests = row.tests or validation_sets(recipe)
    finished = Finished(
        name=row.name,
        seed=seed,
        row=described(row),
        recipe=recipe.to_yaml(),
        parameters=shown["parameters"],
        petaflop=None if progress.flops is None else progress.flops / 1e15,
        minutes=progress.all_minutes,
        steps=progress.step,
        valid_loss=curves["valid_loss"][progress.best_step],
        valid_bleu=curves["valid_bleu"][progress.best_step],
        scores=[score(test, run, work, f"translated-{place}.txt", threads) for place, test in enumerate(tests)],
    )
    with open(work / "finished.jsonl", "a", encoding="utf-8") as file:
        file.write(finished.model_dump_json() + "\n")
        file.flush()
        os.fsync(file.fileno())


def is_finished(row: Row, seed: int, work: Path) -> bool:
    """Ends the command where the row was finished with other settings."""
    for one in read_finished(work):
        if (one.name, one.seed) == (row.name, seed):
            if changed := first_change(one.row, described(row)):
                sys.exit(
                    f"{work}: {row.name} was run with other settings: {changed}; choose another --work, or remove its "
                    "runs, and those made with them, with their lines in finished.jsonl"
                )
            return True
    return False


def described(row: Row) -> dict[str, Any]:
    """What decides what the row's runs are."""
    said = yaml.safe_load((ROOT / row.recipe).read_text("utf-8"))
    return {**row.model_dump(mode="json", exclude={"seeds"}, exclude_defaults=True), "says": said}


def validation_sets(recipe: Recipe) -> list[TestSet]:
    return [
        TestSet(source=source, reference=target, target_language=corpus.tag or None)
        for corpus in recipe.data.valid
        for source, target in zip(corpus.source, corpus.target, strict=True)
    ]


def score(test: TestSet, run: Path, work: Path, name: str, threads: int | None) -> Score:
    """Translates the source, keeps the translations in the run under the name, and scores them."""
    output = run / name
    flags = [] if test.target_language is None else ["--target-language", test.target_language]
    files = ("--source", test.source, "--reference", test.reference, "--output", output)
    found = json.loads(headway("evaluate", run, *files, *flags, "--tokenize", test.tokenize, "--json", threads=threads))
    translations, references = ([line.lower() for line in read_lines(file)] for file in (output, ROOT / test.reference))
    return Score(
        set=test.source.name,
        tokenize=test.tokenize,
        bleu=found["bleu"],
        bleu_lowercased=score_translations(translations, references, test.tokenize).bleu,
        chrf=found["chrf"],
        translations=str(output.relative_to(work)),
        references=os.path.relpath(ROOT / test.reference, ROOT),
    )


def headway(*arguments: object, threads: int | None = None) -> str:
    """What the command prints. Ends with it where it fails; a run that was cut off goes on next time."""
    flags = [] if threads is None else ["--threads", threads]
    command = [sys.executable, "-m", "headway", *map(str, (*arguments, *flags))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            said, _ = process.communicate()
        except KeyboardInterrupt:
            process.wait()  # a training saves what was done
            sys.exit("stopped; the same command goes on")
    if process.returncode:
        sys.exit(process.returncode)
    return said


def read_finished(work: Path) -> list[Finished]:
    file = work / "finished.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Finished.model_validate_json(line) for line in lines]


def lines_of(rows: Mapping[str, Row], finished: Sequence[Finished], work: Path) -> Iterator[str]:
    """The table in Markdown."""
    yield (
        "| Model | Seeds | Set | BLEU | lower-cased | chrF | against the first with these references | "
        "validation: loss, greedy BLEU | parameters | PFLOP | minutes |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    first: dict[tuple[str, str, int], Score] = {}
    minutes = {(one.name, one.seed): one.minutes for one in finished}
    for row in rows.values():
        runs = sorted((one for one in finished if one.name == row.name), key=lambda one: one.seed)
        for place in range(len(runs[0].scores) if runs else 0):
            scores = [run.scores[place] for run in runs]
            keys = [(one.references, one.tokenize, run.seed) for one, run in zip(scores, runs, strict=True)]
            pairs = [(one, first.setdefault(key, one)) for one, key in zip(scores, keys, strict=True)]
            parts = [[(name, run.seed) for name in stages(rows, row)] for run in runs]
            known = all(part in minutes for of_run in parts for part in of_run)
            compared = "; ".join(comparison(one, other, work) for one, other in pairs if one is not other)
            figures = [
                each([one.bleu for one in scores], 2),
                each([one.bleu_lowercased for one in scores], 2),
                each([one.chrf for one in scores], 2),
                compared,
                f"{each([run.valid_loss for run in runs], 3)}, {each([run.valid_bleu for run in runs], 2)}",
                f"{runs[0].parameters / 1e6:.1f}M",
                each([run.petaflop for run in runs if run.petaflop is not None], 3),
                each([sum(map(minutes.__getitem__, of_run)) for of_run in parts], 1) if known else "",
            ]
            seeds = ", ".join(str(run.seed) for run in runs)
            yield f"| {row.name} | {seeds} | {scores[0].set}, {scores[0].tokenize} | {' | '.join(figures)} |"


def stages(rows: Mapping[str, Row], row: Row) -> set[str]:
    """The names of the row and of all rows that its runs are made with, directly or not."""
    return {row.name}.union(*(stages(rows, other) for name, other in rows.items() if row.needs(name)))


def comparison(one: Score, other: Score, work: Path) -> str:
    """The difference of BLEU, and how likely chance makes it."""
    ours, others, references = (
        list(read_lines(file)) for file in (work / one.translations, work / other.translations, ROOT / one.references)
    )
    bleu = compare_translations(ours, others, references, one.tokenize)[0]
    return f"{bleu.score - bleu.other:+.2f} (p = {bleu.p_value:.3f})"


def each(values: Sequence[float], digits: int) -> str:
    """All values, and their mean where there are several."""
    text = ", ".join(f"{value:.{digits}f}" for value in values)
    return f"{text}: **{statistics.mean(values):.{digits}f}**" if len(values) > 1 else text


if __name__ == "__main__":
    main()
