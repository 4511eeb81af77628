"""The numbers of a record's JSON form, as docs/record.md says how to read them."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = {"float16": "<f2", "float32": "<f4"}


def decoded(entries: dict[str, Any], name: str) -> NDArray[Any]:
    """An array of a document's `arrays`, in float32 or bool."""
    entry = entries[name]
    if "same_as" in entry:
        return decoded(entries, entry["same_as"])
    if "sum_of" in entry:
        one, other = (decoded(entries, part) for part in entry["sum_of"])
        return one + other
    if "masked" in entry:
        scores, mask = (decoded(entries, part) for part in entry["masked"])
        return np.where(mask, scores, np.finfo(np.float32).min)
    shape, data = entry["shape"], base64.b64decode(entry["data"])
    if entry["dtype"] == "bool":
        return np.frombuffer(data, np.uint8).reshape(shape).astype(bool)
    if entry["dtype"] in FLOATS:
        return np.frombuffer(data, FLOATS[entry["dtype"]]).reshape(shape).astype(np.float32)
    scales = np.frombuffer(base64.b64decode(entry["scales"]), "<f4").reshape(*shape[:-1], 1)
    return np.frombuffer(data, np.int8).reshape(shape) * scales
