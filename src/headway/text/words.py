"""Whole words: the strings between white space, and a vocabulary of them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from headway.errors import UserError
from headway.text.characters import is_blank, visible
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID, UNK_ID, Piece, TokenizerKind

_WORD = re.compile(r"\S+")


class WordTokenizer:
    """Splits text at white space into words in NFC; a word that isn't in the vocabulary is <unk>. Its methods do what
    those of `SubwordTokenizer` do; it has no tags."""

    suffix = ".vocab.json"
    kind: TokenizerKind = "word"

    def __init__(self, words: Sequence[str], lowercase: bool = False) -> None:
        self.vocabulary = [*CONTROL_PIECES, *words]
        self.vocab_size = len(self.vocabulary)
        self.lowercase = lowercase
        self.target_tags: list[str] = []
        self.many_sources = False
        self.never_generated: list[int] = []
        self._ids = {word: id_ for id_, word in enumerate(words, start=len(CONTROL_PIECES))}
        if len(self._ids) != len(words):
            raise UserError("a word stands twice in the vocabulary")

    def encode(self, text: str, *, tagged: bool = False) -> list[int]:
        return [self._ids.get(word, UNK_ID) for word in split_words(text, self.lowercase)]

    def encode_all(self, texts: list[str], *, tagged: bool = False) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def split_tag(self, text: str) -> tuple[str, str]:
        return "", text

    def opening(self, text: str) -> list[int]:
        return []

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._words_of(ids))

    def encoded_pieces(self, text: str, *, tagged: bool = False) -> list[Piece]:
        return [
            Piece(word if word in self._ids else "<unk>", *match.span())
            for match in _WORD.finditer(text)
            for word in split_words(match[0], self.lowercase)
        ]

    def decoded_pieces(self, ids: Sequence[int]) -> list[Piece]:
        words = self._words_of(ids)
        ends = list(accumulate(len(word) + 1 for word in words))
        return [Piece(word, end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]

    def _words_of(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary[id_] for id_ in ids if id_ not in (PAD_ID, BOS_ID, EOS_ID)]

    def to_bytes(self) -> bytes:
        document = {"lowercase": self.lowercase, "words": self.vocabulary[len(CONTROL_PIECES) :]}
        return json.dumps(document, ensure_ascii=False, indent=0).encode("utf-8")

    @classmethod
    def from_bytes(cls, data: bytes) -> WordTokenizer:
        problem = "not a word vocabulary (JSON with `words` and `lowercase`)"
        try:
            document = json.loads(data.decode("utf-8"))
            words, lowercase = document["words"], document["lowercase"]
            "".join(words).encode("utf-8")  # raises unless all are text, without halves of surrogate pairs
        except (ValueError, TypeError, KeyError, RecursionError):
            raise UserError(problem) from None
        if not isinstance(words, list) or not isinstance(lowercase, bool):
            raise UserError(problem)
        if any(word.split() != [word] for word in words):
            raise UserError("a word of the vocabulary is blank or holds a space")
        return cls(words, lowercase)

    @classmethod
    def train(cls, lines: Iterable[str], vocab_size: int, min_frequency: int, lowercase: bool) -> WordTokenizer:
        """The most frequent words that occur at least `min_frequency` times, at most `vocab_size` with the controls."""
        counts = Counter(word for line in lines for word in split_words(line, lowercase))
        frequent = sorted((-count, word) for word, count in counts.items() if count >= min_frequency)
        return cls([word for _, word in frequent[: max(0, vocab_size - len(CONTROL_PIECES))]], lowercase)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each word in the text."""
    return [match.span() for match in _WORD.finditer(text)]


def split_words(text: str, lowercase: bool) -> list[str]:
    """Words split at white space, in NFC and without invisible characters."""
    words = unicodedata.normalize("NFC", visible(text.lower() if lowercase else text)).split()
    return [word for word in words if not is_blank(word)]
