"""Errors for models of other programs that are given in place of a model directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.errors import UserError

_EXPORTED = "give the model directory, or import the Hugging Face model, that it was made from"
_TRAINED = "it imports Marian models in Hugging Face's form: headway import DIR --output MODEL"
_KINDS = {
    "model.bin": ("a CTranslate2 model", _EXPORTED),
    "encoder.onnx": ("an ONNX export", _EXPORTED),
    "model.headway": ("a web export", _EXPORTED),
    "*.argosmodel": ("a package for Argos Translate", _EXPORTED),
    **dict.fromkeys(("*.pt", "*.ckpt", "*.npz"), ("a checkpoint of another toolkit", _TRAINED)),
}
"""Kinds of files by their names, and what to do instead. Checkpoints are those of fairseq, OpenNMT, JoeyNMT, Marian."""


def refuse_foreign(path: Path, config: Mapping[str, Any]) -> None:
    """Raises UserError for another program's model, and for a file of a model directory. config: the folder's
    config.json, empty without one; headway's has checksums."""
    if "sha256" in config:
        return
    if "model_type" in config:
        raise UserError(f"{path}: is a Hugging Face model; import it: headway import {path} --output MODEL")
    for pattern, (kind, remedy) in _KINDS.items():
        if path.match(pattern) if path.is_file() else any(path.glob(pattern)):
            raise UserError(f"{path}: is {kind}, which headway can't read; {remedy}")
    if path.is_file() and (path.parent / "config.json").exists():
        raise UserError(f"{path}: is a file of a model; give its folder, {path.parent}")
