"""Checkpoints: all that an exact resume needs, in safetensors and JSON.

`weights.safetensors`, `optimizer.safetensors` (Adam's moments by weight name), `average.safetensors` (the moving
average of the weights, where there is one), `random.safetensors` (the state of each random generator), `state.json`
(where the run stands, and what it is a run of) and `SHA256SUMS`. Where the run stands in the data is a number: the plan
of batches is a function of seed and epoch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from headway.errors import UserError
from headway.model import Transformer
from headway.storage.atomic import write_directory, write_json
from headway.storage.checksums import find_damage, write_checksums
from headway.storage.model_directory import load_named_weights, named_weights
from headway.storage.tensors import load_tensors
from headway.storage.untrusted import read_json
from headway.training.averaging import MovingAverage

KEPT = 2
"""The last one, and the one before it."""
DAMAGED_SUFFIX = ".damaged"
"""What is added to the name of one that can't be used, when the one before it is."""
FORMAT_VERSION = 1


@dataclass
class Progress:
    """Where a run stands."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    step_in_epoch: int = 0
    minutes: float = 0.0
    """Spent so far, over all resumes."""
    best_score: float | None = None
    """Validation BLEU, or the negative validation loss, of the best model."""
    best_loss: float | None = None
    """Validation loss of the best model; decides where scores are equal."""
    best_step: int = 0
    validations_without_better: int = 0
    validated_step: int = 0
    """The last step that was validated after."""


def conditions() -> dict[str, Any]:
    """What the last digits of a training step depend on."""
    return {"torch": torch.__version__, "threads": torch.get_num_threads()}


@dataclass
class State:
    """What a checkpoint says of its run."""

    progress: Progress
    recipe: dict[str, Any]
    data: str
    """Fingerprint of the prepared data."""
    made_with: dict[str, Any] = field(default_factory=conditions)
    """What the last digits of the numbers depend on, beside all this."""


def save_checkpoint(
    folder: Path, model: Transformer, optimizer: torch.optim.Adam, average: MovingAverage | None, state: State
) -> None:
    """Writes `folder/step-NNNNNNNN`, whole or not at all, and removes all but the last few. Raises UserError where the
    disk is full."""
    files = {
        "weights": named_weights(model),
        "optimizer": _optimizer_tensors(model, optimizer),
        "average": average.named_tensors() if average is not None else {},
        "random": random_states(),
    }
    size = sum(tensor.nbytes for tensors in files.values() for tensor in tensors.values())
    with write_directory(folder / step_name(state.progress.step), size) as path:
        for name, tensors in files.items():
            if tensors:
                save_file(tensors, path / f"{name}.safetensors")
        write_json(path / "state.json", {"format_version": FORMAT_VERSION, **asdict(state)})
        write_checksums(path)
    for old in step_folders(folder)[:-KEPT]:
        shutil.rmtree(old)


def load_checkpoint(path: Path, model: Transformer, optimizer: torch.optim.Adam, average: MovingAverage | None) -> None:
    """Puts model, optimizer and random generators where they were. Raises UserError."""
    try:
        weights = load_tensors(path / "weights.safetensors", named_weights(model))
        load_named_weights(model, weights, str(path / "weights.safetensors"))
        _load_optimizer(model, optimizer, load_file(path / "optimizer.safetensors"))
        if average is not None:
            average.restore(load_file(path / "average.safetensors"))
        restore_random_states(load_file(path / "random.safetensors"))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: this checkpoint doesn't fit its run ({error})") from None


def read_state(path: Path) -> State:
    """What a checkpoint says of its run. Raises UserError."""
    try:
        document = read_json(path / "state.json")
        version = document.pop("format_version")
        if version == FORMAT_VERSION:
            return State(**{**document, "progress": Progress(**document["progress"])})
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}/state.json: can't be read ({error})") from None
    raise UserError(
        f"{path}/state.json: format_version {version!r} is not {FORMAT_VERSION}; use the headway of the run"
    )


def last_checkpoint(folder: Path, notice: Callable[[str], None]) -> Path | None:
    """The newest checkpoint that is as it was written, if the folder has any. Newer ones that are damaged are named and
    put aside. Raises UserError where all are damaged: then nothing is touched."""
    found, damaged = None, {}
    for path in reversed(step_folders(folder)):
        damage = find_damage(path)
        if damage is None:
            found = path
            break
        damaged[path] = damage
    if damaged and found is None:
        faults = "; ".join(f"{path.name}: {damage}" for path, damage in damaged.items())
        raise UserError(f"{folder}: no checkpoint can be used ({faults}); restore one, or begin a new run elsewhere")
    for path, damage in damaged.items():
        notice(f"warning: {path}: {damage}; going on from {found.name}, which is whole" if found else "")
        aside = path.with_name(path.name + DAMAGED_SUFFIX)
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
    return found


def best_steps(folder: Path) -> set[int]:
    """The steps of the models that the checkpoints in the folder know as the best."""
    return {read_state(path).progress.best_step for path in step_folders(folder)}


def step_name(step: int) -> str:
    return f"step-{step:08d}"


def step_folders(folder: Path) -> list[Path]:
    """The `step-NNNNNNNN` folders, oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.suffix == "")


def _optimizer_tensors(model: Transformer, optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": value.contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _load_optimizer(model: Transformer, optimizer: torch.optim.Adam, tensors: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        if f"{name}/step" in tensors:  # a weight that never had a gradient has no state
            optimizer.state[parameter] = {
                key: tensors[f"{name}/{key}"].to(parameter.device) for key in ("step", "exp_avg", "exp_avg_sq")
            }


def random_states() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def restore_random_states(states: dict[str, Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])
