"""Errors for models of other programs that are given in place of a model directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.errors import UserError

_EXPORTS = {
    "model.bin": "a CTranslate2 model",
    "encoder.onnx": "an ONNX export",
    "model.headway": "a web export",
    "*.argosmodel": "a package for Argos Translate",
}
_CHECKPOINTS = ("*.pt", "*.ckpt", "*.npz")
"""Checkpoints of fairseq, OpenNMT, JoeyNMT and Marian."""


def refuse_foreign(path: Path, config: Mapping[str, Any]) -> None:
    """Raises UserError for another program's model, recognised by file names, and for a file of a model directory.
    config: the folder's config.json, empty without one; headway's has checksums."""
    if "sha256" in config:
        return
    if "model_type" in config:
        raise UserError(f"{path}: is a Hugging Face model; import it: headway import {path} --output MODEL")

    def has(pattern: str) -> bool:
        return path.match(pattern) if path.is_file() else any(path.glob(pattern))

    for pattern, kind in _EXPORTS.items():
        if has(pattern):
            raise UserError(
                f"{path}: is {kind}, which headway can't read; give the model directory, or import the Hugging Face "
                "model, that it was made from"
            )
    if any(map(has, _CHECKPOINTS)):
        raise UserError(
            f"{path}: is a checkpoint of another toolkit, which headway can't read; it imports Marian models "
            "in Hugging Face's form: headway import DIR --output MODEL"
        )
    if path.is_file() and (path.parent / "config.json").exists():
        raise UserError(f"{path}: is a file of a model; give its folder, {path.parent}")
