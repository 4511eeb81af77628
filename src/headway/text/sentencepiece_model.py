"""Reads the bytes of a sentencepiece model, checks those of strangers, and makes the same model with other ids.

sentencepiece itself refuses models that would make it read outside its memory. It allows rules of normalisation that
replace a character by a megabyte or by bytes that aren't text; these are refused here.

Rules of normalisation are stored as the size of a trie, the trie, and the texts that its leaves point to, each ended by
a zero. The trie is a double array as Darts-clone makes it (https://github.com/s-yata/darts-clone): each unit of 32 bits
has the label by which it is reached and the offset of its children. Exclusive or of place, offset and label is the
place of a child. Keys may share their ends.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from headway.errors import UserError

LONGEST_REPLACEMENT = 256
"""Maximum bytes that a rule of normalisation may give; NFKC needs 33."""
MOST_BEGINNINGS = 2**21
"""Maximum for all keys together; NFKC has 263,000. A damaged trie may have no end."""
LONGEST_KEY = 256
"""Maximum bytes that a rule may replace; NFKC needs 12."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Kinds of protobuf fields."""
_PIECES, _TRAINER, _NORMALIZERS = (1, _BYTES), (2, _BYTES), ((3, _BYTES), (5, _BYTES))
"""Fields of a model: pieces, trainer_spec, and normalizer_spec with denormalizer_spec."""
_CHARSMAP = (2, _BYTES)
"""The field precompiled_charsmap of both normalizers."""
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces."""
_UNIGRAM, _BPE = 1, 2
"""Types of models."""
_LEAF = 1 << 31
"""Set in a unit that points to a text; the other bits are the place of the text."""
_HAS_LEAF, _WIDE_OFFSET = 1 << 8, 1 << 9


@dataclass(frozen=True)
class SentencePieceModel:
    """The content of a model, in the words of its format.
    https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto"""

    kind: Literal["bpe", "unigram"]
    pieces: list[str]
    """By id."""
    scores: list[float]
    """By id, with the fewest digits that give the same number of 32 bits."""
    control: list[int]
    """Ids of pieces that are never found in text and decode to nothing."""
    user_defined: list[int]
    """Ids of pieces that are found before all others and that no rule changes."""
    unused: list[int]
    """Ids of pieces that are never found in text and decode to themselves."""
    byte: list[int]
    """Ids of the 256 pieces for characters without a piece, by the byte; empty without byte fallback."""
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    escape_whitespaces: bool
    treat_whitespace_as_suffix: bool
    charsmap: bytes
    """The rules of normalisation, as `normalization_rules` reads them."""


def read_model(model: bytes) -> SentencePieceModel:
    """Reads a model that sentencepiece has loaded. Raises UserError for one that splits text otherwise than BPE and
    unigram do, or that rewrites decoded text."""
    fields = list(_fields(model))
    pieces = [dict(_fields(message)) for field, message in fields if field == _PIECES]
    trainer, normalizer, denormalizer = (
        dict(_fields(b"".join(message for field, message in fields if field == spec)))
        for spec in (_TRAINER, *_NORMALIZERS)
    )
    model_type = trainer.get((3, _VARINT), _UNIGRAM)
    if model_type not in (_UNIGRAM, _BPE):
        raise UserError("its sentencepiece model is neither BPE nor unigram")
    if denormalizer.get(_CHARSMAP):
        raise UserError("its sentencepiece model rewrites decoded text (denormalizer_spec)")
    names = [piece[1, _BYTES].decode() for piece in pieces]
    ids: dict[int, list[int]] = defaultdict(list)
    for id_, piece in enumerate(pieces):
        ids[piece.get((3, _VARINT), _NORMAL)].append(id_)
    return SentencePieceModel(
        kind="bpe" if model_type == _BPE else "unigram",
        pieces=names,
        scores=[float(str(np.float32(struct.unpack("<f", piece.get((2, _FIXED32), bytes(4)))[0]))) for piece in pieces],
        control=ids[_CONTROL],
        user_defined=ids[_USER_DEFINED],
        unused=ids[_UNUSED],
        byte=sorted(ids[_BYTE], key=names.__getitem__),
        add_dummy_prefix=bool(normalizer.get((3, _VARINT), 1)),
        remove_extra_whitespaces=bool(normalizer.get((4, _VARINT), 1)),
        escape_whitespaces=bool(normalizer.get((5, _VARINT), 1)),
        treat_whitespace_as_suffix=bool(trainer.get((24, _VARINT), 0)),
        charsmap=normalizer.get(_CHARSMAP, b""),
    )


@lru_cache(1)
def normalization_rules(charsmap: bytes) -> dict[str, str]:
    """The strings that `precompiled_charsmap` of a loaded model replaces, the longest first where several begin, and
    their texts. Raises UserError."""
    if not charsmap:
        return {}
    trie, texts = _trie_and_texts(charsmap)
    units: list[int] = trie.tolist()
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    """For exclusive or of a unit's place and offset, the labels and places of its children."""
    for place, unit in enumerate(units):
        if not unit & _LEAF and (label := unit & 0xFF):
            children[place ^ label].append((label, place))
    rules = {}
    beginnings, count = [(b"", 0)], 0  # of keys, and the places where they end
    while beginnings:
        key, place = beginnings.pop()
        count += 1
        if len(key) > LONGEST_KEY or count > MOST_BEGINNINGS:
            raise UserError("its rules of normalisation have no end")
        unit = units[place]
        base = place ^ (unit >> 10 << (8 if unit & _WIDE_OFFSET else 0))
        if unit & _HAS_LEAF:
            start = units[base] & ~_LEAF
            rules[key] = texts[start : texts.index(0, start)]
        beginnings += [(key + bytes([label]), child) for label, child in children.get(base, ())]
    try:
        return {key.decode(): text.decode() for key, text in rules.items()}
    except UnicodeDecodeError:
        raise UserError("a rule of normalisation is not UTF-8") from None


