"""Model directories: written whole, verified, read."""

from typing import TYPE_CHECKING, TypeAlias

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.storage.model_directory import ModelDirectory, find_model, read_model
    from headway.storage.model_info import Aligner, Calibration, Int8Check, ModelInfo, with_int8
    from headway.storage.stored_model import StoredModel, load_model, save_model, to_torch

__all__ = [
    "Aligner",
    "AnyModel",
    "Calibration",
    "Int8Check",
    "ModelDirectory",
    "ModelInfo",
    "StoredModel",
    "find_model",
    "load_model",
    "read_model",
    "save_model",
    "to_torch",
    "with_int8",
]

AnyModel: TypeAlias = "ModelDirectory | StoredModel"
"""A model on disk, or in memory."""

__getattr__, __dir__ = lazy_names(
    __name__,
    model_directory="ModelDirectory find_model read_model",
    model_info="Aligner Calibration Int8Check ModelInfo with_int8",
    stored_model="StoredModel load_model save_model to_torch",
)
