"""Model directories: write whole, verify, read."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.storage.aligner import Aligner
    from headway.storage.calibration import Calibration
    from headway.storage.int8 import Int8Check
    from headway.storage.model_directory import ModelDirectory, ModelInfo, find_model, read_model, with_int8
    from headway.storage.stored_model import StoredModel, load_model, save_model, to_torch

__all__ = [
    "Aligner",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    aligner="Aligner",
    calibration="Calibration",
    int8="Int8Check",
    model_directory="ModelDirectory ModelInfo find_model read_model with_int8",
    stored_model="StoredModel load_model save_model to_torch",
)
