"""Model directories: write whole, verify, read."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.storage.aligner import Aligner
    from headway.storage.calibration import Calibration
    from headway.storage.model_directory import ModelDirectory, ModelInfo, find_model, read_model
    from headway.storage.stored_model import StoredModel, load_model, save_model, to_torch

__all__ = [
    "Aligner",
    "Calibration",
    "ModelDirectory",
    "ModelInfo",
    "StoredModel",
    "find_model",
    "load_model",
    "read_model",
    "save_model",
    "to_torch",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    aligner="Aligner",
    calibration="Calibration",
    model_directory="ModelDirectory ModelInfo find_model read_model",
    stored_model="StoredModel load_model save_model to_torch",
)
