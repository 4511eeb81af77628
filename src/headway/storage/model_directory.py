"""Model directories: everything that translating needs, complete, verified, and safe to receive from a stranger.

`config.json` (format version, languages, the model's config, a checksum for each other file), `model.safetensors`,
the tokenizer (`tokenizer.*` if both sides share one, else `source.*` and `target.*`), `decoding.json` (default
search options), `README.md` (a model card) and, if there are any, `shortlist.safetensors` and `calibration.json`. No
pickle anywhere.
"""

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, NonNegativeFloat, with_config
from typing_extensions import TypedDict

from headway.decoding.options import SearchOptions
from headway.errors import LostModelError, UserError
from headway.model.config import ModelConfig
from headway.model.shapes import weight_shapes
from headway.storage.atomic import write_directory, write_json
from headway.storage.checksums import checksum
from headway.storage.foreign import refuse_foreign
from headway.storage.model_info import Aligner, Int8Check, ModelInfo, parse_calibration
from headway.storage.tensors import LARGEST_HEADER, TensorKind, load_arrays, read_header, save_arrays
from headway.storage.untrusted import (
    LARGEST_JSON,
    STRICT,
    check_version,
    clipped,
    leads_within,
    parse_json,
    parse_record,
    plain_size,
    read_json,
    read_plain,
)
from headway.text.domain import LONGEST_DOMAIN
from headway.text.shortlist import Shortlist
from headway.text.subwords import Tokenizer, fingerprint, parse_tokenizer

FORMAT_VERSION = 1
CONFIG_FILE, WEIGHTS_FILE, DECODING_FILE, CARD_FILE = "config.json", "model.safetensors", "decoding.json", "README.md"
SHORTLIST_FILE, CALIBRATION_FILE = "shortlist.safetensors", "calibration.json"
LONGEST_SHORTLIST = 256
"""Maximum target tokens of a source token."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


FewWords = Annotated[str, AfterValidator(_printable), Field(max_length=LONGEST_DOMAIN)]


@with_config(STRICT)
class _TokenizerFiles(TypedDict):
    source: Literal["tokenizer.spm", "source.spm", "tokenizer.vocab.json", "source.vocab.json"]
    target: Literal["tokenizer.spm", "target.spm", "tokenizer.vocab.json", "target.vocab.json"]


@with_config(STRICT)
class _Config(TypedDict):
    format_version: int
    source_language: FewWords
    target_language: FewWords
    domain: NotRequired[FewWords]
    model: ModelConfig
    tokenizer: _TokenizerFiles
    training_flops: NotRequired[NonNegativeFloat]
    alignment: NotRequired[Aligner]
    int8: NotRequired[Int8Check]
    sha256: dict[str, str]
    """The checksum of each other file of the model."""


@dataclass(kw_only=True)
class ModelDirectory(ModelInfo):
    """A model directory that was read and verified; its weights stay on disk until `weights` is called."""

    folder: Path
    config: ModelConfig
    weights_checksum: str
    core: str | None = None
    """The `core` of the config, if the user allows it to be imported."""

    @property
    def num_parameters(self) -> int:
        """Number of weights; shared ones count once."""
        return sum(math.prod(shape) for shape in weight_shapes(self.config).values())

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name, a shared one by its first name. Raises UserError, and LostModelError if they aren't
        those that were verified: the folder may have been removed or replaced since."""
        file = self.folder / WEIGHTS_FILE
        expected = {name: TensorKind("F32", shape) for name, shape in weight_shapes(self.config).items()}
        try:
            weights = load_arrays(file, expected)
        finally:
            if not file.is_file() or checksum(file) != self.weights_checksum:
                what = "changed" if file.is_file() else "removed"
                raise LostModelError(f"{file}: was {what} after it was verified; load the model again")
        for name, weight in weights.items():
            if not np.isfinite(weight).all():
                raise UserError(f"{file}: weight {name!r} holds values that are not finite")
        return weights


