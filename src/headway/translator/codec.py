"""Between text and ids, for one model: which ids a text has, and whether the model can read it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headway.decoding import Phrase
from headway.errors import UserError
from headway.storage.model_info import ModelInfo
from headway.storage.untrusted import clipped
from headway.text.characters import is_blank, is_too_long, is_unicode
from headway.text.subwords import Tokenizer
from headway.text.tokenizer import UNK_ID, Piece, language_tag
from headway.translator.glossary import begins_anywhere, follows_freely, goes_on

Side = Literal["source", "target"]

_LINE_BREAKS = str.maketrans("\n\r", "  ")
"""Byte pieces can spell a line break; one text is one line."""
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_NO_WORD = "\ue000"
"""A character that no vocabulary joins with others."""


def languages_of(info: ModelInfo, tag: str) -> tuple[str, str]:
    """The languages of a source with this tag, or with none, and of its translation."""
    source, _, target = tag.strip("<>").rpartition(":")
    return source or info.source_language, target or info.target_language


@dataclass(frozen=True)
class Codec:
    """The tokenizers of a model, and the most places that it has for a text."""

    stored: ModelInfo
    max_length: int
    """Maximum length of the model, or the least of an ensemble's."""

    @property
    def longest_source(self) -> int:
        """The maximum number of tokens in a text."""
        return self.max_length - 1  # <eos> takes a place

    def is_readable(self, text: str, most: int | None = None, *, side: Side = "source") -> bool:
        """Whether the model can read the text as a whole, and it has at most so many tokens on this side."""
        ids = self.source(text) if side == "source" else self.target(text)
        return ids is not None and len(ids) <= min(self.longest_source, most or self.longest_source)

    def sources(self, texts: Sequence[str]) -> list[list[int] | None]:
        """The ids of each source, without <eos>; None for one that is so long that it isn't tokenised. Raises UserError
        for a text that doesn't say into which language."""
        ids = [self.source(text) for text in texts]
        for number, text in enumerate(texts, start=1):
            if self.lacks_tag(text):
                several = "this model has several target languages"
                raise UserError(f"text {number}: {several}, begin each text with one of {self.known_tags}")
        return ids

    def opening(self, source: str) -> list[int]:
        """The ids that translations of this source begin with, before a prefix: the token of their language, if this
        model has such tokens. They are given, so their log-probability is 0."""
        return self.stored.source_tokenizer.opening(source)

    def translation(self, source: str, text: str) -> list[int] | None:
        """The ids of a text as the translation of a source, without <eos>; None for one that is so long that it isn't
        tokenised."""
        ids = self.target(text)
        return None if ids is None else [*(self.opening(source) if ids else ()), *ids]

    def translation_pieces(self, source: str, text: str) -> list[Piece]:
        """The tokens of `translation(source, text)`, with their characters in the text."""
        tokenizer = self.stored.target_tokenizer
        pieces = tokenizer.encoded_pieces(text)
        return [*tokenizer.decoded_pieces(self.opening(source)), *pieces] if pieces else pieces

    def lacks_tag(self, text: str) -> bool:
        """Whether a source lacks the tag of one of the model's target languages."""
        tokenizer = self.stored.source_tokenizer
        return bool(tokenizer.target_tags) and not is_blank(text) and not tokenizer.split_tag(text)[0]

    @property
    def known_tags(self) -> str:
        """The tags of the model's target languages, for a message."""
        languages = self.stored.source_tokenizer.target_tags
        if not self.stored.source_tokenizer.many_sources:
            return " ".join(map(language_tag, languages))
        return f"{language_tag('FROM:TO')}, such as {self.stored.example_tag}, with two of {len(languages)} languages"

    def source(self, text: str) -> list[int] | None:
        """Ids of one source, with a tag or without."""
        return self._ids(self.stored.source_tokenizer, text, tagged=True)

    def target(self, text: str) -> list[int] | None:
        """The ids of a target, without <eos>; None for one that is so long that it isn't tokenised."""
        return self._ids(self.stored.target_tokenizer, text)

    def prefixes(self, prefix: str | Sequence[str], count: int, max_length: int | None) -> list[list[int]]:
        """The ids that each of so many translations begins with. Raises UserError."""
        texts = [prefix] * count if isinstance(prefix, str) else list(prefix)
        if len(texts) != count:
            raise UserError(f"{len(texts)} prefixes for {count} texts: give one for each, or one for all")
        room = min(self.max_length - 1, max_length or self.max_length)
        known: dict[str, list[int]] = {}
        for text in set(texts):
            ids = self.target(text)
            if ids is None or len(ids) >= max(1, room):
                size = f"{len(text):,} characters" if ids is None else f"{len(ids)} tokens"
                raise UserError(f"a prefix of {size} leaves no room: a translation has at most {room} tokens")
            if UNK_ID in ids:
                pieces = zip(ids, self.stored.target_tokenizer.encoded_pieces(text), strict=True)
                unknown = dict.fromkeys(repr(text[one.start : one.end]) for id_, one in pieces if id_ == UNK_ID)
                shown = f"a prefix has {clipped(', '.join(unknown))}"
                raise UserError(f"{shown}, which the model's vocabulary can't write; choose another prefix")
            known[text] = ids
        return [known[text] for text in texts]

    def length_cap(self, source_length: int, prefix_length: int, max_length: int | None) -> int:
        """The maximum number of tokens in a translation. max_length: as of `SearchOptions`."""
        cap = max_length if max_length is not None else max(2 * source_length, prefix_length) + 50
        least = 1 + self.stored.target_tokenizer.many_sources  # the token of a language alone is no translation
        return min(max(cap, least), self.max_length - 1)  # <bos> takes a place

    def phrase(self, text: str, *, inside: bool = False, closed: bool = False, capital: bool = False) -> Phrase | None:
        """The ids that give exactly this text in a translation; None where there are none. inside: as it is written
        after another character, without a space. closed: no word may go on with it, whatever it ends in. capital: where
        it is all in small letters, it may also begin a translation with a capital."""
        tokenizer = self.stored.target_tokenizer
        before = _NO_WORD if inside or begins_anywhere(text) else ""
        start = tokenizer.encode(before)
        ids = tokenizer.encode(before + text)
        if ids[: len(start)] != start or tokenizer.decode(ids) != before + text or UNK_ID in ids:
            return None
        initial = self.phrase(text[0].upper() + text[1:]) if capital and text.islower() and text[0].islower() else None
        ends_word = closed or (text[-1].isalnum() and not follows_freely(text))
        return Phrase(tuple(ids[len(start) :]), ends_word, () if initial is None else initial.ids)

    @cached_property
    def word_parts(self) -> NDArray[np.bool_]:
        """Whether each target token continues the word before it. (target vocabulary,)"""
        tokenizer = self.stored.target_tokenizer
        parts = [tokenizer.kind != "word" and _is_word_part(piece) for piece in tokenizer.vocabulary]
        return np.array(parts[: tokenizer.vocab_size])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a translation, as one line."""
        return self.stored.target_tokenizer.decode(ids).translate(_LINE_BREAKS)

    def _ids(self, tokenizer: Tokenizer, text: str, *, tagged: bool = False) -> list[int] | None:
        if not is_unicode(text):  # no file could hold it
            raise UserError(f"{text!r}: holds half of a surrogate pair, or bytes that are not UTF-8")
        return None if is_too_long(text, self.max_length) else tokenizer.encode(text, tagged=tagged)


def _is_word_part(piece: str) -> bool:
    """Whether a subword may go on with a word; one byte of a character may, a Korean particle begins anew."""
    byte = _BYTE.fullmatch(piece)
    if byte and int(byte[1], 16) >= 0x80:
        return True
    first = chr(int(byte[1], 16)) if byte else piece[0]
    return goes_on(first)
