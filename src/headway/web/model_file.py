"""The file of a model that a browser translates with: one binary of everything, which page/model_file.js reads.

- 8 bytes: `HEADWAY1`
- 32 bytes: SHA-256 of all that follows
- 4 bytes: length of the header, little-endian
- the header: JSON in ASCII, filled up with spaces so that the numbers begin at a multiple of 16 bytes
- the numbers of each tensor, little-endian, each beginning at a multiple of 16 bytes of the numbers

The header's `tensors` have name, shape, precision and offset of each; of int8 also the offset of its scales, one
float32 for each row: a weight is int8 times scale. Matrices have the precision that was asked for, biases and norms are
float32.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.glass.document import LARGEST_HALF, quantized

MAGIC = b"HEADWAY1"
ALIGNED = 16
Precision = Literal["int8", "float16", "float32"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def model_file(about: dict[str, Any], weights: dict[str, NDArray[np.float32]], precision: Precision) -> bytes:
    """The bytes of the file. about: what the header says beside the tensors. Raises UserError for a weight that has no
    float16."""
    data, tensors = bytearray(), []

    def put(array: NDArray[Any]) -> int:
        data.extend(bytes(-len(data) % ALIGNED))
        offset = len(data)
        data.extend(array.tobytes())
        return offset

    for name, weight in weights.items():
        kind = precision if weight.ndim == 2 else "float32"
        tensor = {"name": name, "shape": list(weight.shape), "precision": kind}
        if kind == "int8":
            rows, scales = quantized(weight)
            tensors.append({**tensor, "offset": put(rows), "scales": put(scales)})
        elif kind == "float16":
            if np.abs(weight).max(initial=0.0) > LARGEST_HALF:
                raise UserError(f"weight {name!r} is too large for float16; use --precision float32")
            tensors.append({**tensor, "offset": put(weight.astype("<f2"))})
        else:
            tensors.append({**tensor, "offset": put(weight.astype("<f4"))})
    header = json.dumps({**about, "tensors": tensors}, separators=(",", ":")).encode("ascii")
    header += b" " * (-(len(MAGIC) + 32 + 4 + len(header)) % ALIGNED)
    rest = struct.pack("<I", len(header)) + header + bytes(data)
    return MAGIC + hashlib.sha256(rest).digest() + rest