def write_model(path: Path, info: ModelInfo, config: ModelConfig, weights: Mapping[str, NDArray[Any]]) -> None:
    """Writes a model directory, whole or not at all. Raises UserError for a model that `read_model` would refuse."""
    with write_directory(path, sum(weight.nbytes for weight in weights.values())) as folder:
        tokenizer_files = save_tokenizers(folder, info.source_tokenizer, info.target_tokenizer)
        save_arrays(folder / WEIGHTS_FILE, weights)
        write_json(folder / DECODING_FILE, info.decoding)
        (folder / CARD_FILE).write_text(info.card, encoding="utf-8")
        if info.shortlist is not None:
            tables = {"of_token": info.shortlist.of_token, "always": info.shortlist.always}
            save_arrays(folder / SHORTLIST_FILE, tables)
        if info.calibration is not None:
            write_json(folder / CALIBRATION_FILE, info.calibration.document())
        document = {
            "format_version": FORMAT_VERSION,
            "source_language": info.source_language,
            "target_language": info.target_language,
            "domain": info.domain or None,
            "model": config.to_dict(),
            "tokenizer": tokenizer_files,
            "training_flops": info.training_flops,
            "alignment": info.aligner and asdict(info.aligner),
            "int8": info.int8 and asdict(info.int8),
            "sha256": {file.name: checksum(file) for file in sorted(folder.iterdir())},
        }
        write_json(folder / CONFIG_FILE, {name: value for name, value in document.items() if value is not None})
        _read_config(folder / CONFIG_FILE)
        _check_decoding(info.decoding, folder / DECODING_FILE)


def read_model(path: Path, core: str | None = None) -> ModelDirectory:
    """Reads and verifies a model directory, or the best model of a run directory. core: the `core` of its config, which
    may be imported to run the model. Raises UserError.

    The directory is not trusted. It can't make this process run its code, read files outside of it, or take more memory
    than the weights need: config.json determines the size of the weights and the files of the model, and only these
    files are opened. Links are followed as `plain_size` says.
    """
    folder = find_model(path)
    config = _read_config(folder / CONFIG_FILE)
    weights_file, model, checksums = folder / WEIGHTS_FILE, config["model"], config["sha256"]
    if core is not None and core != model.core:
        raise UserError(f"{folder}: its core of attention is {model.core or 'the usual one'}, not {core}")
    size, wanted = plain_size(weights_file), sum(4 * math.prod(shape) for shape in weight_shapes(model).values())
    if not wanted < size <= wanted + 8 + LARGEST_HEADER:
        raise UserError(f"{weights_file}: has {size:,} bytes, but the model of config.json has weights of {wanted:,}")
    files = {name: read_plain(folder / name) for name in checksums if name != WEIGHTS_FILE}
    found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    for name, sum_ in (*found.items(), (WEIGHTS_FILE, checksum(weights_file))):
        if sum_ != checksums[name]:
            raise UserError(f"{folder / name}: its checksum differs from config.json's; it is damaged or was changed")
    names = config["tokenizer"]["source"], config["tokenizer"]["target"]
    tokenizers = {name: parse_tokenizer(files[name], folder / name) for name in set(names)}
    sizes = model.source_vocab_size, model.target_vocab_size
    for side, name, size in zip(("source", "target"), names, sizes, strict=True):
        if (count := tokenizers[name].vocab_size) != size:
            raise UserError(f"{folder}: the {side} tokenizer has {count} tokens, but {side}_vocab_size is {size}")
    decoding = parse_json(files[DECODING_FILE], folder / DECODING_FILE)
    _check_decoding(decoding, folder / DECODING_FILE)
    shortlist = calibration = None
    if SHORTLIST_FILE in files:
        shortlist = _load_shortlist(folder / SHORTLIST_FILE, *sizes)
    if CALIBRATION_FILE in files:
        calibration = parse_calibration(files[CALIBRATION_FILE], folder / CALIBRATION_FILE, sizes[0])
    return ModelDirectory(
        folder=folder,
        config=model,
        weights_checksum=checksums[WEIGHTS_FILE],
        core=core,
        source_tokenizer=tokenizers[names[0]],
        target_tokenizer=tokenizers[names[1]],
        decoding=decoding,
        card=files[CARD_FILE].decode("utf-8", errors="replace"),
        name=folder.name,
        shortlist=shortlist,
        calibration=calibration,
        source_language=config["source_language"],
        target_language=config["target_language"],
        domain=config.get("domain", ""),
        training_flops=config.get("training_flops"),
        aligner=config.get("alignment"),
        int8=config.get("int8"),
    )


def model_fingerprint(path: Path) -> str:
    """SHA-256 of the model's config.json, which has checksums of all other files. Raises UserError."""
    return hashlib.sha256(read_plain(find_model(path) / CONFIG_FILE, LARGEST_JSON)).hexdigest()


