"""Model directories: write whole, verify, read."""

from headway.storage.aligner import Aligner
from headway.storage.calibration import Calibration
from headway.storage.model_directory import StoredModel, find_model, load_model, save_model

__all__ = ["Aligner", "Calibration", "StoredModel", "find_model", "load_model", "save_model"]
