"""Subwords by sentencepiece, and tokenizers of both kinds from their files.

Python normalises the text first, because sentencepiece's own tables don't put marks in their order.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, takewhile
from pathlib import Path
from typing import Literal, TypeAlias

import sentencepiece

from headway.errors import UserError
from headway.text.characters import DROPPED, is_blank, visible, visible_spans
from headway.text.sentencepiece_model import load_processor
from headway.text.tokenizer import (
    BOS_ID,
    CONTROL_PIECES,
    EOS_ID,
    LANGUAGE_TOKEN,
    LEADING_TAG,
    PAD_ID,
    UNK_ID,
    Piece,
    TokenizerKind,
    language_tag,
)
from headway.text.words import WordTokenizer

_SKIPPED = "\u2585"
"""sentencepiece silently learns nothing from a line with this character in it."""
_SPACE_MARK, _SPACE_MARK_IN_TEXT = "▁", "\ufdd0"
"""sentencepiece takes U+2581 for a space. Where a text has it as a character, a code point that never is one stands."""


class SubwordTokenizer:
    """A sentencepiece model: NFKC, byte fallback (nothing is unknown), `▁` at the start of words. White space in a row
    is one space, and none begins or ends a text; invisible characters are dropped (`text.characters`). Any other
    character comes back.

    Tags of target languages are control pieces: a tag is one only at the beginning of a text, elsewhere it is text. So
    are the tokens of languages, of which a source begins with its own and a translation with another.
    """

    suffix = ".spm"
    """Suffix of the file that a tokenizer of this kind is saved in."""

    def __init__(self, model: bytes) -> None:
        """`model`: the bytes of its file, which may come from a stranger. Raises UserError."""
        self._model, self._processor = model, load_processor(model)
        self.vocab_size: int = self._processor.get_piece_size()
        if self.vocab_size < len(CONTROL_PIECES):
            raise UserError("not a sentencepiece model (lacks the control symbols)")
        for id_, piece in enumerate(CONTROL_PIECES):
            if not (self._processor.is_unknown(id_) if id_ == UNK_ID else self._processor.is_control(id_)):
                raise UserError(f"not a sentencepiece model (id {id_} is not a control symbol, as {piece} must be)")
        scores = self._processor.get_score(list(range(self.vocab_size)))
        if not all(map(math.isfinite, scores)):
            raise UserError("not a sentencepiece model (a score is not finite)")
        # BPE scores its tokens by their rank, unigram by log-probability.
        self.kind: TokenizerKind = "bpe" if all(map(float.is_integer, scores)) else "unigram"
        control_ids = takewhile(self._processor.is_control, range(len(CONTROL_PIECES), self.vocab_size))
        controls = {self._processor.id_to_piece(id_): id_ for id_ in control_ids}
        self.text_begins = len(CONTROL_PIECES) + len(controls)
        """The lowest id of a piece of text."""
        self._languages = {
            found[1]: id_ for piece, id_ in controls.items() if (found := LANGUAGE_TOKEN.fullmatch(piece))
        }
        self._tags = {} if self._languages else controls
        self.many_sources = bool(self._languages)
        """Whether each of the `target_tags` may be the source's language, too. A tag then names both: `>>en:ko<<`."""
        self.target_tags = list(self._languages) or [tag.removeprefix(">>").removesuffix("<<") for tag in self._tags]
        """Languages that a tag such as `>>ko<<` in front of a text can choose; empty if the model has only one."""
        self.never_generated = [UNK_ID, *controls.values()]
        """Ids that must not occur in a translation."""
        self._spaces = str.maketrans(dict.fromkeys(_read_as_spaces(self._processor) if self._languages else "", " "))

    @property
    def vocabulary(self) -> list[str]:
        """All tokens, by id."""
        return self._processor.id_to_piece(list(range(self.vocab_size)))

    def encode(self, text: str, *, tagged: bool = False) -> list[int]:
        """The ids of the text, without control symbols; empty for a blank text. `tagged`: the text is a source, which
        may begin with the tag of a target language."""
        tag, start = self._leading_tag(text, tagged)
        ids = self._processor.encode(self._normalized(text[start:]))
        return [self._tag_ids(tag.text)[0], *ids] if tag and ids else ids

    def encode_all(self, texts: list[str], *, tagged: bool = False) -> list[list[int]]:
        """`encode` for each text; faster for many texts."""
        if tagged and self.target_tags:
            return [self.encode(text, tagged=True) for text in texts]
        return self._processor.encode([self._normalized(text) for text in texts], num_threads=1)

    def split_tag(self, text: str) -> tuple[str, str]:
        """The tag at the beginning of a source, empty if there is none, and the rest of the text."""
        tag, start = self._leading_tag(text)
        return tag.text if tag else "", text[start:]

    def opening(self, text: str) -> list[int]:
        """The ids that a translation of this source begins with: with `many_sources` the token of its language."""
        tag, _ = self._leading_tag(text)
        return self._tag_ids(tag.text)[1:] if tag else []

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the ids, without control ids."""
        return self._processor.decode(self._text_ids(ids)).replace(_SPACE_MARK_IN_TEXT, _SPACE_MARK)

    def encoded_pieces(self, text: str, *, tagged: bool = False) -> list[Piece]:
        """The tokens of `encode(text, tagged=tagged)`, with their characters in the text."""
        tag, start = self._leading_tag(text, tagged)
        body = text[start:].translate(self._spaces)
        mapping = self._processor.encode(_normalized(body), return_type="offset_mapping")
        pieces = _placed(mapping["pieces"], _original_offsets(mapping["offsets"], body), body, start)
        return [tag, *pieces] if tag and pieces else pieces

    def decoded_pieces(self, ids: Sequence[int]) -> list[Piece]:
        """The tokens of the ids, without control ids, with their characters in `decode(ids)`."""
        mapping = self._processor.decode(self._text_ids(ids), return_type="offset_mapping")
        languages = [self._processor.id_to_piece(id_) for id_ in ids if id_ in self._languages.values()]
        opening = [Piece(piece, 0, 0) for piece in languages]
        return opening + _placed(mapping["pieces"], mapping["offsets"], mapping["text"])

    def symbols(self, text: str) -> list[str]:
        """The tokens of the text, with characters in place of bytes and unknown tokens."""
        found: list[str] = []
        pieces = self._processor.encode(self._normalized(text), out_type=str)
        for is_byte, run in groupby(pieces, self._bytes.__contains__):
            if is_byte:
                found += bytes(self._bytes[piece] for piece in run).decode()
            else:
                for piece in run:
                    found += piece if self._processor[piece] == UNK_ID else [piece]
        return found

    def _normalized(self, text: str) -> str:
        return _normalized(text.translate(self._spaces) if self._spaces else text)

    @cached_property
    def _bytes(self) -> dict[str, int]:
        """The bytes of the pieces for characters without a piece."""
        names = {f"<0x{byte:02X}>": byte for byte in range(256)}
        return {name: byte for name, byte in names.items() if self._processor.is_byte(self._processor[name])}

    def _leading_tag(self, text: str, tagged: bool = True) -> tuple[Piece | None, int]:
        """The tag that the text begins with, and the place where the text itself begins."""
        match = LEADING_TAG.match(text) if tagged and self.target_tags else None
        return (Piece(match[1], *match.span(1)), match.end()) if match and self._tag_ids(match[1]) else (None, 0)

    def _tag_ids(self, tag: str) -> list[int]:
        """The token that a source with this tag begins with, then that of its translation if it has one; none for what
        isn't a tag of the model's."""
        if not self._languages:
            return [self._tags[tag]] if tag in self._tags else []
        found = [self._languages.get(language) for language in tag[2:-2].split(":")]
        return [id_ for id_ in found if id_ is not None] if len(found) == 2 and None not in found else []

    def _text_ids(self, ids: Sequence[int]) -> list[int]:
        return [id_ for id_ in ids if id_ >= self.text_begins]

    def to_bytes(self) -> bytes:
        return self._model

    @classmethod
    def train(
        cls, lines: Iterable[str], kind: Literal["bpe", "unigram"], vocab_size: int, target_tags: Sequence[str] = ()
    ) -> SubwordTokenizer:
        """Learns at most `vocab_size` tokens, fewer if the text doesn't have as many. Lines have no tags in front."""
        lines = [_normalized(line).replace(_SKIPPED, " ") for line in lines]
        tags = [language_tag(language) for language in target_tags]
        try:
            return cls(_train_sentencepiece(lines, kind, vocab_size, tags))
        except RuntimeError as error:
            problem = " ".join(str(error).split())
        if too_many := re.search(r"Vocabulary size too high .* a value <= (\d+)", problem):
            return cls(_train_sentencepiece(lines, kind, int(too_many[1]), tags))
        too_few = re.search(r"smaller than required_chars\. \d+ vs (\d+)", problem)
        fixed = len(CONTROL_PIECES) + len(tags) + 256
        if too_few or vocab_size <= fixed:
            needed = too_few[1] if too_few else f"more than {fixed}"
            raise UserError(
                f"tokenizer.vocab_size={vocab_size} is too small: the characters of the text, the 256 bytes and "
                f"the control symbols need {needed} tokens already; use more"
            )
        raise UserError(f"sentencepiece can't learn a vocabulary from this text ({problem})")