def model_info(path: Path) -> dict[str, Any]:
    """The members of a model's config.json; `training_flops` is None if unknown. Raises UserError."""
    return {"training_flops": None, **_read_config(find_model(path) / CONFIG_FILE)}


def find_model(path: Path) -> Path:
    """The model directory that a path means: itself, or the best of a run or of its last stage. Raises UserError."""
    if os.path.lexists(path / CONFIG_FILE):
        return path
    run = stage_of(path)
    if os.path.lexists(run / "best.json"):
        return _named_by_best(run, "model", run / "models")
    if (path / "recipe.yaml").is_file():
        raise UserError(f"{path}: this run has no model yet; let it train until its first validation")
    refuse_foreign(path, {})
    raise UserError(
        f"{path}: {'is not' if path.exists() else 'no such folder; give'} a model directory (config.json) "
        "or a run directory (best.json)"
    )


def stage_of(run: Path) -> Path:
    """The run directory with the models of the run: itself, or the stage that best.json names. Raises UserError."""
    if os.path.lexists(run / "best.json") and "stage" in read_json(run / "best.json"):
        return _named_by_best(run, "stage", run / "stages")
    return run


def _named_by_best(run: Path, key: str, folders: Path) -> Path:
    """The one of the folders that the run's best.json names. Raises UserError."""
    name = read_json(run / "best.json").get(key)
    found = {folder.name: folder for folder in folders.iterdir()} if folders.is_dir() else {}
    if not isinstance(name, str) or name not in found:
        raise UserError(f"{run}/best.json: names {clipped(repr(name))}, which is not in {folders}")
    if not leads_within(found[name], run):
        raise UserError(f"{found[name]}: is a link out of {run}, or lies behind one; put the model itself there")
    return found[name]


def save_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> dict[str, str]:
    """Writes one file, or one for each side, and returns the file name of each side."""
    joint, names = fingerprint(source) == fingerprint(target), {}
    for side, tokenizer in (("source", source), ("target", target)):
        names[side] = f"{'tokenizer' if joint else side}{tokenizer.suffix}"
        (folder / names[side]).write_bytes(tokenizer.to_bytes())
    return names


def _read_config(file: Path) -> _Config:
    document = read_json(file)
    refuse_foreign(file.parent, document)
    check_version(document.get("format_version"), FORMAT_VERSION, file)
    config = parse_record(_Config, document, file)
    if "alignment" in config:
        members, model = vars(config["alignment"]), config["model"]
        if members.keys() != document["alignment"].keys():
            raise UserError(f"{file}: alignment must have the members {', '.join(members)}")
        limits = {"layer": model.decoder_layers, "head": model.decoder_num_heads or model.num_heads}
        for name, limit in limits.items():
            if members[name] is not None and members[name] >= limit:
                raise UserError(f"{file}: alignment.{name} must be null or 0 to {limit - 1}")
    files = {WEIGHTS_FILE, DECODING_FILE, CARD_FILE, *config["tokenizer"].values()}
    if config["sha256"].keys() - {SHORTLIST_FILE, CALIBRATION_FILE} != files:
        raise UserError(f"{file}: must have exactly the checksums (sha256) of the model's files")
    return config


def _check_decoding(options: dict[str, Any], file: Path) -> None:
    if parse_record(SearchOptions, options, file).sample is not None:
        raise UserError(f"{file}: sample can't be a default")


def _load_shortlist(file: Path, source_vocabulary: int, target_vocabulary: int) -> Shortlist:
    """Reads a shortlist. Raises UserError unless it fits these vocabularies."""
    kinds = read_header(file)
    match kinds.get("of_token"), kinds.get("always"):
        case (TensorKind("I32", (rows, width)) as of_token, TensorKind("I32", (count,)) as always) if (
            rows == source_vocabulary and width <= LONGEST_SHORTLIST and count <= target_vocabulary
        ):
            tables = load_arrays(file, {"of_token": of_token, "always": always})
        case _:
            raise UserError(f"{file}: is not a shortlist of this model's vocabularies")
    for name, least in (("of_token", -1), ("always", 0)):
        table = tables[name]
        if table.size and not least <= table.min() <= table.max() < target_vocabulary:
            raise UserError(f"{file}: {name} has an id that is not in the target vocabulary")
    return Shortlist(tables["of_token"], tables["always"])
