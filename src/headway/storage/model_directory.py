"""Model directories: everything that translating needs, complete, checked, and safe to receive from a stranger.

`config.json` (format version, languages, the model's config, a checksum for each other file), `model.safetensors`,
the tokenizer (`tokenizer.*` where both sides share one, else `source.*` and `target.*`), `decoding.json` (default
search options) and `README.md` (a model card). No pickle anywhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage.atomic import write_directory, write_json
from headway.text.tokenizer import Tokenizer, fingerprint, read_tokenizer

FORMAT_VERSION = 1
WEIGHTS_FILE, DECODING_FILE, CARD_FILE = "model.safetensors", "decoding.json", "README.md"


@dataclass
class StoredModel:
    """What a model directory holds."""

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    source_language: str
    target_language: str
    decoding: dict[str, Any] = field(default_factory=dict)
    """Default search options."""
    card: str = ""
    """The text of README.md."""


def save_model(path: Path, stored: StoredModel) -> None:
    """Writes the model directory, whole or not at all."""
    weights = named_weights(stored.model)
    with write_directory(path, sum(weight.nbytes for weight in weights.values())) as folder:
        tokenizer_files = _save_tokenizers(folder, stored.source_tokenizer, stored.target_tokenizer)
        save_file(weights, folder / WEIGHTS_FILE)
        write_json(folder / DECODING_FILE, stored.decoding)
        (folder / CARD_FILE).write_text(stored.card, encoding="utf-8")
        write_json(
            folder / "config.json",
            {
                "format_version": FORMAT_VERSION,
                "source_language": stored.source_language,
                "target_language": stored.target_language,
                "model": stored.model.config.to_dict(),
                "tokenizer": tokenizer_files,
                "sha256": {file.name: checksum(file) for file in sorted(folder.iterdir())},
            },
        )


def load_model(path: Path) -> StoredModel:
    """Reads and verifies a model directory, or the best model of a run directory. Raises UserError."""
    folder = find_model(path)
    config = _read_json(folder / "config.json")
    if config.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{folder}/config.json: format_version {config.get('format_version')!r} is not one that this version "
            f"of headway reads ({FORMAT_VERSION}); use a newer headway"
        )
    _verify_checksums(folder, config)
    try:
        model_config = ModelConfig.from_dict(config["model"])
        tokenizers = {side: config["tokenizer"][side] for side in ("source", "target")}
        languages = str(config["source_language"]), str(config["target_language"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{folder}/config.json: {error} is missing or of the wrong kind") from None
    except ValueError as error:
        raise UserError(f"{folder}/config.json: {error}") from None
    for file in tokenizers.values():
        if not isinstance(file, str) or file not in config["sha256"]:
            raise UserError(f"{folder}/config.json: tokenizer file {file!r} is not among its own files")
    source_tokenizer = read_tokenizer(folder / tokenizers["source"])
    target_tokenizer = (
        source_tokenizer
        if tokenizers["target"] == tokenizers["source"]
        else read_tokenizer(folder / tokenizers["target"])
    )
    for side, tokenizer, size in (
        ("source", source_tokenizer, model_config.source_vocab_size),
        ("target", target_tokenizer, model_config.target_vocab_size),
    ):
        if tokenizer.vocab_size != size:
            raise UserError(
                f"{folder}: the {side} tokenizer has {tokenizer.vocab_size} pieces, but {side}_vocab_size is {size}"
            )
    return StoredModel(
        model=_load_weights(folder / WEIGHTS_FILE, model_config),
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        source_language=languages[0],
        target_language=languages[1],
        decoding=_read_json(folder / DECODING_FILE),
        card=(folder / CARD_FILE).read_text(encoding="utf-8", errors="replace"),
    )


def find_model(path: Path) -> Path:
    """The model directory that a path means: itself, or the best of a run directory."""
    if (path / "config.json").is_file():
        return path
    if (path / "best.json").is_file():
        name = _read_json(path / "best.json").get("model")
        models = {folder.name: folder for folder in (path / "models").iterdir()}
        if not isinstance(name, str) or name not in models:
            raise UserError(f"{path}/best.json: names {name!r}, which is not in {path}/models")
        return models[name]
    if (path / "recipe.yaml").is_file():
        raise UserError(f"{path}: this run has no model yet; let it train until its first validation")
    raise UserError(
        f"{path}: {'is not' if path.exists() else 'no such folder:'} a model directory (config.json) "
        "or a run directory (best.json)"
    )


def named_weights(model: Transformer) -> dict[str, Tensor]:
    """Every weight once, by name; one that several modules share goes by its first name."""
    return {name: parameter.detach().contiguous() for name, parameter in model.named_parameters()}


def load_named_weights(model: Transformer, weights: dict[str, Tensor], origin: str) -> None:
    """Copies weights into the model; names, shapes and kind must be exactly the model's. Raises UserError."""
    parameters = dict(model.named_parameters())
    for kind, names in (
        ("lacks", parameters.keys() - weights.keys()),
        ("has unknown", weights.keys() - parameters.keys()),
    ):
        if names:
            raise UserError(f"{origin}: {kind} weight {min(names)!r} (one of {len(names)})")
    with torch.no_grad():
        for name, parameter in parameters.items():
            weight = weights[name]
            if weight.shape != parameter.shape or not weight.is_floating_point():
                raise UserError(
                    f"{origin}: weight {name!r} is {weight.dtype} {tuple(weight.shape)}, "
                    f"the config wants {tuple(parameter.shape)}"
                )
            if not torch.isfinite(weight).all():
                raise UserError(f"{origin}: weight {name!r} holds values that are not finite")
            parameter.copy_(weight)


def checksum(file: Path) -> str:
    """SHA-256 of the file, in hexadecimal."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _save_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> dict[str, str]:
    joint = fingerprint(source) == fingerprint(target)
    names = {
        side: f"{'tokenizer' if joint else side}{tokenizer.suffix}"
        for side, tokenizer in (("source", source), ("target", target))
    }
    (folder / names["source"]).write_bytes(source.to_bytes())
    (folder / names["target"]).write_bytes(target.to_bytes())
    return names


def _verify_checksums(folder: Path, config: dict[str, Any]) -> None:
    checksums = config.get("sha256")
    if not isinstance(checksums, dict) or not {WEIGHTS_FILE, DECODING_FILE, CARD_FILE} <= checksums.keys():
        raise UserError(f"{folder}/config.json: lacks checksums (sha256) of its own files")
    for name, expected in checksums.items():
        file = folder / name
        if Path(name).name != name or file.is_symlink():
            raise UserError(f"{folder}/config.json: {name!r} is not a file of this directory")
        if not file.is_file():
            raise UserError(f"{folder}: {name} is missing")
        if checksum(file) != expected:
            raise UserError(f"{file}: its checksum differs from config.json's; the file is damaged or was changed")


def _load_weights(file: Path, config: ModelConfig) -> Transformer:
    try:
        weights = load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{file}: not a readable safetensors file ({error})") from None
    model = Transformer(config)
    load_named_weights(model, weights, str(file))
    return model.eval()


def _read_json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file}: can't be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise UserError(f"{file}: must hold a JSON object")
    return document
