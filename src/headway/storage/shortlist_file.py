"""A shortlist on disk, `shortlist.safetensors`, which a stranger may have written."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from headway.errors import UserError
from headway.storage.tensors import TensorKind, load_tensors, read_header
from headway.text.shortlist import Shortlist

LARGEST = 256
"""Target tokens of a source token, at most."""


def save_shortlist(file: Path, shortlist: Shortlist) -> None:
    save_file({name: torch.from_numpy(getattr(shortlist, name)) for name in ("of_token", "always")}, file)


def load_shortlist(file: Path, source_vocabulary: int, target_vocabulary: int) -> Shortlist:
    """Raises UserError unless it is one of such vocabularies."""
    found = read_header(file)
    match found.get("of_token"), found.get("always"):
        case TensorKind("I32", (rows, width)), TensorKind("I32", (count,)) if (
            rows == source_vocabulary and width <= LARGEST and count <= target_vocabulary
        ):
            expected = {
                "of_token": torch.empty(rows, width, dtype=torch.int32, device="meta"),
                "always": torch.empty(count, dtype=torch.int32, device="meta"),
            }
        case _:
            raise UserError(f"{file}: is not a shortlist of this model's vocabularies")
    tensors = load_tensors(file, expected)
    for name, least in (("of_token", -1), ("always", 0)):
        if tensors[name].numel() and not least <= tensors[name].min() <= tensors[name].max() < target_vocabulary:
            raise UserError(f"{file}: {name} has an id that is not in the target vocabulary")
    return Shortlist(tensors["of_token"].clone().numpy(), tensors["always"].clone().numpy(), target_vocabulary)
