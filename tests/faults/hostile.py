"""Model directories that a stranger might send: valid ones to begin with, and how to spoil them.

A stranger can make checksums, so whatever is spoilt here has its checksum made to match.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece

from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, save_model
from headway.text.subwords import SubwordTokenizer, Tokenizer
from headway.text.tokenizer import CONTROL_PIECES
from headway.text.words import WordTokenizer

WORDS = ["the", "cat", "sat", "on", "a", "mat"]
TEXTS = ["", "the cat sat on a mat", ">>ko<< ½ ﷺ 안녕 <pad> <0x41>👩\u200d", "\x00\x1c \u2028x" * 20, "ab" * 400]


def make_directory(folder: Path, tokenizer: Tokenizer | None = None, **changes: Any) -> Path:
    """A model directory that is as it should be, with the smallest of models."""
    tokenizer = tokenizer or SubwordTokenizer(subword_model())
    options = {"d_model": 8, "num_heads": 2, "d_ff": 12, "encoder_layers": 1, "decoder_layers": 1, **changes}
    model = Transformer(ModelConfig(tokenizer.vocab_size, tokenizer.vocab_size, **options))
    save_model(
        folder,
        StoredModel(
            model=model,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="ko",
            decoding={"beam_size": 2},
            card="# card\n",
        ),
    )
    return folder


def word_tokenizer() -> WordTokenizer:
    return WordTokenizer(WORDS)


def replace(folder: Path, name: str, data: bytes) -> None:
    """Puts other bytes in the place of a file, and their checksum into config.json."""
    (folder / name).write_bytes(data)
    if name != "config.json":
        change_config(folder, lambda config: config["sha256"].update({name: hashlib.sha256(data).hexdigest()}))


def change_config(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    change(config)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def split_safetensors(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and tensors. https://github.com/huggingface/safetensors#format"""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def safetensors(header: dict[str, Any] | bytes, tensors: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + tensors


# A sentencepiece model is a protobuf message: https://protobuf.dev/programming-guides/encoding/ and
# https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def number(value: int) -> bytes:
    low = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(part | 128 for part in low[:-1]), low[-1]])


def field(key: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def piece(text: str | bytes, score: float = 0.0, kind: int = NORMAL) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return field(1, field(1, data) + number(2 << 3 | 5) + struct.pack("<f", score) + field(3, kind))


def controls() -> list[bytes]:
    return [piece(text, kind=UNKNOWN if text == "<unk>" else CONTROL) for text in CONTROL_PIECES]


def subword_model(
    first: list[bytes] | None = None, more: list[bytes] | None = None, rules: dict[str, str] | None = None
) -> bytes:
    """A BPE model of the 256 bytes, six words, and what can be made of their letters."""
    letters = sorted(set("".join(WORDS)))
    found = dict.fromkeys(word[:end] for word in WORDS for end in range(2, len(word) + 1))
    pieces = [*(first or controls()), *(piece(f"<0x{byte:02X}>", kind=BYTE) for byte in range(256))]
    pieces += [piece(text, -rank) for rank, text in enumerate([*found, "▁", *letters], start=1)]
    return b"".join([*pieces, *(more or []), field(2, field(3, 2) + field(35, 1)), field(3, normalizer(rules))])


def normalizer(rules: dict[str, str] | None = None) -> bytes:
    """A normalizer_spec with such rules, made by sentencepiece itself."""
    made = sentencepiece.SentencePieceNormalizer(norm_map=list((rules or {"½": "1/2", "ﷺ": "صلى"}).items()))
    return made.serialized_normalizer_spec()
