"""Checkpoints: all that an exact resume needs, in safetensors and JSON.

`weights.safetensors` (those that are trained), `optimizer.safetensors` (moments by weight name), `average.safetensors`
(the moving average of the weights, if there is one), `random.safetensors` (the state of each rank's random generators),
`state.json` (the progress of the run, its recipe and its data) and `SHA256SUMS`. Epoch and step in it are the place in
the data, because the plan of batches is a function of seed, epoch and step.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt, TypeAdapter, ValidationError
from safetensors.torch import save_file
from torch import Tensor

from headway.data.batches import PLAN
from headway.errors import UserError, first_problem
from headway.model import Transformer
from headway.storage.atomic import remove_directory, write_directory, write_json
from headway.storage.checksums import find_damage, write_checksums
from headway.storage.steps import step_folders, step_name
from headway.storage.stored_model import check_finite
from headway.storage.tensors import load_tensors, read_header
from headway.storage.untrusted import check_version, clipped, read_json
from headway.training.averaging import MovingAverage
from headway.training.optim import state_like, trained_weights
from headway.training.ranks import SingleProcess

KEPT = 2
DAMAGED_SUFFIX = ".damaged"
"""Suffix of a damaged checkpoint, when the one before it is used."""
FORMAT_VERSION = 1
GENERATORS = {"cpu": torch.random, "cuda": torch.cuda, "mps": torch.mps}


@dataclass
class Progress:
    """The progress of a run."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    step: NonNegativeInt = 0
    epoch: NonNegativeInt = 0
    step_in_epoch: NonNegativeInt = 0
    minutes: NonNegativeFloat = 0.0
    minutes_before: NonNegativeFloat = 0.0
    flops: NonNegativeFloat | None = 0.0
    """Work of all matrix products, with `start.inherited_flops`; None if unknown."""
    best_score: float | None = None
    """Validation BLEU, or the negative validation loss, of the best model."""
    best_loss: float | None = None
    best_step: NonNegativeInt = 0
    validations_without_better: NonNegativeInt = 0
    validated_step: NonNegativeInt = 0

    @property
    def all_minutes(self) -> float:
        return self.minutes_before + self.minutes


def conditions(device: torch.device, dtype: torch.dtype, processes: int) -> dict[str, str | int]:
    """Settings beside recipe and data that affect the last digits of a step."""
    precision, threads = str(dtype).removeprefix("torch."), torch.get_num_threads()
    hardware = {"threads": threads, "processes": processes, "device": device.type, "precision": precision}
    return {"plan": PLAN, "torch": torch.__version__, **hardware}


@dataclass
class State:
    """The state of a run in its checkpoint, `state.json`."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    progress: Progress
    recipe: dict[str, Any]
    data: str
    """Fingerprint of the prepared data."""
    made_with: dict[str, str | int]
    """The `conditions` of its steps."""
    scaler: dict[str, int | float] | None = None
    """The state of the loss's scaler, with fp16."""


def save_checkpoint(
    folder: Path,
    model: Transformer,
    optimizers: Sequence[torch.optim.Optimizer],
    average: MovingAverage | None,
    state: State,
    random: dict[str, Tensor] | None = None,
) -> None:
    """Writes `folder/step-NNNNNNNN`, whole or not at all, and removes all but the last few. random: the states of all
    ranks' generators; by default of this process alone. Raises UserError if the disk is full."""
    moments = {
        f"{name}/{key}": value.contiguous()
        for name, weight in model.named_parameters()
        for optimizer in optimizers
        for key, value in optimizer.state.get(weight, {}).items()
    }
    weights = {name: weight.detach().contiguous() for name, weight in trained_weights(model).items()}
    files = {"weights": weights, "optimizer": moments, "random": random or random_states()}
    if average is not None:
        files["average"] = average.named_tensors()
    size = sum(tensor.nbytes for tensors in files.values() for tensor in tensors.values())
    with write_directory(folder / step_name(state.progress.step), size) as path:
        for name, tensors in files.items():
            save_file(tensors, path / f"{name}.safetensors")
        write_json(path / "state.json", {"format_version": FORMAT_VERSION, **asdict(state)})
        write_checksums(path)
    for old in step_folders(folder)[:-KEPT]:
        remove_directory(old)


def load_checkpoint(
    path: Path,
    model: Transformer,
    optimizers: Sequence[torch.optim.Optimizer],
    average: MovingAverage | None,
    rank: int = 0,
) -> None:
    """Restores model, optimizers, average and the rank's random generators. Raises UserError."""
    weights = load_tensors(path / "weights.safetensors", trained_weights(model))
    check_finite(weights, str(path / "weights.safetensors"))
    for name, weight in trained_weights(model).items():
        weight.data.copy_(weights[name])
    _load_optimizers(model, optimizers, path / "optimizer.safetensors")
    if average is not None:
        average.restore(load_tensors(path / "average.safetensors", average.named_tensors()))
    _load_random_states(path / "random.safetensors", rank)


