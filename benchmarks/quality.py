"""How good are the models of the recipes? Trains each row of a table, with each of its seeds, and scores it.

    headway data multi30k && headway data tatoeba-ko-en
    python benchmarks/quality.py benchmarks/results.yaml [--work runs/quality] [--quick] [--print]
    python benchmarks/quality.py benchmarks/ablations.yaml [--only NAME ...] [--seeds SEED ...] [--threads 1]

A row of the table names a recipe, what is changed in it, the seeds and the test sets. A row without test sets is
scored on the recipe's validation set. Each finished run is a line of `finished.jsonl` in the folder --work at once; a
run that was cut off goes on from its last checkpoint. Prints a Markdown table of all finished runs, with the mean over
the seeds, each compared by paired bootstrap with the first one that has the same references and seed. --quick trains
tiny models for some steps, to see that everything works.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from headway.evaluation import compare_translations, score_translations
from headway.storage.steps import step_folders
from headway.training.reading import load_recipe
from headway.training.recipe import Recipe

ROOT = Path(__file__).parent.parent
QUICK = [
    "model.preset=tiny",
    "data.distilled=[]",
    "training.max_steps=100",
    "training.validate_every=50",
    "training.warmup_steps=20",
]
"""What --quick changes. A teacher of so few steps would write each sentence up to the longest length."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TestSet(Section):
    """Files from the folder of the recipes' data."""

    source: Path
    reference: Path
    tokenize: str = "13a"
    """sacreBLEU's; none for tokenised files."""
    target_language: str | None = None


class Row(Section):
    """A model, trained once with each seed."""

    name: str
    recipe: Path
    changes: list[str] = []
    """As on the command line of `headway train`. `$WORK/NAME-$SEED` is the run of the row NAME, same seed."""
    after: str | None = None
    """The row whose model, with the same seed, this one starts from."""
    seeds: list[int] = [1]
    tests: list[TestSet] = []
    """None: the recipe's validation set."""


class Score(Section):
    """Of one model on one test set."""

    set: str
    tokenize: str
    bleu: float
    bleu_lowercased: float
    chrf: float
    translations: str
    """The file."""
    references: str


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
    minutes: float
    steps: int
    valid_loss: float
    """Of the best model, as is `valid_bleu`, which is greedy."""
    valid_bleu: float
    scores: list[Score]


