"""Model directories: everything that translating needs, complete, checked, and safe to receive from a stranger.

`config.json` (format version, languages, the model's config, a checksum for each other file), `model.safetensors`,
the tokenizer (`tokenizer.*` where both sides share one, else `source.*` and `target.*`), `decoding.json` (default
search options), `README.md` (a model card) and, if there are any, `shortlist.safetensors` and `calibration.json`. No
pickle anywhere.
"""

import dataclasses
import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from headway.decoding.options import SearchOptions
from headway.errors import LostModelError, UserError
from headway.model.config import ModelConfig
from headway.model.shapes import weight_shapes
from headway.storage.aligner import Aligner
from headway.storage.atomic import write_directory, write_json
from headway.storage.calibration import Calibration, parse_calibration
from headway.storage.checksums import checksum
from headway.storage.foreign import refuse_foreign
from headway.storage.int8 import OPENING, Int8Check
from headway.storage.tensors import LARGEST_HEADER, TensorKind, load_arrays, read_header, save_arrays
from headway.storage.untrusted import (
    LARGEST_JSON,
    check_version,
    clipped,
    leads_within,
    parse_json,
    plain_size,
    read_json,
    read_plain,
)
from headway.text.domain import LONGEST_DOMAIN
from headway.text.shortlist import Shortlist
from headway.text.subwords import SubwordTokenizer, parse_tokenizer
from headway.text.tokenizer import Tokenizer, fingerprint
from headway.text.words import WordTokenizer

FORMAT_VERSION = 1
SIDES = ("source", "target")
TOKENIZER_SUFFIXES = (SubwordTokenizer.suffix, WordTokenizer.suffix)
WEIGHTS_FILE, DECODING_FILE, CARD_FILE = "model.safetensors", "decoding.json", "README.md"
SHORTLIST_FILE, CALIBRATION_FILE = "shortlist.safetensors", "calibration.json"
LONGEST_SHORTLIST = 256
"""Target tokens of a source token, at most."""


@dataclass(kw_only=True)
class ModelInfo:
    """All that a model directory holds beside the weights and their config."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    source_language: str
    target_language: str
    decoding: dict[str, Any] = field(default_factory=dict)
    """Default search options."""
    card: str = ""
    """The text of README.md."""
    domain: str = ""
    """What the text of its training is about, in a few words; empty where nobody said it."""
    training_flops: float | None = None
    """The work of the matrix products of all its training; None where nobody counted."""
    name: str = ""
    """Of the folder that it was read from."""
    shortlist: Shortlist | None = None
    """The target tokens that a translation of a source may have; None: any."""
    aligner: Aligner | None = None
    """The attention that aligns words best; None where nobody looked for it."""
    calibration: Calibration | None = None
    """What says how likely a translation is acceptable; None where nobody calibrated the model."""
    int8: Int8Check | None = None
    """What int8 costs in quality; None where nobody measured it. `with_int8` sets it."""


Info = TypeVar("Info", bound=ModelInfo)


@dataclass(kw_only=True)
class ModelDirectory(ModelInfo):
    """A model directory that was read and verified; its weights stay on disk until `weights` is called."""

    folder: Path
    config: ModelConfig
    weights_checksum: str
    """SHA-256 of the file of weights."""

    @property
    def num_parameters(self) -> int:
        """Weights that are shared count once."""
        return sum(math.prod(shape) for shape in weight_shapes(self.config).values())

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The weights by name; one that several modules share goes by its first name. Raises UserError, and
        LostModelError if they aren't those that were verified: the folder may have been removed or replaced since."""
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


def with_int8(info: Info, check: Int8Check | None) -> Info:
    """The model with the comparison, in its card, too. None removes it, for a model that has changed since then."""
    card = "\n".join(line for line in info.card.split("\n") if not line.startswith(OPENING))
    return dataclasses.replace(info, int8=check, card=card if check is None else f"{card.rstrip()}\n\n{check}\n")


def write_model(path: Path, info: ModelInfo, config: ModelConfig, weights: Mapping[str, NDArray[Any]]) -> None:
    """Writes a model directory, whole or not at all. Raises UserError for what `read_model` would refuse to read."""
    with write_directory(path, sum(weight.nbytes for weight in weights.values())) as folder:
        tokenizer_files = save_tokenizers(folder, info.source_tokenizer, info.target_tokenizer)
        save_arrays(folder / WEIGHTS_FILE, weights)
        write_json(folder / DECODING_FILE, info.decoding)
        (folder / CARD_FILE).write_text(info.card, encoding="utf-8")
        if info.shortlist is not None:
            tables = {"of_token": info.shortlist.of_token, "always": info.shortlist.always}
            save_arrays(folder / SHORTLIST_FILE, tables)
        if info.calibration is not None:
            write_json(folder / CALIBRATION_FILE, info.calibration.to_dict())
        write_json(
            folder / "config.json",
            {
                "format_version": FORMAT_VERSION,
                "source_language": info.source_language,
                "target_language": info.target_language,
                **({"domain": info.domain} if info.domain else {}),
                "model": config.to_dict(),
                "tokenizer": tokenizer_files,
                **({} if info.training_flops is None else {"training_flops": info.training_flops}),
                **({} if info.aligner is None else {"alignment": info.aligner.to_dict()}),
                **({} if info.int8 is None else {"int8": info.int8.to_dict()}),
                "sha256": {file.name: checksum(file) for file in sorted(folder.iterdir())},
            },
        )
        _read_config(folder / "config.json")
        _check_decoding(info.decoding, folder / DECODING_FILE)