def read_state(path: Path) -> State:
    """Reads the state of a checkpoint. Raises UserError unless it has each value with the right type."""
    file = path / "state.json"
    document = read_json(file)
    check_version(document.pop("format_version", None), FORMAT_VERSION, file)
    try:
        if isinstance(progress := document.get("progress"), dict):
            document["progress"] = progress = {"flops": None, "minutes_before": 0.0, **progress}  # of earlier versions
            if missing := {field.name for field in fields(Progress)} - progress.keys():
                raise UserError(f"{file}: progress.{min(missing)} is missing; restore it, or begin a new run")
        return TypeAdapter(State).validate_json(json.dumps(document))
    except ValidationError as error:
        raise UserError(f"{file}: {clipped(first_problem(error))}; restore it, or begin a new run") from None


def last_checkpoint(folder: Path, notice: Callable[[str], None]) -> Path | None:
    """The newest checkpoint that isn't damaged. Renames damaged ones after it. Raises UserError if all are damaged."""
    damaged: dict[Path, str] = {}
    for path in reversed(step_folders(folder)):
        damage = find_damage(path)
        if damage is None:
            for other, fault in damaged.items():
                notice(f"warning: {other}: {fault}; going on from {path.name}, which is whole")
                aside = other.with_name(other.name + DAMAGED_SUFFIX)
                shutil.rmtree(aside, ignore_errors=True)
                other.rename(aside)
            return path
        damaged[path] = damage
    if damaged:
        faults = "; ".join(f"{path.name}: {damage}" for path, damage in damaged.items())
        raise UserError(f"{folder}: no checkpoint can be used ({faults}); restore one, or begin a new run elsewhere")
    return None


def best_steps(folder: Path) -> set[int]:
    """The steps of the best models of all checkpoints that can be read."""
    steps = set()
    for path in step_folders(folder):
        with suppress(UserError):
            steps.add(read_state(path).progress.best_step)
    return steps


def _load_optimizers(model: Transformer, optimizers: Sequence[torch.optim.Optimizer], file: Path) -> None:
    known = {name.rpartition("/")[0] for name in read_header(file)}  # a weight that never had a gradient has no state
    weights = {name: weight for name, weight in model.named_parameters() if name in known}
    owners = {weight: one for one in optimizers for group in one.param_groups for weight in group["params"]}
    wanted = {name: state_like(owners[weight], weight) for name, weight in weights.items()}
    tensors = load_tensors(file, {f"{name}/{key}": like for name in wanted for key, like in wanted[name].items()})
    for name, weight in weights.items():
        state = {key: tensors[f"{name}/{key}"].to(weight.device, copy=True) for key in wanted[name]}
        owners[weight].state[weight] = state


def random_states() -> dict[str, Tensor]:
    here = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return {name: generator.get_rng_state() for name, generator in GENERATORS.items() if here[name]}


def states_of_ranks(ranks: SingleProcess) -> dict[str, Tensor]:
    """The states of all ranks' random generators: `cpu` is the first rank's, `cpu.1` the second's, and so on."""
    return {
        name if rank == 0 else f"{name}.{rank}": state
        for name, own in random_states().items()
        for rank, state in enumerate(ranks.all_gather([own]))
    }


def seed_rank(rank: int) -> None:
    """Gives each rank but the first a generator of its own, derived from the first rank's."""
    if rank:
        torch.manual_seed(torch.initial_seed() + torch.randint(2**31, (rank,)).sum().item() + rank)


def _load_random_states(file: Path, rank: int) -> None:
    """Restores the rank's generators, of devices that both machines have; a new rank gets new ones."""
    here = random_states()
    wanted = {
        name: here.get(device, torch.empty(kind.shape, dtype=torch.uint8, device="meta"))
        for name, kind in read_header(file).items()
        if (device := name.partition(".")[0]) in GENERATORS
    }
    suffix = f".{rank}" if f"cpu.{rank}" in wanted else ""
    try:
        states = load_tensors(file, {"cpu": here["cpu"], **wanted})
        restore_random_states({name: states[f"{name}{suffix}"] for name in GENERATORS if f"{name}{suffix}" in states})
    except RuntimeError as error:
        raise UserError(f"{file}: isn't the state of a random generator ({clipped(str(error))})") from None
    if not suffix:
        seed_rank(rank)


def restore_random_states(states: dict[str, Tensor]) -> None:
    for name in states.keys() & random_states().keys():
        GENERATORS[name].set_rng_state(states[name])
