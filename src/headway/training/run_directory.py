"""The folder of a run: its lock, the checks before a run begins or resumes there, and its stages, each a run of its own
in `stages/NAME`."""

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headway.errors import UserError
from headway.recipe.reading import MARK, changed_keys, flattened, is_run, load_recipe
from headway.recipe.recipe import Recipe, stage_folder
from headway.storage.atomic import remove_leftovers, try_lock, write_file
from headway.storage.steps import step_folders
from headway.text.characters import is_unicode
from headway.training.checkpoint import State, last_checkpoint

REQUEST = "choosing.json"
"""The file with the request of a run whose recipe isn't chosen yet (`training.own_text`)."""


def has_request(folder: Path) -> bool:
    """Whether the folder has a run without a recipe yet."""
    return (folder / REQUEST).is_file()


@contextmanager
def training_lock(run: Path, doing: str = "trains") -> Iterator[None]:
    """Makes the folder and locks it as long as this process lives. Raises UserError if another process has the lock.
    Windows and some file systems have no such locks. doing: what the other process does, for the message."""
    if not is_unicode(str(run)):  # recipes, states and safetensors can't hold it
        raise UserError(f"{run}: its name is not UTF-8; rename it")
    run.mkdir(parents=True, exist_ok=True)
    if os.name == "nt":  # opens no folder
        yield
        return
    folder = os.open(run, os.O_RDONLY)
    try:
        if not try_lock(folder):
            raise UserError(f"{run}: another process {doing} in this folder; wait for its end, or stop it")
        yield
    finally:
        os.close(folder)


def refuse_used_folder(run: Path) -> None:
    """Raises UserError unless a new run can begin here: the folder is new, empty, or has a start that failed."""
    if not run.exists():
        return
    if not run.is_dir():
        raise UserError(f"{run}: is a file, the run directory can't be made there")
    if has_begun(run):
        again = f"--resume {shlex.quote(str(run))}"
        raise UserError(f"{run}: holds a run already; go on with {again}, or choose another --output")
    if not is_run(run) and not has_request(run) and any(run.iterdir()):
        raise UserError(f"{run}: is not empty and holds no run; choose another --output")


def has_begun(folder: Path) -> bool:
    """Whether a run, or a stage of it, can go on from a checkpoint."""
    return any(map(step_folders, (folder / "checkpoints", *folder.glob("stages/*/checkpoints"))))


def write_recipe(run: Path, recipe: Recipe) -> None:
    """Writes `recipe.yaml`, which makes the folder a run directory."""
    write_file(run / "recipe.yaml", (MARK + recipe.to_yaml()).encode("utf-8"))


def open_run(run: Path, notice: Callable[[str], None]) -> Path | None:
    """Prepares the folder and returns its last checkpoint. Without one, removes what a failed start left."""
    for name in ("models", "checkpoints"):
        (run / name).mkdir(parents=True, exist_ok=True)
        remove_leftovers(run / name)
    checkpoint = last_checkpoint(run / "checkpoints", notice)
    if checkpoint is None and is_run(run):
        if any((run / "models").iterdir()) or any((run / "checkpoints").iterdir()) or has_begun(run):
            raise UserError(f"{run}: has models but no checkpoint to go on from; choose another --output for a new run")
        for name in ("data", "stages"):
            shutil.rmtree(run / name, ignore_errors=True)
        for name in ("log.jsonl", "best.json"):
            (run / name).unlink(missing_ok=True)
    return checkpoint


@contextmanager
def remove_if_refused(run: Path) -> Iterator[None]:
    """Removes the run directory if a UserError ends the block before it has more than its recipe."""
    try:
        yield
    except UserError:
        with suppress(OSError):  # a folder that isn't empty stays
            for name in ("models", "checkpoints", "stages"):
                if (run / name).exists():
                    (run / name).rmdir()
            if [file.name for file in run.iterdir()] == ["recipe.yaml"] and is_run(run):
                (run / "recipe.yaml").unlink()
                run.rmdir()
        raise


LIMITS = ("max_steps", "max_epochs", "max_minutes", "patience", "decay_steps", "save_every", "validate_every")
CHANGEABLE = {"data.domain", *(f"training.{name}" for name in LIMITS)}
"""Keys that a resumed run may change."""


def refuse_changes(before: dict[str, Any], after: Recipe) -> None:
    """Raises UserError with the differences that a resumed run can't have. before: `model_dump` of its recipe."""
    before = {**before, "model": {"norm_embeddings": False, **before.get("model", {})}}  # older runs lack it
    with suppress(ValidationError):  # a key was removed since
        before = Recipe.model_validate(before).model_dump(mode="json")  # with the keys that were added since
    differing = differing_keys([flattened(before), flattened(after.model_dump(mode="json"))])
    free = CHANGEABLE | ({"training.init_from"} if after.training.adapter else set())  # its fingerprint is compared
    changed = [
        f"{key} ({old} -> {new})"
        for key, (old, new) in sorted(differing.items())
        if ".".join(key.split(".")[-2:]) not in free
    ]
    if changed:
        raise UserError(f"a resumed run can't change {', '.join(changed)}; start a new run with another --output")


def check_same_run(state: State, recipe: Recipe, now: dict[str, str | int], notice: Callable[[str], None]) -> None:
    """Raises UserError for a checkpoint of another run. Tells which `conditions` changed to those of `now`, and skips
    the rest of an epoch that another version planned."""
    refuse_changes(state.recipe, recipe)
    before = state.made_with
    if before.get("plan") != now["plan"]:
        notice("notice: another version of headway began this epoch, with other batches; the rest of it is left out")
        state.progress.epoch += state.progress.step_in_epoch > 0
        state.progress.step_in_epoch = 0
    changed = [name for name in now if name != "plan" and before.get(name) != now[name]]
    if changed:
        changes = ", ".join(f"{name} {before.get(name, 'unknown')} -> {now[name]}" for name in changed)
        notice(f"notice: resuming with {changes}: the last digits will differ")


def differing_keys(recipes: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The keys, as `section.key`, that differ between the recipes, with the value in each; None if it lacks the key."""
    keys = dict.fromkeys(key for recipe in recipes for key in recipe)
    values = {key: [recipe.get(key) for recipe in recipes] for key in keys}
    return {key: of_key for key, of_key in values.items() if any(value != of_key[0] for value in of_key)}


@dataclass(frozen=True)
class RunStage:
    """A stage of a run."""

    folder: Path
    recipe: Recipe
    is_done: bool
    """Whether a later one has begun, so that this one stays as it is."""


def open_stages(recipe: Recipe, run: Path, notice: Callable[[str], None]) -> list[RunStage]:
    """The stages of a run, new or resumed. A stage that has begun keeps its own recipe, except for keys that `recipe`
    changes. Raises UserError for changes that a resumed run can't have."""
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
            if own.training.adapter:  # it needs that model, and the run may have been moved
                changed.setdefault("training", {})["init_from"] = str(own.training.init_from)
            own = load_recipe(folder / "recipe.yaml").changed(changed)
        found.append(RunStage(folder, own, is_done=place < begun))
    return found