def text_pieces(model: bytes) -> list[str]:
    """The pieces that the model finds in text, by id: neither control symbols nor <unk>. Raises UserError."""
    processor = load_processor(model)
    others = processor.is_control, processor.is_unknown, processor.is_unused
    ids = range(processor.get_piece_size())
    return [processor.id_to_piece(id_) for id_ in ids if not any(is_other(id_) for is_other in others)]


def renumbered(model: bytes, controls: Sequence[str], vocabulary: Sequence[str]) -> bytes:
    """A model that splits text into the same pieces, with other ids: `controls`, of which <unk> is the unknown piece,
    then `vocabulary`, which has every piece that the model finds in text. Its other entries are never found in text and
    decode to themselves. Raises UserError."""
    text, processor = set(text_pieces(model)), load_processor(model)
    messages = [message for field, message in _fields(model) if field == _PIECES]
    ids = list(range(len(messages)))
    known, scores = dict(zip(processor.id_to_piece(ids), messages, strict=True)), processor.get_score(ids)
    if all(score.is_integer() for score in scores) and not known.keys() >= set(vocabulary):
        raise UserError("its tokens are joined in pairs (BPE), and the vocabulary has tokens that it lacks")
    pieces = [_piece(name, 0.0, _UNKNOWN if name == "<unk>" else _CONTROL) for name in controls]
    pieces += [known[name] if name in text else _piece(name, min(scores), _UNUSED) for name in vocabulary]
    return _with_pieces(model, pieces)


def enlarged(model: bytes, tags: Sequence[str], text_begins: int, pieces: Sequence[tuple[str, float | None]]) -> bytes:
    """A model with more pieces: tags, which are control symbols, before the id `text_begins`, and at the end pieces
    with their scores; it never finds those without a score in text. Raises UserError."""
    messages = [message for field, message in _fields(model) if field == _PIECES]
    lowest = min(load_processor(model).get_score(list(range(len(messages)))))
    for name, score in pieces:
        messages.append(_piece(name, lowest, _UNUSED) if score is None else _piece(name, score, _NORMAL))
    messages[text_begins:text_begins] = [_piece(tag, 0.0, _CONTROL) for tag in tags]
    return _with_pieces(model, messages)


