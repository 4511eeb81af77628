"""The parts that all tokenizers share: control ids, pieces, tags. `text.subwords` and `text.words` are the two kinds.

Both have the same four control ids: <pad> 0, <unk> 1, <sos> 2 and <eos> 3. A control symbol that is spelled out in a
text is ordinary text for `encode`. Texts that are equivalent in Unicode, such as composed and decomposed Hangul, have
the same ids.
"""

import re
from dataclasses import dataclass
from typing import Literal

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
