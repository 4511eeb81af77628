"""The protocol of tokenizers: text to ids and back. `text.subwords` and `text.words` are the two kinds.

Both have the same four control ids: <pad> 0, <unk> 1, <sos> 2 and <eos> 3. A control symbol that is spelled out in a
text is ordinary text for `encode`. Texts that are equivalent in Unicode, such as composed and decomposed Hangul, have
the same ids.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from headway.text.characters import DROPPED

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
CONTROL_PIECES = ("<pad>", "<unk>", "<sos>", "<eos>")

LEADING_TAG = re.compile(rf"[\s{DROPPED}]*(>>\S+?<<)[\s{DROPPED}]*")
"""The tag of a target language in front of a text, with white space and invisible characters around it."""
LANGUAGE_TOKEN = re.compile(r"<<(\S+)>>")
"""The token of a language that begins the sources and the targets in it, as in M2M-100, NLLB and mBART-50."""

TokenizerKind = Literal["bpe", "unigram", "word"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as readable text, and its characters in the text: text[start:end]."""

    text: str
    start: int
    end: int


class Tokenizer(Protocol):
    """The interface of a tokenizer, which has a vocabulary and a file format."""

    suffix: str
    """Suffix of the file that the tokenizer is saved in."""
    kind: TokenizerKind
    vocab_size: int
    target_tags: list[str]
    """Languages that a tag such as `>>ko<<` in front of a text can choose; empty if the model has only one."""
    many_sources: bool
    """Whether each of these languages may be the source's, too. A tag then names both: `>>en:ko<<`."""
    never_generated: list[int]
    """Ids that must not occur in a translation."""

    @property
    def vocabulary(self) -> list[str]:
        """All tokens, by id."""
        ...

    def encode(self, text: str, *, tagged: bool = False) -> list[int]:
        """The ids of the text, without control symbols; empty for a blank text. `tagged`: the text is a source, which
        may begin with the tag of a target language."""
        ...

    def encode_all(self, texts: list[str], *, tagged: bool = False) -> list[list[int]]:
        """`encode` for each text; faster for many texts."""
        ...

    def split_tag(self, text: str) -> tuple[str, str]:
        """The tag at the beginning of a source, empty if there is none, and the rest of the text."""
        ...

    def opening(self, text: str) -> list[int]:
        """The ids that a translation of this source begins with: with `many_sources` the token of its language."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, without control ids."""
        ...

    def encoded_pieces(self, text: str, *, tagged: bool = False) -> list[Piece]:
        """The tokens of `encode(text, tagged=tagged)`, with their characters in the text."""
        ...

    def decoded_pieces(self, ids: Sequence[int]) -> list[Piece]:
        """The tokens of the ids, without control ids, with their characters in `decode(ids)`."""
        ...

    def to_bytes(self) -> bytes: ...


def language_tag(language: str) -> str:
    """`ko` -> `>>ko<<`, which stands in front of a source text."""
    return f">>{language}<<"


def language_token(language: str) -> str:
    """`ko` -> `<<ko>>`, a piece that begins a source or a target."""
    return f"<<{language}>>"


def is_tag(piece: str) -> bool:
    """Whether the piece has the form of `language_tag`."""
    match = LEADING_TAG.fullmatch(piece)
    return match is not None and match[1] == piece


def fingerprint(tokenizer: Tokenizer) -> str:
    """SHA-256 of the tokenizer's file: equal exactly if text becomes the same ids."""
    return hashlib.sha256(tokenizer.to_bytes()).hexdigest()