def shortened(model: bytes, ids: Iterable[int]) -> bytes:
    """A model with these pieces alone, in this order. Raises UserError."""
    messages = [message for field, message in _fields(model) if field == _PIECES]
    return _with_pieces(model, [messages[id_] for id_ in ids])


def load_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """sentencepiece with the model, which may come from a stranger. Raises UserError."""
    if not model:
        raise UserError("not a sentencepiece model (it is empty)")
    for normalizer in (message for field, message in _fields(model) if field in _NORMALIZERS):
        for rules in (message for field, message in _fields(normalizer) if field == _CHARSMAP and message):
            _check_rules(rules)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        processor.id_to_piece(list(range(processor.get_piece_size())))  # raises unless all are UTF-8
    except (RuntimeError, ValueError, OSError) as error:
        raise UserError(f"not a sentencepiece model ({' '.join(str(error).split())})") from None
    return processor


def _with_pieces(model: bytes, pieces: Iterable[bytes]) -> bytes:
    """The model with other pieces."""
    others = [_field(field[0], message) for field, message in _fields(model) if field in (_TRAINER, *_NORMALIZERS)]
    return b"".join([*(_field(_PIECES[0], piece) for piece in pieces), *others])


def _piece(name: str, score: float, kind: int) -> bytes:
    return _field(1, name.encode()) + struct.pack("<BfBB", 2 << 3 | _FIXED32, score, 3 << 3 | _VARINT, kind)


def _field(number: int, message: bytes) -> bytes:
    """The bytes of a protobuf field that has bytes."""
    size, length = bytearray(), len(message)
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | _BYTES, *size, length]) + message


def _check_rules(charsmap: bytes) -> None:
    """Raises UserError unless every rule gives a short text."""
    trie, texts = _trie_and_texts(charsmap)
    begins = np.concatenate([[0], 1 + np.flatnonzero(np.frombuffer(texts, np.uint8) == 0)])
    leaves = trie[trie >= _LEAF] & ~np.uint32(_LEAF)
    if not np.isin(leaves, begins[:-1]).all():
        raise UserError("its rules of normalisation point to where no text begins")
    if max(np.diff(begins), default=0) > LONGEST_REPLACEMENT + 1:
        raise UserError(f"a rule of normalisation gives more than {LONGEST_REPLACEMENT} bytes")
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError("a rule of normalisation gives bytes that are not UTF-8") from None


def _trie_and_texts(charsmap: bytes) -> tuple[NDArray[np.uint32], bytes]:
    """Raises UserError for a size that can't be."""
    size = int.from_bytes(charsmap[:4], "little")
    if size % 4 or size > len(charsmap) - 4:
        raise UserError("its rules of normalisation are damaged")
    return np.frombuffer(charsmap, "<u4", size // 4, 4), charsmap[4 + size :]


def _fields(message: bytes) -> Iterator[tuple[tuple[int, int], Any]]:
    """The fields of a protobuf message: the number and kind of each, and the number or bytes that it has.
    https://protobuf.dev/programming-guides/encoding/"""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, kind = tag >> 3, tag & 7
        if tag >> 32:
            raise UserError("not a sentencepiece model (a field's number is too large)")
        if kind == _VARINT:
            value, place = _varint(message, place)
        elif kind in (_BYTES, _FIXED64, _FIXED32):
            size, start = _varint(message, place) if kind == _BYTES else (8 if kind == _FIXED64 else 4, place)
            place = start + size
            value = message[start:place]
        else:
            raise UserError("not a sentencepiece model (a field of an unknown kind)")
        if place > len(message):
            raise UserError("not a sentencepiece model (it ends too early)")
        yield (number, kind), value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """The number that begins there, and the place after it."""
    value = 0
    for index, byte in enumerate(message[place : place + 10]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, place + index + 1
    raise UserError("not a sentencepiece model (a number has no end)")
