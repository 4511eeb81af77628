"""A folder of prepared data, which training reads, and its comparison with a recipe.

A finished folder has `prepared.json`, which says what it was made from, and the size and checksum of each file.
Folders from before there were shards lack it. A run that has such a folder can still read it.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from headway.data.noise import VERSIONS
from headway.data.options import PreparationOptions
from headway.data.shards import DESCRIPTION, SIDES, ParallelIds
from headway.data.vocabulary import SAMPLE_PAIRS, Tokenizers
from headway.errors import UserError
from headway.storage.atomic import write_json
from headway.storage.changes import first_change
from headway.storage.checksums import checksum
from headway.text.subwords import SubwordTokenizer, Tokenizer, fingerprint, parse_tokenizer
from headway.text.words import WordTokenizer

MANIFEST = "prepared.json"
REPORT = "report.json"
VALID_TEXTS = "valid.json"
WORK = "work"
"""The folder inside an unfinished one that records what is done."""
FORMAT_VERSION = 1
READ_AT_MOST = 2**30
"""Bytes of data up to which training checks every checksum at its start. Of larger data it checks only the sizes of the
shards, because reading them would take longer than the rest of the start."""


@dataclass
class PreparedData:
    """Everything that training reads."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    train: ParallelIds
    valid: ParallelIds
    valid_texts: list[tuple[str, str]]
    """The validation pairs as text, for BLEU, without those that have a blank or far too long side."""
    fingerprint: str
    """Equal for equal data."""


def made_from(options: PreparationOptions) -> dict[str, Any]:
    """The keys of the recipe that decide what is prepared, except `training.tokens_per_batch`, which affects only pairs
    that are longer. File names are relative to the folder that holds all files, so text and data can move together."""
    data = options.data
    corpora = {"train": data.corpora, "valid": data.validation, "held_out": data.held_out}
    try:
        top = os.path.commonpath(
            [file.parent for listed in corpora.values() for one in listed for file in (*one.source, *one.target)]
        )
    except ValueError:  # several drives of Windows
        top = ""

    def names(paths: Sequence[Path]) -> list[str]:
        return [Path(os.path.relpath(path, top)).as_posix() if top else path.as_posix() for path in paths]

    described: dict[str, Any] = {
        key: [
            {"source": names(one.source), "target": names(one.target), "tag": one.tag}
            | ({"swapped": True} if one.is_swapped and not one.target else {})
            for one in listed
        ]
        for key, listed in corpora.items()
    }
    filters = {key: value for key, value in data.filters.model_dump(mode="json").items() if value}
    if filters.keys() & {"script", "language"}:
        filters["languages"] = [list(pair) for pair in data.languages]
    described["filters"] = filters
    tokenizer = {**options.tokenizer.model_dump(mode="json"), "sample_pairs": SAMPLE_PAIRS}
    if data.noise:
        noise = data.noise.model_dump(
            mode="json", exclude=None if data.noise.pairs else {"pairs"}
        )  # older folders lack it
        described["noise"] = {**noise, "versions": VERSIONS}
        tokenizer["from_noise"] = True  # folders from before tokenizers were learned from noisy text lack this
    return {"data": described, "tokenizer": tokenizer, "model": {"max_length": options.max_length}}


def state_of_text(files: Sequence[Path]) -> list[list[Any]]:
    """The size of each file and its checksum, or its time of modification if the files are too large to read again."""
    states = [file.stat() for file in files]
    small = sum(state.st_size for state in states) <= READ_AT_MOST
    return [
        [state.st_size, checksum(file) if small else f"modified {state.st_mtime_ns}"]
        for file, state in zip(files, states, strict=True)
    ]


def changes_of_text(folder: Path, before: Sequence[list[Any]], files: Sequence[Path]) -> Iterator[str]:
    """Messages about changes of the text since its `state_of_text` was taken. Skips files that are gone."""
    if len(files) != len(before):
        yield f"{folder}: was prepared from {len(before)} files of text, now there are {len(files)}"
        return
    for file, (size, sum_) in zip(files, before, strict=True):
        if not file.exists():
            continue
        status = file.stat()
        if status.st_size == size and sum_.startswith("modified"):
            change = "" if sum_ == f"modified {status.st_mtime_ns}" else "has another time of modification"
        else:
            change = "" if status.st_size == size and checksum(file) == sum_ else "was changed"
        if change:
            yield f"{file}: {change} since {folder} was prepared from it"


