"""Reading files from untrusted sources: plain files of a bounded size, and JSON without ambiguities.

A link may lead anywhere, opening a pipe may never end, and of two equal keys in JSON the second would silently win.
"""

import json
import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from headway.errors import UserError, first_problem

T = TypeVar("T")
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
"""Converts no types, and refuses unknown members and numbers that are not finite; also of nested dataclasses."""

LARGEST_FILE = 16 * 2**20
"""Bytes of a file that is read whole; vocabularies of 250,000 pieces have a third of it."""
LARGEST_JSON = 2**20


def plain_size(file: Path) -> int:
    """The size of a file in bytes. Follows links within its folder, as in a volume of Kubernetes, and within the cache
    of Hugging Face. Raises UserError if there is no file, or no plain one: a folder, a pipe, a link to elsewhere."""
    if not leads_within(file, file.parent) and not _is_in_hub_cache(file):
        raise UserError(f"{file}: is a link out of its folder; put the file itself there, for all files with cp -rL")
    try:
        status = file.stat()
    except FileNotFoundError:
        raise UserError(f"{file}: {'leads to no file' if file.is_symlink() else 'is missing'}") from None
    except OSError as error:
        raise UserError(f"{file}: can't be read ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{file}: is a folder, a pipe or a device; put the file itself there")
    return status.st_size


def leads_within(path: Path, folder: Path) -> bool:
    """Whether the path, with all links followed, is below the folder."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _is_in_hub_cache(file: Path) -> bool:
    """Whether a link below `snapshots/REVISION` leads to `blobs/HASH` beside `snapshots`, which is no link itself."""
    folders, blobs = Path(os.path.realpath(file.parent)).parents, Path(os.path.realpath(file)).parent
    return any(one.name == "snapshots" and blobs == one.parent / "blobs" for one in folders)


def read_plain(file: Path, largest: int = LARGEST_FILE) -> bytes:
    """The content of a plain file. Raises UserError if it has more than `largest` bytes."""
    size = plain_size(file)
    if size > largest:
        raise UserError(f"{file}: has {size:,} bytes, more than the {largest:,} that such a file may have")
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: can't be read ({error.strerror})") from None


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises UserError."""
    return parse_json(read_plain(file, LARGEST_JSON), file)


def parse_json(data: bytes, origin: Path) -> dict[str, Any]:
    """The object in JSON text. Raises UserError for anything else, a key that stands twice, NaN and Infinity."""
    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{origin}: is not JSON ({clipped(str(error))})") from None
    if not isinstance(document, dict):
        raise UserError(f"{origin}: must hold a JSON object")
    return document


def parse_record(kind: type[T], document: dict[str, Any], file: Path) -> T:
    """The object of a JSON file as a `kind`, checked by pydantic. Raises UserError."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(document))
    except ValidationError as error:
        raise UserError(f"{file}: {clipped(first_problem(error))}") from None


def check_version(version: Any, newest: int, file: Path) -> None:
    """Raises UserError unless `version` is a format version that this headway reads: 1 to `newest`."""
    if type(version) is int and version > newest:
        raise UserError(
            f"{file}: format_version {version} is newer than what this version of headway reads ({newest}); "
            "use a newer headway"
        )
    if type(version) is not int or version < 1:
        raise UserError(f"{file}: format_version {clipped(repr(version))} is not one that headway ever wrote")


def clipped(text: str) -> str:
    """The beginning of a text that is too long for a line."""
    return text if len(text) <= 300 else f"{text[:300]}..."


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"key {name!r} stands twice")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
