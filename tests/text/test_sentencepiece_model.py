"""A sentencepiece model is read as its format says, and with other ids splits text as it did before."""

import io
import random
import struct

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from headway.errors import UserError
from headway.text.sentencepiece_model import read_model, renumbered, text_pieces

CONTROLS = ["<pad>", "<unk>", "<sos>", "<eos>", ">>de<<"]
TEXTS = ["the cat sat on a mat", "tea  at the\tstation", "a zebra", "", "catcatcat", "the Ω"]


def train(kind: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "tea at the station"] * 9),
        model_writer=model,
        model_type=kind,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


@pytest.mark.parametrize(("kind", "strangers"), [("unigram", ["▁sta", "Ω", "<s>"]), ("bpe", [])])
def test_text_has_the_same_pieces(kind, strangers):
    model = train(kind)
    vocabulary = [*text_pieces(model), *strangers]
    random.Random(1).shuffle(vocabulary)
    before = sentencepiece.SentencePieceProcessor(model_proto=model)
    after = sentencepiece.SentencePieceProcessor(model_proto=renumbered(model, CONTROLS, vocabulary))
    assert [after.id_to_piece(id_) for id_ in range(after.get_piece_size())] == [*CONTROLS, *vocabulary]
    for text in TEXTS:
        pieces = before.encode(text, out_type=str)
        assert after.encode(text, out_type=str) == pieces
        known = {piece: id_ for id_, piece in enumerate(vocabulary, start=len(CONTROLS))}
        assert after.encode(text) == [1 if piece in strangers else known.get(piece, 1) for piece in pieces]
    for piece in strangers:
        assert after.decode([after.piece_to_id(piece)]) == piece.replace("▁", "")


def test_pairs_and_strangers_do_not_go_together():
    with pytest.raises(UserError, match="BPE"):
        renumbered(train("bpe"), CONTROLS, [*text_pieces(train("bpe")), "▁sta"])


@pytest.mark.parametrize("data", [b"", b"abc", b"\x0a\x03abc", b"\x0a\xff\xff"])
def test_what_is_no_model_is_refused(data):
    with pytest.raises(UserError, match="not a sentencepiece model"):
        text_pieces(data)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("chosen", [True, False])
def test_what_a_model_says(kind, chosen):
    """As the format's own generated code reads it."""
    model = sentencepiece_model_pb2.ModelProto.FromString(train(kind))
    for spec, names in (
        (model.normalizer_spec, ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")),
        (model.trainer_spec, ("treat_whitespace_as_suffix",)),
    ):
        for name in names:
            setattr(spec, name, chosen)
    for piece, type_ in zip(reversed(model.pieces), (3, 4, 5, 6, 6), strict=False):
        piece.type = type_
    model.pieces[-4].piece, model.pieces[-5].piece = "<0x41>", "<0x0A>"
    model.pieces[5].score = -1.2345678
    read = read_model(model.SerializeToString())
    assert (read.kind, read.pieces) == (kind, [piece.piece for piece in model.pieces])
    assert [struct.pack("<f", score) for score in read.scores] == [struct.pack("<f", p.score) for p in model.pieces]
    assert read.scores[5] == -1.2345678
    last = len(model.pieces) - 1
    assert (read.control, read.user_defined, read.unused) == ([1, 2, last], [last - 1], [last - 2])
    assert read.byte == [last - 4, last - 3]
    flags = (read.add_dummy_prefix, read.remove_extra_whitespaces, read.escape_whitespaces)
    assert (*flags, read.treat_whitespace_as_suffix) == (chosen,) * 4


@pytest.mark.parametrize(("size", "fault"), [(256, None), (257, "gives more than 256 bytes")])
def test_a_rule_may_give_256_bytes(size, fault):
    model = sentencepiece_model_pb2.ModelProto.FromString(train("bpe"))
    model.normalizer_spec.precompiled_charsmap += b"a" * size + b"\0"
    if fault is None:
        assert text_pieces(model.SerializeToString()) == text_pieces(train("bpe"))
    else:
        with pytest.raises(UserError, match=fault):
            text_pieces(model.SerializeToString())


def test_what_a_model_leaves_out():
    model = sentencepiece_model_pb2.ModelProto()
    model.pieces.add(piece="a")
    read = read_model(model.SerializeToString())
    assert (read.kind, read.pieces, read.scores, read.control, read.byte) == ("unigram", ["a"], [0.0], [], [])
    assert (read.add_dummy_prefix, read.remove_extra_whitespaces, read.escape_whitespaces) == (True, True, True)
    assert (read.treat_whitespace_as_suffix, read.charsmap) == (False, b"")
