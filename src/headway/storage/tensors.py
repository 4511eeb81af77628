"""Tensors from safetensors files that a stranger may have written: the header is checked before a tensor is read.

The library checks that the tensors fill the file, each as large as its shape and type say, without overlap or gap.
Here stand what it leaves open, keys that stand twice and headers of a hundred megabytes, and the comparison with the
tensors that are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from headway.errors import UserError
from headway.storage.untrusted import clipped, parse_json, plain_size

LARGEST_HEADER = 8 * 2**20
"""Bytes of a header; one of 60,000 tensors has as many."""

_NAMES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""What safetensors calls the types of torch."""


class TensorKind(NamedTuple):
    """What a header says of a tensor."""

    dtype: str
    """As safetensors names it, such as `F32`."""
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def kind_of(tensor: Tensor) -> TensorKind:
    return TensorKind(_NAMES[tensor.dtype], tuple(tensor.shape))


def read_header(file: Path) -> dict[str, TensorKind]:
    """Each tensor's type and shape, by name; no tensor is read. Raises UserError unless the file is safetensors from
    its first byte to its last."""
    size = plain_size(file)
    try:
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(size - 8, LARGEST_HEADER):
                raise UserError(f"{file}: is not a safetensors file (its header would have {length:,} bytes)")
            header = parse_json(stream.read(length), file)
        with safe_open(file, framework="pt"):
            pass
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: is not a readable safetensors file ({clipped(str(error))})") from None
    header.pop("__metadata__", None)
    return {name: TensorKind(entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}


def check_kinds(found: Mapping[str, TensorKind], expected: Mapping[str, Tensor], origin: object) -> None:
    """Raises UserError, with the `origin`, unless the tensors that were found are exactly those of `expected`: the same
    names, shapes and types."""
    for verb, names in (
        ("lacks", expected.keys() - found.keys()),
        ("has unknown", found.keys() - expected.keys()),
    ):
        if names:
            raise UserError(f"{origin}: {verb} tensor {clipped(repr(min(names)))} (one of {len(names)})")
    for name, tensor in expected.items():
        if found[name] != (wanted := kind_of(tensor)):
            raise UserError(f"{origin}: tensor {name!r} is {clipped(str(found[name]))}, it should be {wanted}")


def load_tensors(file: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file that holds exactly those of `expected`: the same names, shapes and types. Their values are
    not looked at, so they may be on torch's device `meta`. Nothing is read before the header is found right.
    Raises UserError.

    The tensors lie in the mapped file, which Windows can't remove meanwhile: what is kept must be a copy.
    """
    check_kinds(read_header(file), expected, file)
    return load_file(file)
