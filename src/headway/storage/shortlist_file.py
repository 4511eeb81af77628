"""A shortlist on disk, `shortlist.safetensors`, which a stranger may have written."""

from __future__ import annotations

from pathlib import Path

from headway.errors import UserError
from headway.storage.tensors import TensorKind, load_arrays, read_header, save_arrays
from headway.text.shortlist import Shortlist

LARGEST = 256
"""Target tokens of a source token, at most."""


def save_shortlist(file: Path, shortlist: Shortlist) -> None:
    save_arrays(file, {name: getattr(shortlist, name) for name in ("of_token", "always")})


def load_shortlist(file: Path, source_vocabulary: int, target_vocabulary: int) -> Shortlist:
    """Raises UserError unless it is one of such vocabularies."""
    kinds = read_header(file)
    match kinds.get("of_token"), kinds.get("always"):
        case TensorKind("I32", (rows, width)), TensorKind("I32", (count,)) if (
            rows == source_vocabulary and width <= LARGEST and count <= target_vocabulary
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