def main() -> None:
    parser = argparse.ArgumentParser(description="How good are the models of the recipes?")
    parser.add_argument("table", type=Path)
    parser.add_argument("--work", type=Path, default=Path("runs/quality"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[], help="These of each row's seeds; default all.")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--print", action="store_true", help="Print what is finished, and train nothing.")
    options = parser.parse_args()
    rows = read_table(options.table, options.quick)
    if unknown := set(options.only) - {row.name for row in rows}:
        sys.exit(f"{options.table}: has no row {min(unknown)}")
    work = options.work / "quick" if options.quick else options.work
    work.mkdir(parents=True, exist_ok=True)
    if not options.print:
        for row in rows:
            for seed in row.seeds:
                if (not options.only or row.name in options.only) and (not options.seeds or seed in options.seeds):
                    finish(row, seed, work, options.threads)
    found = read_finished(work)
    print("\n".join(lines_of([row for row in rows if any(one.name == row.name for one in found)], found)))


def read_table(file: Path, quick: bool = False) -> list[Row]:
    """Recipes and test sets are named from the folder of the table."""
    folder = file.parent
    rows = [Row.model_validate(row) for row in yaml.safe_load(file.read_text(encoding="utf-8"))]
    names = [row.name for row in rows]
    for place, row in enumerate(rows):
        if row.name in names[:place]:
            sys.exit(f"{file}: two rows are named {row.name}")
        if row.after is not None and row.after not in names[:place]:
            sys.exit(f"{file}: {row.name} comes after {row.after}, which isn't a row before it")
    return [
        row.model_copy(
            update={
                "recipe": folder / row.recipe,
                "tests": [
                    test.model_copy(update={"source": folder / test.source, "reference": folder / test.reference})
                    for test in row.tests
                ],
                **({"changes": [*row.changes, *QUICK], "seeds": row.seeds[:1]} if quick else {}),
            }
        )
        for row in rows
    ]


def finish(row: Row, seed: int, work: Path, threads: int | None) -> None:
    """Trains and scores the row with the seed, unless that is done, and writes it down."""
    said = yaml.safe_load(row.recipe.read_text("utf-8"))
    described = {**row.model_dump(mode="json", exclude={"seeds"}), "says": said}
    for one in read_finished(work):
        if (one.name, one.seed) == (row.name, seed):
            if one.row != described:
                sys.exit(f"{work}: {row.name} was run otherwise before; choose another name or another --work")
            return
    run = work / f"{row.name}-{seed}"
    changes = [change.replace("$WORK", str(work.absolute())).replace("$SEED", str(seed)) for change in row.changes]
    changes.append(f"training.seed={seed}")
    if row.after is not None:
        changes.append(f"training.init_from={(work / f'{row.after}-{seed}').absolute()}")
    headway("train", row.recipe, *changes, "--out", run, "--or-resume", threads=threads)
    recipe = load_recipe(run / "recipe.yaml")
    shown = json.loads(headway("show", run, "--json"))
    [*_, checkpoint] = step_folders(run / "checkpoints")
    progress = json.loads((checkpoint / "state.json").read_bytes())["progress"]
    best = best_validation(run)
    finished = Finished(
        name=row.name,
        seed=seed,
        row=described,
        recipe=recipe.to_yaml(),
        parameters=shown["parameters"],
        petaflop=progress["flops"] and progress["flops"] / 1e15,
        minutes=progress["minutes"],
        steps=progress["step"],
        valid_loss=best["valid_loss"],
        valid_bleu=best["valid_bleu"],
        scores=[score(test, run, threads) for test in row.tests or validation_sets(recipe)],
    )
    with open(work / "finished.jsonl", "a", encoding="utf-8") as file:
        file.write(finished.model_dump_json() + "\n")
        file.flush()
        os.fsync(file.fileno())


def validation_sets(recipe: Recipe) -> list[TestSet]:
    return [
        TestSet(source=source, reference=target, target_language=corpus.tag or None)
        for corpus in recipe.data.valid
        for source, target in zip(corpus.source, corpus.target, strict=True)
    ]


def score(test: TestSet, run: Path, threads: int | None) -> Score:
    """Translates the source, keeps the translations in the run, and scores them."""
    output = run / f"{test.reference.name}.translated"
    flags = [] if test.target_language is None else ["--target-language", test.target_language]
    files = ("--source", test.source, "--reference", test.reference, "--output", output)
    found = json.loads(headway("evaluate", run, *files, *flags, "--tokenize", test.tokenize, "--json", threads=threads))
    translations, references = ([line.lower() for line in lines_in(file)] for file in (output, test.reference))
    return Score(
        set=test.source.name,
        tokenize=test.tokenize,
        bleu=found["bleu"],
        bleu_lowercased=score_translations(translations, references, test.tokenize).bleu,
        chrf=found["chrf"],
        translations=str(output),
        references=str(test.reference),
    )


def best_validation(run: Path) -> dict[str, Any]:
    """The line of the log that is of the best model."""
    step = int(json.loads((run / "best.json").read_bytes())["model"].rpartition("-")[2])
    entries = map(json.loads, (run / "log.jsonl").read_bytes().splitlines())
    return next(entry for entry in entries if entry["step"] == step and "valid_loss" in entry)


def headway(*arguments: object, threads: int | None = None) -> str:
    """What the command prints. Ends with it where it fails; a run that was cut off goes on next time."""
    flags = [] if threads is None else ["--threads", threads]
    command = [sys.executable, "-m", "headway", *map(str, (*arguments, *flags))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def lines_in(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def read_finished(work: Path) -> list[Finished]:
    file = work / "finished.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Finished.model_validate_json(line) for line in lines]


def lines_of(rows: Sequence[Row], finished: Sequence[Finished]) -> Iterator[str]:
    """The table in Markdown."""
    yield (
        "| Model | Seeds | Set | BLEU | lower-cased | chrF | against the first with these references | "
        "validation: loss, greedy BLEU | parameters | PFLOP | minutes |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    first: dict[tuple[str, str, int], Score] = {}
    for row in rows:
        runs = sorted((one for one in finished if one.name == row.name), key=lambda one: one.seed)
        for place, of_set in enumerate(runs[0].scores):
            scores = [run.scores[place] for run in runs]
            keys = [
                (os.path.realpath(one.references), one.tokenize, run.seed)
                for one, run in zip(scores, runs, strict=True)
            ]
            pairs = [(one, first.setdefault(key, one)) for one, key in zip(scores, keys, strict=True)]
            compared = "; ".join(comparison(one, other) for one, other in pairs if one is not other)
            figures = [
                each([one.bleu for one in scores], 2),
                each([one.bleu_lowercased for one in scores], 2),
                each([one.chrf for one in scores], 2),
                compared,
                f"{each([run.valid_loss for run in runs], 3)}, {each([run.valid_bleu for run in runs], 2)}",
                f"{runs[0].parameters / 1e6:.1f}M",
                each([run.petaflop for run in runs if run.petaflop is not None], 3),
                each([run.minutes for run in runs], 1),
            ]
            seeds = ", ".join(str(run.seed) for run in runs)
            yield f"| {row.name} | {seeds} | {of_set.set}, {of_set.tokenize} | {' | '.join(figures)} |"


def comparison(one: Score, other: Score) -> str:
    """The difference of BLEU, and how likely chance makes it."""
    ours, others, references = (lines_in(Path(file)) for file in (one.translations, other.translations, one.references))
    bleu = compare_translations(ours, others, references, one.tokenize)[0]
    return f"{bleu.score - bleu.other:+.2f} (p = {bleu.p_value:.3f})"


def each(values: Sequence[float], digits: int) -> str:
    """All values, and their mean where there are several."""
    text = ", ".join(f"{value:.{digits}f}" for value in values)
    return f"{text}: **{statistics.mean(values):.{digits}f}**" if len(values) > 1 else text


if __name__ == "__main__":
    main()
