"""Text to ids and back: subwords by sentencepiece, or whole words.

Both hold the same four control ids, <pad> 0, <unk> 1, <sos> 2 and <eos> 3. `encode` gives ids of text alone: a
control symbol that stands in the text is text, and never becomes a control id. Texts that Unicode calls equivalent,
such as composed and decomposed Hangul, have the same ids.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal, Protocol

import sentencepiece

from headway.errors import UserError
from headway.text.corpus import is_blank
from headway.text.sentencepiece_model import check_normalizers

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
CONTROL_PIECES = ("<pad>", "<unk>", "<sos>", "<eos>")

_TAG = re.compile(r"\s*(>>\S+?<<)\s*")
_WORD = re.compile(r"\S+")

MOST_LINES = 2_000_000
"""A vocabulary is learned from so many lines at most."""
CHARACTERS_PER_PIECE = 64
"""No text has so many for each piece, except by white space or words without end."""

_SKIPPED = "\u2585"
"""sentencepiece learns nothing from a line with this character in it, and says nothing about it."""
_SPACE_MARK, _SPACE_MARK_IN_TEXT = "▁", "\ufdd0"
"""sentencepiece takes U+2581 for a space. In a text it is a character, so a code point that never is one stands for
it."""

TokenizerKind = Literal["bpe", "unigram", "word"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as a person sees it, and the characters of the text that it stands for: text[start:end]."""

    text: str
    start: int
    end: int


class Tokenizer(Protocol):
    """What the rest of the house asks of a tokenizer; it has a vocabulary and a file form."""

    suffix: str
    """Of the file it is saved in."""

    target_tags: list[str]
    """Languages that a text may ask for by a tag such as `>>ko<<` in front; none for a model of one target language."""

    @property
    def vocab_size(self) -> int: ...

    @property
    def kind(self) -> TokenizerKind: ...

    @property
    def vocabulary(self) -> list[str]:
        """Every piece, by its id."""
        ...

    never_generated: list[int]
    """Ids that no translation may have."""

    def encode(self, text: str, *, tagged: bool = False) -> list[int]:
        """The ids of the text, without control symbols; empty for blank text. `tagged`: it is a source, which may begin
        with the tag of a target language."""
        ...

    def split_tag(self, text: str) -> tuple[str, str]:
        """The tag that a source begins with, empty where there is none, and the text itself."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids; control ids among them give nothing."""
        ...

    def encoded_pieces(self, text: str, *, tagged: bool = False) -> list[Piece]:
        """The pieces of `encode(text, tagged=tagged)`, with their places in the text."""
        ...

    def decoded_pieces(self, ids: Sequence[int]) -> list[Piece]:
        """The pieces of the ids, without control ids, with their places in `decode(ids)`."""
        ...

    def to_bytes(self) -> bytes: ...