def write_manifest(folder: Path, made: dict[str, Any], text: list[list[Any]]) -> None:
    """Marks the folder as finished. text: the `state_of_text` that it was made from."""
    files = {
        file.relative_to(folder).as_posix(): [file.stat().st_size, checksum(file)]
        for file in sorted(folder.rglob("*"))
        if file.is_file() and folder / WORK not in file.parents
    }
    write_json(folder / MANIFEST, {"format_version": FORMAT_VERSION, "made_from": made, "text": text, "files": files})


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The folder's manifest; None if it has none. Raises UserError for a manifest that can't be read."""
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        document = None
    if not isinstance(document, dict) or document.get("format_version") != FORMAT_VERSION:
        raise UserError(f"{folder / MANIFEST}: can't be read by this version; delete the folder and prepare it again")
    return document


def read_prepared(folder: Path, expected: str | None, remedy: str) -> PreparedData:
    """The data in a finished folder. Raises UserError if a file is damaged or the `expected` fingerprint differs."""
    found = _fingerprint(folder)
    if expected is not None and found != expected:
        raise UserError(f"{folder}: isn't the data that the run began with; {remedy}")
    return PreparedData(
        source_tokenizer=find_tokenizer(folder, "source"),
        target_tokenizer=find_tokenizer(folder, "target"),
        train=ParallelIds(folder / "train"),
        valid=ParallelIds(folder / "valid"),
        valid_texts=[(source, target) for source, target in json.loads((folder / VALID_TEXTS).read_bytes())],
        fingerprint=found,
    )


def read_prepared_for(
    options: PreparationOptions, folder: Path, tokenizers: Tokenizers | None, expected: str | None
) -> PreparedData:
    """The data in the folder named by the recipe. Raises UserError unless the folder was made from this recipe, with
    the given tokenizers if there are any, is undamaged, and has the `expected` fingerprint."""
    manifest = read_manifest(folder) if folder.is_dir() else None
    if manifest is None:
        if (folder / WORK).is_dir():
            raise UserError(f"{folder}: isn't finished; go on with `headway prepare` as it was begun")
        problem = "holds no prepared data" if folder.exists() else "no such folder"
        raise UserError(f"{folder}: {problem}; make it with `headway prepare RECIPE --output {folder}`")
    if changed := first_change(manifest["made_from"], made_from(options)):
        raise UserError(f"{folder}: was prepared from another recipe: {changed}; prepare this one into another folder")
    data = read_prepared(folder, expected, "restore it, or start a new run")
    budget = options.tokens_per_batch
    longest = json.loads((folder / "train" / DESCRIPTION).read_bytes())["longest_tokens"] + 2
    if longest > budget:
        raise UserError(
            f"{folder}: holds a pair of {longest} tokens, more than training.tokens_per_batch={budget}; use at least "
            f"{longest}, or prepare another folder"
        )
    own = data.source_tokenizer, data.target_tokenizer
    if tokenizers and list(map(fingerprint, tokenizers)) != list(map(fingerprint, own)):
        raise UserError(f"{folder}: has another vocabulary than {options.init_from}; prepare another folder with it")
    return data


def find_tokenizer(folder: Path, side: str) -> Tokenizer:
    """The tokenizer of a side, `source` or `target`. Raises UserError."""
    for suffix in (SubwordTokenizer.suffix, WordTokenizer.suffix):
        if (file := folder / f"{side}{suffix}").exists():
            return parse_tokenizer(file.read_bytes(), file)
    raise UserError(f"{folder}: has no {side} tokenizer; delete the folder to make it again")


def refuse_damage(folder: Path, manifest: dict[str, Any]) -> None:
    """Raises UserError unless all files are as in the manifest. Of large data only the sizes of shards are checked."""
    files: dict[str, tuple[int, str]] = manifest["files"]
    all_read = sum(size for size, _ in files.values()) <= READ_AT_MOST
    for name, (size, sum_) in files.items():
        file = folder / name
        is_read = all_read or file.suffix not in (".ids", ".offsets")
        if not file.is_file() or file.stat().st_size != size or (is_read and checksum(file) != sum_):
            raise UserError(f"{file}: isn't as it was prepared; delete the folder and prepare it again")


def _fingerprint(folder: Path) -> str:
    """SHA-256 over the names and checksums of the files, except the report, because it names the places of the text.
    Validation ids count in the form of earlier versions, one shard of int32: text that is prepared again is then the
    data that a run began with. Raises UserError for a damaged file."""
    manifest = read_manifest(folder)
    if manifest is None:
        files = [file for file in folder.rglob("*") if file.is_file()]
        sums = {file.relative_to(folder).as_posix(): checksum(file) for file in files}
    else:
        refuse_damage(folder, manifest)
        sums = {name: sum_ for name, (_, sum_) in manifest["files"].items()}
    if f"valid/{DESCRIPTION}" in sums:
        valid = ParallelIds(folder / "valid")
        arrays = {"sizes": np.array(valid.sizes, dtype="<i8")}
        for side, sequences in zip(SIDES, (valid.source, valid.target), strict=True):
            ids = [sequences[number] for number in range(len(valid))]
            arrays[f"{side}.ids"] = np.concatenate(ids).astype("<i4")
            arrays[f"{side}.offsets"] = np.cumsum([0, *map(len, ids)], dtype="<i8")
        sums = {name: sum_ for name, sum_ in sums.items() if not name.startswith("valid/")}
        sums |= {f"valid/{name}": hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
    named = sorted((PurePosixPath(name), sum_) for name, sum_ in sums.items() if name != REPORT)
    return hashlib.sha256("".join(f"{name} {sum_}\n" for name, sum_ in named).encode()).hexdigest()