def read_model(path: Path) -> ModelDirectory:
    """Reads and verifies a model directory, or the best model of a run directory. Raises UserError.

    Whoever wrote the directory can't make this run code of theirs, read outside of it, or take more than the weights'
    own memory: config.json says of how many bytes the weights are and which files belong to the model, and only these
    are opened. Other files that lie in the folder are ignored. Links are followed as `plain_size` says.
    """
    folder = find_model(path)
    config = _read_config(folder / "config.json")
    weights_file = folder / WEIGHTS_FILE
    size, wanted = plain_size(weights_file), sum(4 * math.prod(shape) for shape in weight_shapes(config.model).values())
    if not wanted < size <= wanted + 8 + LARGEST_HEADER:
        raise UserError(f"{weights_file}: has {size:,} bytes, but the model of config.json has weights of {wanted:,}")
    files = {name: read_plain(folder / name) for name in config.checksums if name != WEIGHTS_FILE}
    found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    for name, checksum_found in {**found, WEIGHTS_FILE: checksum(weights_file)}.items():
        if checksum_found != config.checksums[name]:
            raise UserError(
                f"{folder / name}: its checksum differs from config.json's; the file is damaged or was changed"
            )
    tokenizers = {name: parse_tokenizer(files[name], folder / name) for name in set(config.tokenizers.values())}
    sizes = config.model.source_vocab_size, config.model.target_vocab_size
    for side, size in zip(SIDES, sizes, strict=True):
        if (count := tokenizers[config.tokenizers[side]].vocab_size) != size:
            raise UserError(f"{folder}: the {side} tokenizer has {count} tokens, but {side}_vocab_size is {size}")
    decoding = parse_json(files[DECODING_FILE], folder / DECODING_FILE)
    _check_decoding(decoding, folder / DECODING_FILE)
    shortlist = calibration = None
    if SHORTLIST_FILE in config.checksums:
        shortlist = _load_shortlist(folder / SHORTLIST_FILE, *sizes)
    if CALIBRATION_FILE in config.checksums:
        calibration = parse_calibration(files[CALIBRATION_FILE], folder / CALIBRATION_FILE, sizes[0])
    return ModelDirectory(
        folder=folder,
        config=config.model,
        weights_checksum=config.checksums[WEIGHTS_FILE],
        source_tokenizer=tokenizers[config.tokenizers["source"]],
        target_tokenizer=tokenizers[config.tokenizers["target"]],
        decoding=decoding,
        card=files[CARD_FILE].decode("utf-8", errors="replace"),
        name=folder.name,
        shortlist=shortlist,
        calibration=calibration,
        **config.info,
    )


def model_fingerprint(path: Path) -> str:
    """The same for models that are the same to the bit: of config.json, which has checksums of all other files. Raises
    UserError."""
    return hashlib.sha256(read_plain(find_model(path) / "config.json", LARGEST_JSON)).hexdigest()


def model_info(path: Path) -> dict[str, Any]:
    """Fields of `ModelInfo` that config.json has: languages, domain, training_flops, aligner and int8; the model
    isn't loaded. Raises UserError."""
    return _read_config(find_model(path) / "config.json").info


def find_model(path: Path) -> Path:
    """The model directory that a path means: itself, or the best of a run directory; of a run in stages, that of the
    last stage that has one. Raises UserError."""
    if os.path.lexists(path / "config.json"):
        return path
    run = stage_of(path)
    if os.path.lexists(run / "best.json"):
        return _named_by_best(run, "model", run / "models")
    if (path / "recipe.yaml").is_file():
        raise UserError(f"{path}: this run has no model yet; let it train until its first validation")
    refuse_foreign(path)
    raise UserError(
        f"{path}: {'is not' if path.exists() else 'no such folder:'} a model directory (config.json) "
        "or a run directory (best.json)"
    )


def stage_of(run: Path) -> Path:
    """The run directory that has the models of the run: itself, or that of the stage which its best.json names. Raises
    UserError."""
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
    """Writes one file, or one for each side, and returns the name of each side's."""
    joint, names = fingerprint(source) == fingerprint(target), {}
    for side, tokenizer in (("source", source), ("target", target)):
        names[side] = f"{'tokenizer' if joint else side}{tokenizer.suffix}"
        (folder / names[side]).write_bytes(tokenizer.to_bytes())
    return names


