"""A run in stages: several trainings, one after another, that make one model. Each is a run of its own, in the folder
`stages/NAME` of the whole; `best.json` of the whole names the last stage that has a model."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.storage.atomic import write_json
from headway.training.reading import load_recipe
from headway.training.recipe import Recipe, stage_folder
from headway.training.run_directory import changed_keys, has_begun, is_run, refuse_changes, write_recipe


@dataclass(frozen=True)
class RunStage:
    """A stage of a run."""

    folder: Path
    recipe: Recipe
    is_done: bool
    """Whether a later one has begun; this one stays as it is then."""


def open_stages(recipe: Recipe, run: Path, notice: Callable[[str], None]) -> list[RunStage]:
    """The stages of the run in the folder, which is a new one, or goes on. One that has begun keeps its own recipe, but
    for what `recipe` has otherwise than the run had before. Raises UserError for changes that would make it another
    run."""
    before = recipe
    if has_begun(run):
        before = load_recipe(run / "recipe.yaml")
        refuse_changes(before.model_dump(mode="json"), recipe)
    elif is_run(run):  # a start that failed
        for name in ("stages", "data"):
            shutil.rmtree(run / name, ignore_errors=True)
    write_recipe(run, recipe)
    folders = [stage_folder(run, stage.name) for stage in recipe.stages]
    begun = max((place for place, folder in enumerate(folders) if is_run(folder)), default=0)
    found = []
    for place, (folder, stage, was) in enumerate(zip(folders, recipe.stages, before.stages, strict=True)):
        own, then = recipe.of_stage(stage, run), before.of_stage(was, run)
        changed = changed_keys(then.model_dump(mode="json"), own.model_dump(mode="json"))
        if place < begun and changed:
            notice(f"notice: stage {stage.name} is done and stays as it is; what was changed is for later ones")
        elif has_begun(folder):
            own = load_recipe(folder / "recipe.yaml").changed(changed)
        found.append(RunStage(folder, own, is_done=place < begun))
    return found


def name_best_stage(folder: Path, earlier: Sequence[RunStage]) -> None:
    """Writes `best.json` of the whole run: this stage, in its folder, or the one before it while it has no model."""
    best = folder.parent.parent / "best.json"
    if (folder / "best.json").exists():
        write_json(best, {"stage": folder.name})
    elif earlier:
        write_json(best, {"stage": earlier[-1].folder.name})
    else:
        best.unlink(missing_ok=True)
