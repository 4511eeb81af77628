"""A sentencepiece model with other ids splits text as it did before."""

import io
import random

import pytest
import sentencepiece

from headway.errors import UserError
from headway.text.sentencepiece_model import renumbered, text_pieces

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
