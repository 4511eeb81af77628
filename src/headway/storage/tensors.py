"""Tensors from safetensors files that a stranger may have written: the header is checked before a tensor is read.

The library checks that the tensors fill the file, each as large as its shape and type say, without overlap or gap.
Here stand what it leaves open, keys that stand twice and headers of a hundred megabytes, and the comparison with the
tensors that are wanted.
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
"""Bytes of a header; one of 60,000 tensors has as many."""

_NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}
_NAMES |= {"int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}
"""What safetensors calls the types of torch and numpy."""


class TensorKind(NamedTuple):
    """What a header says of a tensor."""

    dtype: str
    """As safetensors names it, such as `F32`."""
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def kind_of(tensor: Tensor | NDArray[Any]) -> TensorKind:
    return TensorKind(_NAMES[str(tensor.dtype).removeprefix("torch.")], tuple(tensor.shape))


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
        with safe_open(file, framework="np"):
            pass
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file}: is not a readable safetensors file ({clipped(str(error))})") from None
    header.pop("__metadata__", None)
    return {name: TensorKind(entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}


def check_kinds(found: Mapping[str, TensorKind], expected: Mapping[str, TensorKind], origin: object) -> None:
    """Raises UserError, with the `origin`, unless the tensors that were found are exactly those that are expected: the
    same names, shapes and types."""
    for verb, one, other in (("lacks", expected, found), ("has unknown", found, expected)):
        if names := one.keys() - other.keys():
            raise UserError(f"{origin}: {verb} tensor {clipped(repr(min(names)))} (one of {len(names)})")
    for name, wanted in expected.items():
        if found[name] != wanted:
            raise UserError(f"{origin}: tensor {name!r} is {clipped(str(found[name]))}, it should be {wanted}")


def load_arrays(file: Path, expected: Mapping[str, TensorKind]) -> dict[str, NDArray[Any]]:
    """The tensors of a file that holds exactly those of `expected`: the same names, shapes and types. Nothing is read
    before the header is found right. Raises UserError."""
    check_kinds(read_header(file), expected, file)
    return numpy.load_file(file)


def load_tensors(file: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """As `load_arrays`, as tensors of torch. Values of `expected` are not looked at, so they may be on torch's device
    `meta`.

    The tensors lie in the mapped file, which Windows can't remove meanwhile: what is kept must be a copy.
    """
    from safetensors.torch import load_file

    check_kinds(read_header(file), {name: kind_of(tensor) for name, tensor in expected.items()}, file)
    return load_file(file)


def save_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes a safetensors file."""
    numpy.save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, file)


def arrays_checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the file that `save_arrays` would write, in hexadecimal."""
    return hashlib.sha256(numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()})).hexdigest()
