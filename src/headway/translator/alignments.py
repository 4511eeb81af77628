"""Alignments as people exchange them: links between the words or the pieces of a source and its translation.

A link (i, j) joins number i of the source with number j of the translation, both from 0. Pharaoh's format writes the
links of a pair as `0-0 1-2`, and is what fast_align, Marian, Moses and AER scripts read.
"""

import unicodedata
from collections.abc import Sequence

from headway.text.tokenizer import Piece
from headway.text.words import word_spans

Links = list[tuple[int, int]]


def piece_links(alignment: Sequence[int | None]) -> Links:
    """alignment: for each piece of the translation the piece of the source, or None."""
    return sorted((source, target) for target, source in enumerate(alignment) if source is not None)


def word_links(
    source: str,
    source_pieces: Sequence[Piece],
    target: str,
    target_pieces: Sequence[Piece],
    alignment: Sequence[int | None],
) -> Links:
    """Two words are linked where any of their pieces are. Words are what stands between white space. The punctuation of
    a target word with letters or digits says nothing of the word. source: with spaces in place of its tag, which is no
    word."""
    source_words = _words_of(source, source_pieces)
    target_words = _without_punctuation(target, target_pieces, _words_of(target, target_pieces))
    return sorted(
        {(one, other) for i, j in piece_links(alignment) for one in source_words[i] for other in target_words[j]}
    )


def character_links(
    source_pieces: Sequence[Piece], target_pieces: Sequence[Piece], alignment: Sequence[int | None]
) -> list[tuple[int, int, int, int]]:
    """Start and end of each piece that is aligned, and of the piece of the source that it is aligned with."""
    pairs = [(target_pieces[target], source_pieces[source]) for source, target in piece_links(alignment)]
    return [(target.start, target.end, source.start, source.end) for target, source in pairs]


def to_pharaoh(links: Links) -> str:
    """`[(0, 0), (1, 2)]` -> `0-0 1-2`"""
    return " ".join(f"{source}-{target}" for source, target in links)


def _words_of(text: str, pieces: Sequence[Piece]) -> list[list[int]]:
    """The words that each piece has characters of: one, but for pieces that hold a space, and for blank ones."""
    words = word_spans(text)
    return [
        [number for number, (start, end) in enumerate(words) if start < piece.end and piece.start < end]
        for piece in pieces
    ]


def _without_punctuation(text: str, pieces: Sequence[Piece], words: Sequence[list[int]]) -> list[list[int]]:
    """The words of each piece; none for punctuation, unless the word is nothing else."""
    spoken = {number for number, (start, end) in enumerate(word_spans(text)) if not _is_punctuation(text[start:end])}
    return [
        [number for number in some if number not in spoken] if _is_punctuation(text[piece.start : piece.end]) else some
        for piece, some in zip(pieces, words, strict=True)
    ]


def _is_punctuation(text: str) -> bool:
    """Whether a text without white space is punctuation and symbols alone."""
    return all(unicodedata.category(character)[0] in "PS" for character in text if not character.isspace())
