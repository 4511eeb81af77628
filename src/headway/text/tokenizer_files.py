"""Tokenizers from their files, by the file's suffix."""

from pathlib import Path

from headway.errors import UserError
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import Tokenizer
from headway.text.words import WordTokenizer


def read_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer from its file, by the file's suffix. Raises UserError."""
    try:
        return parse_tokenizer(path.read_bytes(), path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such tokenizer file") from None


def parse_tokenizer(data: bytes, path: Path) -> Tokenizer:
    """A tokenizer from the bytes of the file at `path`, which may come from anybody. Raises UserError."""
    try:
        return SubwordTokenizer(data) if path.name.endswith(SubwordTokenizer.suffix) else WordTokenizer.from_bytes(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
