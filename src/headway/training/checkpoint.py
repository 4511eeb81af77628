"""Checkpoints: all that an exact resume needs, in safetensors and JSON.

`weights.safetensors`, `optimizer.safetensors` (Adam's moments by weight name), `average.safetensors` (the moving
average of the weights, where there is one), `random.safetensors` (the state of each random generator) and `state.json`.
Where the run stands in the data is a number: the plan of batches is a function of seed and epoch.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from headway.errors import UserError
from headway.model import Transformer
from headway.storage.atomic import write_directory, write_json
from headway.storage.model_directory import load_named_weights, named_weights
from headway.training.averaging import MovingAverage

KEPT = 2
"""The last one, and the one before it."""


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


def save_checkpoint(
    folder: Path,
    model: Transformer,
    optimizer: torch.optim.Adam,
    average: MovingAverage | None,
    progress: Progress,
) -> None:
    """Writes `folder/step-NNNNNNNN`, whole or not at all, and removes all but the last few."""
    with write_directory(folder / step_name(progress.step)) as path:
        save_file(named_weights(model), path / "weights.safetensors")
        save_file(_optimizer_tensors(model, optimizer), path / "optimizer.safetensors")
        if average is not None:
            save_file(average.named_tensors(), path / "average.safetensors")
        save_file(random_states(), path / "random.safetensors")
        write_json(path / "state.json", asdict(progress))
    for old in step_folders(folder)[:-KEPT]:
        shutil.rmtree(old)


def load_checkpoint(
    path: Path, model: Transformer, optimizer: torch.optim.Adam, average: MovingAverage | None
) -> Progress:
    """Puts model, optimizer and random generators where they were. Raises UserError."""
    try:
        load_named_weights(model, load_file(path / "weights.safetensors"), str(path / "weights.safetensors"))
        _load_optimizer(model, optimizer, load_file(path / "optimizer.safetensors"))
        if average is not None:
            average.restore(load_file(path / "average.safetensors"))
        restore_random_states(load_file(path / "random.safetensors"))
        return Progress(**json.loads((path / "state.json").read_text(encoding="utf-8")))
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{path}: this checkpoint can't be read ({error}); delete it to resume from the one before"
        ) from None


def last_checkpoint(folder: Path) -> Path | None:
    folders = step_folders(folder)
    return folders[-1] if folders else None


def best_steps(folder: Path) -> set[int]:
    """The steps of the models that the checkpoints in the folder know as the best."""
    states = [json.loads((path / "state.json").read_text(encoding="utf-8")) for path in step_folders(folder)]
    return {state["best_step"] for state in states}


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
