"""A model in memory, with all else that its directory holds."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headway.errors import UserError
from headway.model.config import ModelConfig
from headway.model.transformer import Transformer, own_core
from headway.storage.model_directory import ModelDirectory, read_model, write_model
from headway.storage.model_info import ModelInfo
from headway.storage.tensors import arrays_checksum


@dataclass(kw_only=True)
class StoredModel(ModelInfo):
    """A model with its tokenizers, languages and options."""

    model: Transformer

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Every weight once, by name, as `ModelDirectory.weights` gives them."""
        return {name: weight.float().cpu().numpy() for name, weight in named_weights(self.model).items()}

    @property
    def weights_checksum(self) -> str:
        """SHA-256 of the file of weights that `save_model` would write."""
        return arrays_checksum(self.weights())


def save_model(path: Path, stored: StoredModel) -> None:
    """Writes the model directory, whole or not at all. Raises UserError for a model that `load_model` would refuse."""
    write_model(path, stored, stored.config, stored.weights())


def load_model(path: Path, core: str | None = None) -> StoredModel:
    """The model of a model directory, or the best of a run, verified. core: as in `read_model`. Raises UserError."""
    return to_torch(read_model(path, core))


def to_torch(directory: ModelDirectory) -> StoredModel:
    """Loads the weights of a directory that was read. Raises UserError, also for a core of attention that the user
    hasn't allowed: a model directory never imports code by itself."""
    if (needed := directory.config.core) != directory.core:
        raise UserError(
            f"{directory.folder}: its attention is computed by {needed}, which isn't part of the model. "
            f"headway translate, evaluate and inspect run that code with --core {needed}, a recipe with model.core"
        )
    weights = {name: torch.from_numpy(weight) for name, weight in directory.weights().items()}
    model = made_of(weights, directory.config)
    return StoredModel(model=model, **{one.name: getattr(directory, one.name) for one in fields(ModelInfo)})


def named_weights(model: Transformer) -> dict[str, Tensor]:
    """Every weight once, by name; a shared one by its first name."""
    return {name: parameter.detach().contiguous() for name, parameter in model.named_parameters()}


class _Undrawn(TorchFunctionMode):
    """A context in which new parameters stay as they are allocated, without random numbers, so they take no memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = next(iter((*args, *(kwargs or {}).values())), None)
        is_drawn = isinstance(given, nn.Parameter) and func.__name__.endswith(("uniform_", "normal_"))
        return given if is_drawn else func(*args, **kwargs or {})


def made_of(weights: Mapping[str, Tensor], config: ModelConfig) -> Transformer:
    """A model of these very tensors, which aren't copied: all weights of the config, in float32."""
    with _Undrawn():
        model = Transformer(config, own_core(config))
    for name, parameter in model.named_parameters():
        parameter.data = weights[name]
    return model.eval()


def check_finite(weights: Mapping[str, Tensor], origin: str) -> None:
    """Raises UserError, with the `origin`, for a weight that holds NaN or infinity."""
    for name, weight in weights.items():
        if not torch.isfinite(weight.sum()) and not torch.isfinite(weight).all():  # without a copy where all are
            raise UserError(f"{origin}: weight {name!r} holds values that are not finite")
