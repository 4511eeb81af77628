"""Tensors from untrusted safetensors files. The header is checked before a tensor is read.

The library checks that the tensors fill the file without overlap or gap, each as large as its shape and type say. This
module also refuses duplicate keys and huge headers, and compares the tensors with those that are expected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, numpy, safe_open

from headway.errors import UserError
from headway.storage.untrusted import clipped, parse_json, plain_size

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_HEADER = 8 * 2**20
"""Maximum bytes of a header, enough for 60,000 tensors."""

_NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}
_NAMES |= {"int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}
"""Safetensors' names for the types of torch and numpy."""


class TensorKind(NamedTuple):
    """Type, by safetensors' name such as `F32`, and shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def kind_of(tensor: Tensor | NDArray[Any]) -> TensorKind:
    return TensorKind(_NAMES[str(tensor.dtype).removeprefix("torch.")], tuple(tensor.shape))


def read_header(file: Path) -> dict[str, TensorKind]:
    """The type and shape of each tensor, by name. Raises UserError unless the whole file is valid safetensors."""
    size = plain_size(file)
    try:
        with open(file, "rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(size - 8, LARGEST_HEADER):
                raise UserError(f"{file}: is not a safetensors file (its header would have {length:,} bytes)")
            header = parse_json(stream.read(length), file)
        with safe_open(file, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: is not a readable safetensors file ({clipped(str(error))})") from None
    header.pop("__metadata__", None)
    return {name: TensorKind(entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}


def check_kinds(found: Mapping[str, TensorKind], expected: Mapping[str, TensorKind], origin: object) -> None:
    """Raises UserError, with the `origin`, unless names, shapes and types are exactly those expected."""
    for verb, one, other in (("lacks", expected, found), ("has unknown", found, expected)):
        if names := one.keys() - other.keys():
            raise UserError(f"{origin}: {verb} tensor {clipped(repr(min(names)))} (one of {len(names)})")
    for name, wanted in expected.items():
        if found[name] != wanted:
            raise UserError(f"{origin}: tensor {name!r} is {clipped(str(found[name]))}, it should be {wanted}")


def load_arrays(file: Path, expected: Mapping[str, TensorKind]) -> dict[str, NDArray[Any]]:
    """The tensors of a file. Raises UserError, before any is read, unless their kinds are those expected."""
    check_kinds(read_header(file), expected, file)
    return numpy.load_file(file, backend="pread")  # a mapped file would stay in memory, too


def load_tensors(file: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Loads as `load_arrays`, into torch tensors. `expected` may be on the device `meta`. The tensors are views of the
    mapped file, which Windows can't remove meanwhile, so copy those that are kept."""
    from safetensors.torch import load_file

    check_kinds(read_header(file), {name: kind_of(tensor) for name, tensor in expected.items()}, file)
    return load_file(file)


def save_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    numpy.save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, file)


def arrays_checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the file that `save_arrays` would write, in hexadecimal."""
    return hashlib.sha256(numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()})).hexdigest()