class _Config(NamedTuple):
    """What config.json says."""

    model: ModelConfig
    tokenizers: dict[str, str]
    """The file of each side."""
    checksums: dict[str, str]
    """SHA-256 of each other file of the model."""
    info: dict[str, Any]
    """Fields of `ModelInfo`."""


_MEMBERS: dict[str, type] = {
    "format_version": int,
    "source_language": str,
    "target_language": str,
    "model": dict,
    "tokenizer": dict,
    "sha256": dict,
}
_OPTIONAL_MEMBERS: dict[str, type] = {"domain": str, "training_flops": float, "alignment": dict, "int8": dict}


def _read_config(file: Path) -> _Config:
    document = read_json(file)
    refuse_foreign(file.parent, document)
    check_version(document.get("format_version"), FORMAT_VERSION, file)
    for name, kind in {**_MEMBERS, **_OPTIONAL_MEMBERS}.items():
        if not isinstance(document.get(name), kind) and (name in _MEMBERS or name in document):
            raise UserError(f"{file}: {name} is missing or of the wrong kind")
    if unknown := document.keys() - _MEMBERS.keys() - _OPTIONAL_MEMBERS.keys():
        raise UserError(f"{file}: {clipped(repr(min(unknown)))} is not known")
    for name in ("source_language", "target_language"):
        if not document[name].isprintable() or len(document[name]) > 100:
            raise UserError(f"{file}: {name} is not the code or the name of a language")
    domain = document.get("domain", "")
    if not domain.isprintable() or len(domain) > LONGEST_DOMAIN:
        raise UserError(f"{file}: domain is not a few words")
    flops = document.get("training_flops")
    if flops is not None and not (math.isfinite(flops) and flops >= 0):
        raise UserError(f"{file}: training_flops is no amount of work")
    try:
        model = ModelConfig.from_dict(document["model"])
        aligner = Aligner.from_dict(document["alignment"], model) if "alignment" in document else None
        int8 = Int8Check.from_dict(document["int8"]) if "int8" in document else None
    except (ValueError, UserError) as error:
        raise UserError(f"{file}: {clipped(str(error))}") from None
    tokenizers, checksums = document["tokenizer"], document["sha256"]
    if tokenizers.keys() != set(SIDES):
        raise UserError(f"{file}: tokenizer must name a file for source and target")
    for side in SIDES:
        allowed = [f"{stem}{suffix}" for stem in ("tokenizer", side) for suffix in TOKENIZER_SUFFIXES]
        if tokenizers[side] not in allowed:
            name = clipped(repr(tokenizers[side]))
            raise UserError(f"{file}: the {side} tokenizer is {name}, it can be one of {', '.join(allowed)}")
    files = {WEIGHTS_FILE, DECODING_FILE, CARD_FILE, *(tokenizers[side] for side in SIDES)}
    if checksums.keys() - {SHORTLIST_FILE, CALIBRATION_FILE} != files:
        raise UserError(f"{file}: has not exactly the checksums (sha256) of the model's files")
    info = {name: document[name] for name in ("source_language", "target_language")}
    info |= {"domain": domain, "training_flops": flops, "aligner": aligner, "int8": int8}
    return _Config(model, tokenizers, checksums, info)


def _check_decoding(options: dict[str, Any], file: Path) -> None:
    if unknown := options.keys() - {field.name for field in dataclasses.fields(SearchOptions)}:
        raise UserError(f"{file}: {clipped(repr(min(unknown)))} is not an option of searching")
    try:
        SearchOptions(**options)
    except UserError as error:
        raise UserError(f"{file}: {clipped(str(error))}") from None


def _load_shortlist(file: Path, source_vocabulary: int, target_vocabulary: int) -> Shortlist:
    """Raises UserError unless it is one of such vocabularies."""
    kinds = read_header(file)
    match kinds.get("of_token"), kinds.get("always"):
        case TensorKind("I32", (rows, width)), TensorKind("I32", (count,)) if (
            rows == source_vocabulary and width <= LONGEST_SHORTLIST and count <= target_vocabulary
        ):
            expected = {"of_token": TensorKind("I32", (rows, width)), "always": TensorKind("I32", (count,))}
        case _:
            raise UserError(f"{file}: is not a shortlist of this model's vocabularies")
    tables = load_arrays(file, expected)
    for name, least in (("of_token", -1), ("always", 0)):
        table = tables[name]
        if table.size and not least <= table.min() <= table.max() < target_vocabulary:
            raise UserError(f"{file}: {name} has an id that is not in the target vocabulary")
    return Shortlist(tables["of_token"], tables["always"], target_vocabulary)