class SubwordTokenizer:
    """A sentencepiece model: NFKC, byte fallback (nothing is unknown), `▁` at the start of words. Spaces in a row are
    one, and none begins or ends a text; any other character comes back.

    Tags of target languages are control pieces of it: only a tag that stands first in a text is one, anywhere else it
    is text.
    """

    suffix = ".spm"

    def __init__(self, model: bytes) -> None:
        """`model`: the bytes of its file, from anybody. Raises UserError."""
        if not model:
            raise UserError("not a sentencepiece model (it is empty)")
        check_normalizers(model)
        self._model = model
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self._check_pieces()
        except (RuntimeError, ValueError, OSError) as error:
            raise UserError(f"not a sentencepiece model ({_one_line(error)})") from None
        self._tags: dict[str, int] = {}
        for id_ in range(len(CONTROL_PIECES), self.vocab_size):
            if not self._processor.is_control(id_):
                break
            self._tags[self._processor.id_to_piece(id_)] = id_
        self.target_tags = [tag.removeprefix(">>").removesuffix("<<") for tag in self._tags]
        self.never_generated = [UNK_ID, *self._tags.values()]

    def _check_pieces(self) -> None:
        """Raises ValueError where a piece is no text (which sentencepiece itself finds), or not what its id says."""
        if self.vocab_size < len(CONTROL_PIECES) or len(self.vocabulary) != self.vocab_size:
            raise ValueError("lacks the control symbols")
        for id_, piece in enumerate(CONTROL_PIECES):
            if not (self._processor.is_unknown(id_) if id_ == UNK_ID else self._processor.is_control(id_)):
                raise ValueError(f"id {id_} is not a control symbol, as {piece} must be")
        if not all(map(math.isfinite, self._processor.get_score(list(range(self.vocab_size))))):
            raise ValueError("a score is not finite")

    @property
    def vocab_size(self) -> int:
        return self._processor.get_piece_size()

    @property
    def vocabulary(self) -> list[str]:
        return self._processor.id_to_piece(list(range(self.vocab_size)))

    @property
    def kind(self) -> TokenizerKind:
        """BPE scores its pieces by their rank, unigram by log-probability."""
        return "bpe" if self._processor.get_score(self.vocab_size - 1).is_integer() else "unigram"

    def encode(self, text: str, *, tagged: bool = False) -> list[int]:
        tag, start = self._leading_tag(text) if tagged else (None, 0)
        ids = self._processor.encode(_normalized(text[start:]))
        return [self._tags[tag.text], *ids] if tag and ids else ids

    def split_tag(self, text: str) -> tuple[str, str]:
        tag, start = self._leading_tag(text)
        return tag.text if tag else "", text[start:]

    def decode(self, ids: Sequence[int]) -> str:
        return self._processor.decode(self._text_ids(ids)).replace(_SPACE_MARK_IN_TEXT, _SPACE_MARK)

    def encoded_pieces(self, text: str, *, tagged: bool = False) -> list[Piece]:
        tag, start = self._leading_tag(text) if tagged else (None, 0)
        mapping = self._processor.encode(_normalized(text[start:]), return_type="offset_mapping")
        pieces = _placed(mapping["pieces"], _original_offsets(mapping["offsets"], text[start:]), text[start:], start)
        return [tag, *pieces] if tag and pieces else pieces

    def decoded_pieces(self, ids: Sequence[int]) -> list[Piece]:
        mapping = self._processor.decode(self._text_ids(ids), return_type="offset_mapping")
        return _placed(mapping["pieces"], mapping["offsets"], mapping["text"])

    def _leading_tag(self, text: str) -> tuple[Piece | None, int]:
        """The tag that the text begins with, and where the text itself begins."""
        match = _TAG.match(text) if self._tags else None
        return (Piece(match[1], *match.span(1)), match.end()) if match and match[1] in self._tags else (None, 0)

    def _text_ids(self, ids: Sequence[int]) -> list[int]:
        return [id_ for id_ in ids if id_ >= len(CONTROL_PIECES) + len(self._tags)]

    def to_bytes(self) -> bytes:
        return self._model

    @classmethod
    def train(
        cls, lines: Iterable[str], kind: Literal["bpe", "unigram"], vocab_size: int, target_tags: Sequence[str] = ()
    ) -> SubwordTokenizer:
        """Learns at most `vocab_size` pieces; fewer where the text doesn't give them. Lines have no tags in front."""
        lines, tags = (
            [_normalized(line).replace(_SKIPPED, " ") for line in lines],
            [language_tag(language) for language in target_tags],
        )
        if len(lines) > MOST_LINES:
            lines = random.Random(1).sample(lines, MOST_LINES)  # sentencepiece's own sample differs from run to run
        try:
            return cls(_train_sentencepiece(lines, kind, vocab_size, tags))
        except RuntimeError as error:
            too_many = re.search(r"Vocabulary size too high .* a value <= (\d+)", str(error))
            if too_many:
                return cls(_train_sentencepiece(lines, kind, int(too_many.group(1)), tags))
            too_few = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
            if too_few or vocab_size <= len(CONTROL_PIECES) + len(tags) + 256:
                needed = too_few.group(1) if too_few else f"more than {len(CONTROL_PIECES) + len(tags) + 256}"
                raise UserError(
                    f"tokenizer.vocab_size={vocab_size} is too small: the characters of the text, the 256 bytes and "
                    f"the control symbols need {needed} pieces already; use more"
                ) from None
            raise UserError(f"sentencepiece can't learn a vocabulary from this text ({_one_line(error)})") from None


