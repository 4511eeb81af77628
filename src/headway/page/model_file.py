"""The file of a model that a browser translates with: one binary of everything, which engine/model_file.js reads.

- 8 bytes: `HEADWAY2`
- 4 bytes: CRC-32 of all that follows, little-endian
- 4 bytes: length of the header, little-endian
- the header: JSON in ASCII, filled up with spaces so that the numbers begin at a multiple of 16 bytes
- the numbers of each tensor, little-endian, each beginning at a multiple of 16 bytes of the numbers

The header's `tensors` have name, shape, precision and offset of each; of int8 also the offset of its scales, one
float32 for each row: a weight is int8 times scale. Matrices have the requested precision, biases and norms float32.
"""

import json
import struct
import unicodedata
import zlib
from dataclasses import asdict
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.page.document import LARGEST_HALF, quantized
from headway.text.sentencepiece_model import normalization_rules, read_model
from headway.text.subwords import Tokenizer
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from headway.text.words import WordTokenizer

MAGIC = b"HEADWAY2"
ALIGNED = 16
Precision = Literal["int8", "float16", "float32"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def model_file(about: dict[str, Any], weights: dict[str, NDArray[np.float32]], precision: Precision) -> bytes:
    """The file's bytes. about: the header beside the tensors. Raises UserError for a weight too large for float16."""
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
    header += b" " * (-(len(MAGIC) + 4 + 4 + len(header)) % ALIGNED)
    rest = struct.pack("<I", len(header)) + header + bytes(data)
    return MAGIC + struct.pack("<I", zlib.crc32(rest)) + rest


def tokenizer_description(tokenizer: Tokenizer) -> dict[str, Any]:
    """The JSON that `loadTokenizer` of the page makes the same tokenizer from: `kind`, `pieces` by id, the ids of the
    control symbols, `target_tags`, `never_generated`; for whole words `lowercase`, otherwise the fields of
    `SentencePieceModel` with `rules`, the `normalization_rules`, for `charsmap`. Raises UserError for a sentencepiece
    model that the page doesn't support."""
    ids = {"pad_id": PAD_ID, "unk_id": UNK_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}
    common = {**ids, "target_tags": tokenizer.target_tags, "never_generated": tokenizer.never_generated}
    if isinstance(tokenizer, WordTokenizer):
        return {**common, "kind": "word", "pieces": tokenizer.vocabulary, "lowercase": tokenizer.lowercase}
    described = asdict(read_model(tokenizer.to_bytes()))
    # sentencepiece gets only text in NFKC from headway, and every part of such text is in NFKC, too. So of the 225,000
    # rules for NFKC itself only those for characters newer than Python's Unicode remain.
    rules = normalization_rules(described.pop("charsmap"))
    rules = {key: text for key, text in rules.items() if unicodedata.is_normalized("NFKC", key)}
    return {**common, **described, "rules": rules}