Tokenizer: TypeAlias = SubwordTokenizer | WordTokenizer


def fingerprint(tokenizer: Tokenizer) -> str:
    """SHA-256 of the tokenizer's file: equal exactly if text becomes the same ids."""
    return hashlib.sha256(tokenizer.to_bytes()).hexdigest()


def parse_tokenizer(data: bytes, path: Path) -> Tokenizer:
    """A tokenizer from the bytes of a file, perhaps a stranger's, whose suffix is its kind. Raises UserError."""
    try:
        return SubwordTokenizer(data) if path.name.endswith(SubwordTokenizer.suffix) else WordTokenizer.from_bytes(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _normalized(text: str) -> str:
    """The visible text in NFKC for sentencepiece, whose own NFKC doesn't put marks in their order."""
    if is_blank(text):
        return ""
    return unicodedata.normalize("NFKC", visible(text)).replace(_SPACE_MARK, _SPACE_MARK_IN_TEXT)


def _read_as_spaces(processor: sentencepiece.SentencePieceProcessor) -> list[str]:
    """The invisible characters that the model's own rules replace by a space. Models with languages on both sides were
    trained so: in Khmer and Thai U+200B stands between words."""
    dropped = re.findall(f"[{DROPPED}]", "".join(map(chr, range(1, 0xFFFF))))
    return [char for char in dropped if processor.normalize(f"a{char}b").replace("▁", " ").endswith("a b")]


def _original_offsets(offsets: Sequence[tuple[int, int]], text: str) -> Sequence[tuple[int, int]]:
    """Offsets in the normalised text to offsets in the text, of all characters that were normalised together."""
    shown = visible(text)
    is_normal = unicodedata.is_normalized("NFKC", shown)
    if is_normal and shown == text:
        return offsets
    spans = visible_spans(text)
    if not is_normal:
        spans = [
            (spans[start][0], spans[end - 1][1])
            for start, end in _normalized_together(shown)
            for _ in unicodedata.normalize("NFKC", shown[start:end])
        ]
    starts = [*(start for start, _ in spans), len(text)]
    return [(starts[start], spans[end - 1][1] if start < end else starts[start]) for start, end in offsets]


def _normalized_together(text: str) -> Iterator[tuple[int, int]]:
    """The shortest parts of the text whose normal forms together are that of the text."""
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
        if start < end or piece == "▁":
            end_of_character = end
        first, last = start, end_of_character
        while first < last and text[first].isspace():
            first += 1
        while first < last and text[last - 1].isspace():
            last -= 1
        placed.append(Piece(piece.replace(_SPACE_MARK_IN_TEXT, _SPACE_MARK), first + shift, last + shift))
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