class WordTokenizer:
    """Words are what stands between spaces, in NFC; a word that isn't in the vocabulary is <unk>."""

    suffix = ".vocab.json"

    def __init__(self, words: Sequence[str], lowercase: bool = False) -> None:
        self._words = list(words)
        self.lowercase = lowercase
        self.target_tags: list[str] = []
        self.never_generated: list[int] = []
        self._ids = {word: id_ for id_, word in enumerate(self._words, start=len(CONTROL_PIECES))}
        if len(self._ids) != len(self._words):
            raise UserError("a word stands twice in the vocabulary")

    @property
    def vocab_size(self) -> int:
        return len(CONTROL_PIECES) + len(self._words)

    @property
    def kind(self) -> TokenizerKind:
        return "word"

    @property
    def vocabulary(self) -> list[str]:
        return [*CONTROL_PIECES, *self._words]

    def encode(self, text: str, *, tagged: bool = False) -> list[int]:
        return [self._ids.get(word, UNK_ID) for word in split_words(text, self.lowercase)]

    def split_tag(self, text: str) -> tuple[str, str]:
        return "", text

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._words_of(ids))

    def encoded_pieces(self, text: str, *, tagged: bool = False) -> list[Piece]:
        return [
            Piece(word if (word := split_words(match[0], self.lowercase)[0]) in self._ids else "<unk>", *match.span())
            for match in _WORD.finditer(text)
        ]

    def decoded_pieces(self, ids: Sequence[int]) -> list[Piece]:
        words = self._words_of(ids)
        ends = list(accumulate(len(word) + 1 for word in words))
        return [Piece(word, end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]

    def _words_of(self, ids: Sequence[int]) -> list[str]:
        controls = len(CONTROL_PIECES)
        return [
            CONTROL_PIECES[id_] if id_ < controls else self._words[id_ - controls]
            for id_ in ids
            if id_ not in (PAD_ID, BOS_ID, EOS_ID)
        ]

    def to_bytes(self) -> bytes:
        document = {"lowercase": self.lowercase, "words": self._words}
        return json.dumps(document, ensure_ascii=False, indent=0).encode("utf-8")

    @classmethod
    def from_bytes(cls, data: bytes) -> WordTokenizer:
        problem = "not a word vocabulary (JSON with `words` and `lowercase`)"
        try:
            document = json.loads(data.decode("utf-8"))
            words, lowercase = document["words"], document["lowercase"]
            "".join(words).encode("utf-8")  # raises for what is no text, half a surrogate pair included
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
        frequent = sorted(
            (word for word, count in counts.items() if count >= min_frequency), key=lambda word: (-counts[word], word)
        )
        return cls(frequent[: max(0, vocab_size - len(CONTROL_PIECES))], lowercase)


def language_tag(language: str) -> str:
    """`ko` -> `>>ko<<`, which stands in front of a source text."""
    return f">>{language}<<"


def is_tag(piece: str) -> bool:
    """Whether the piece is one that `language_tag` gives."""
    return _TAG.fullmatch(piece) is not None and piece == piece.strip()


def split_words(text: str, lowercase: bool) -> list[str]:
    """Words split at white space, in NFC."""
    return unicodedata.normalize("NFC", text.lower() if lowercase else text).split()


def is_too_long(text: str, max_length: int) -> bool:
    """Whether the text has too many characters for a model of `max_length` pieces, whatever its pieces are. Such a
    text is never tokenised: one without end would take time and memory without end."""
    return len(text) > CHARACTERS_PER_PIECE * max_length


def fingerprint(tokenizer: Tokenizer) -> str:
    """SHA-256 of the tokenizer's file: equal exactly where text becomes the same ids."""
    return hashlib.sha256(tokenizer.to_bytes()).hexdigest()


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


def _normalized(text: str) -> str:
    """What sentencepiece gets: NFKC as Unicode has it, of which its own knows no marks in another order."""
    if is_blank(text):
        return ""
    return unicodedata.normalize("NFKC", text).replace(_SPACE_MARK, _SPACE_MARK_IN_TEXT)


def _original_offsets(offsets: Sequence[tuple[int, int]], text: str) -> Sequence[tuple[int, int]]:
    """Offsets in the normalised text to offsets in the text: of the characters that were normalised together."""
    if unicodedata.is_normalized("NFKC", text):
        return offsets
    starts: list[int] = []  # of each normalised character
    ends: list[int] = []
    for start, end in _normalized_together(text):
        length = len(unicodedata.normalize("NFKC", text[start:end]))
        starts += [start] * length
        ends += [end] * length
    starts.append(len(text))
    return [(starts[start], ends[end - 1] if start < end else starts[start]) for start, end in offsets]


def _normalized_together(text: str) -> Iterator[tuple[int, int]]:
    """The shortest parts of the text whose normal forms make up that of the text."""
    start = 0
    for place in range(1, len(text)):
        if unicodedata.combining(unicodedata.normalize("NFKD", text[place])[0]):
            continue  # a mark
        part, char = text[start:place], text[place]
        apart = unicodedata.normalize("NFKC", part) + unicodedata.normalize("NFKC", char)
        if unicodedata.normalize("NFKC", part + char) == apart:
            yield start, place
            start = place
    if text:
        yield start, len(text)


def _placed(pieces: Sequence[str], offsets: Sequence[tuple[int, int]], text: str, shift: int = 0) -> list[Piece]:
    """Spans without the white space at their ends; each part of one character has the character's whole span."""
    placed: list[Piece] = []
    end_of_character = 0
    for piece, (start, end) in zip(reversed(pieces), reversed(offsets), strict=True):
        if start == end and piece != "▁":
            span = (start, end_of_character)
        else:
            span = (start, end)
            end_of_character = end
        while span[0] < span[1] and text[span[0]].isspace():
            span = (span[0] + 1, span[1])
        while span[0] < span[1] and text[span[1] - 1].isspace():
            span = (span[0], span[1] - 1)
        name = piece.replace(_SPACE_MARK_IN_TEXT, _SPACE_MARK)
        placed.append(Piece(name, span[0] + shift, span[1] + shift))
    return placed[::-1]


def _train_sentencepiece(lines: list[str], kind: str, vocab_size: int, tags: list[str]) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=vocab_size,
        normalization_rule_name="nfkc",
        byte_fallback=True,
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        pad_piece="<pad>",
        unk_piece="<unk>",
        bos_piece="<sos>",
        eos_piece="<eos>",
        control_symbols=tags,
        max_sentence_length=1 << 24,
        minloglevel=2,
    )
    return model.getvalue()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
