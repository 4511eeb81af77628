"""Larger vocabularies: old text keeps its pieces, each new piece can be found, and stands for its parts."""

import random
from collections import Counter

import pytest
from sentencepiece import sentencepiece_model_pb2
from tests.text.test_sentencepiece_model import train as train_without_bytes

from headway.text.growing import NewPiece, grow, keep, learn_pieces, needed_ids
from headway.text.sentencepiece_model import read_model, renumbered, text_pieces
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import CONTROL_PIECES, UNK_ID
from headway.text.words import WordTokenizer

OLD = ["the cat sat on the mat", "a dog ran after the cat", "he sat in a den near the tent", "x, 7-8 (or 9)"] * 20
NEW = ["antenna antennas attend the network", "42% of 네트워크 antennas", "the antenna, 네트워크 & networks"] * 5


def without_bytes(kind: str) -> SubwordTokenizer:
    """As others have made it: what it lacks is unknown."""
    model = train_without_bytes(kind)
    return SubwordTokenizer(renumbered(model, CONTROL_PIECES, text_pieces(model)))


@pytest.fixture(scope="module", params=["bpe", "unigram", "bpe without bytes", "unigram without bytes"])
def old(request) -> SubwordTokenizer:
    kind = request.param.split()[0]
    return without_bytes(kind) if "without" in request.param else SubwordTokenizer.train(OLD, kind, 310, ["de"])


def names(tokenizer, text: str) -> list[str]:
    vocabulary = tokenizer.vocabulary
    return [vocabulary[id_] for id_ in tokenizer.encode(text)]


def test_text_without_a_new_piece_keeps_its_pieces(old):
    new = learn_pieces(old, NEW, 30)
    larger = grow(old, new).tokenizer
    assert (larger.kind, larger.vocab_size) == (old.kind, old.vocab_size + len(new))
    chooser = random.Random(1)
    texts = ["".join(chooser.choices("catshemo ", k=6)) for _ in range(300)] + [*OLD, *NEW, ">>de<< ▁ <0x41>"]
    kept = changed = 0
    for text in texts:
        if any(piece.text in "▁" + text.replace(" ", "▁") for piece in new):
            changed += names(larger, text) != names(old, text)
        else:
            kept += 1
            assert names(larger, text) == names(old, text)
        if UNK_ID not in old.encode(text):
            assert larger.decode(larger.encode(text)) == old.decode(old.encode(text))
    assert kept > 50
    assert changed > 10


def test_new_pieces_of_bpe_join_old_ones():
    """So a boundary that is new would show that a new merge came before an old one."""
    chooser = random.Random(2)
    texts = ["".join(chooser.choices("aent dsco", k=12)) for _ in range(400)]
    old = SubwordTokenizer.train(OLD, "bpe", 320)
    larger = grow(old, learn_pieces(old, texts[:100], 60)).tokenizer
    for text in texts:
        ends = {piece.end for piece in old.encoded_pieces(text)}
        assert all(piece.end in ends for piece in larger.encoded_pieces(text))


def test_new_pieces_are_found_and_shorten_the_text(old):
    new = learn_pieces(old, NEW, 30)
    grown = grow(old, new)
    found = Counter(piece for line in NEW for piece in names(grown.tokenizer, line))
    assert sum(map(len, grown.tokenizer.encode_all(NEW))) < 0.6 * sum(map(len, old.encode_all(NEW)))
    assert found.keys() - old.vocabulary >= {"▁antenna", "▁네트워크", "%"}


def test_a_new_piece_stands_for_what_the_old_tokenizer_made_of_it(old):
    new = learn_pieces(old, NEW, 30)
    grown = grow(old, new)
    vocabulary = old.vocabulary
    for piece, row in zip(new, grown.rows[old.vocab_size :], strict=True):
        assert row == piece.parts
        if UNK_ID not in row:
            assert old.decode(row) == piece.text.replace("▁", "")
        if all(vocabulary[id_] in piece.text for id_ in row):
            assert "".join(vocabulary[id_] for id_ in row) == piece.text
    assert grown.rows[: old.vocab_size] == [[id_] for id_ in range(old.vocab_size)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_new_piece_is_worth_more_than_two_that_could_stand_in_its_place(kind):
    """By unigram's sum of scores, so that it is found where it can be; by BPE's ranks the earlier ones come first."""
    old = SubwordTokenizer.train(OLD, kind, 310)
    new = learn_pieces(old, [*NEW, *["zq"] * 1000, *["zqe"] * 9], 60)
    assert {"▁zq", "▁zqe"} <= {piece.text for piece in new}
    model = read_model(grow(old, new).tokenizer.to_bytes())
    scores = dict(zip(model.pieces, model.scores, strict=True))
    assert any(len(piece.text) > 4 for piece in new)
    if kind == "bpe":
        assert [scores[piece.text] for piece in new] == sorted((scores[piece.text] for piece in new), reverse=True)
        return
    for text in (piece.text for piece in new):
        for cut in range(1, len(text)):
            if text[:cut] in scores and text[cut:] in scores:
                assert scores[text] > scores[text[:cut]] + scores[text[cut:]], (text[:cut], text[cut:])


def test_new_pieces_are_characters_or_letters_of_one_script(old):
    texts = ["a1 b1 a, b, 한a", "a1 b1 a, b, 한a ▁ \x00\ufdd0"] * 9
    for piece in learn_pieces(old, texts, 1000):
        letters = piece.text.removeprefix("▁")
        assert len(letters) == 1 or letters.isalpha()
        assert piece.text not in ("한a", "▁한a")
        assert piece.text.isprintable()


def test_the_most_frequent_come_first_and_rare_ones_never():
    old = SubwordTokenizer.train(["a b c d e f"] * 9, "bpe", 280)
    new = learn_pieces(old, ["xy"] * 9 + ["zw"] * 5 + ["q"], 100)
    assert [piece.text for piece in new] == ["xy", "▁xy", "zw", "▁zw"]
    assert new[1].parts == [old.vocabulary.index(piece) for piece in ("▁", "<0x78>", "<0x79>")]
    assert len(learn_pieces(old, ["xy"] * 9, 2)) == 2


@pytest.mark.parametrize("tags", [[], ["de", "nl"]])
def test_a_tag_comes_after_those_that_are_there(tags):
    old = SubwordTokenizer.train(OLD, "bpe", 310, tags)
    grown = grow(old, [], ["ko"])
    assert grown.tokenizer.target_tags == [*tags, "ko"]
    assert names(grown.tokenizer, "the cat") == names(old, "the cat")
    place = 4 + len(tags)
    assert grown.tokenizer.encode(">>ko<< the", tagged=True)[0] == place
    assert [grown.rows[id_] for id_ in grown.tokenizer.encode("the cat")] == [[id_] for id_ in old.encode("the cat")]
    assert grown.rows[place] == ([4, 5] if tags else list(range(4, old.vocab_size)))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_other_sides_pieces_are_never_found(kind):
    old = SubwordTokenizer.train(OLD, kind, 310)
    new = learn_pieces(old, NEW, 30)
    larger = grow(old, new, never_found={piece.text for piece in new}).tokenizer
    assert larger.vocabulary[old.vocab_size :] == [piece.text for piece in new]
    assert larger.encode_all([*OLD, *NEW]) == old.encode_all([*OLD, *NEW])


def test_new_pieces_are_of_the_formats_types(old):
    """As its own generated code reads them."""
    new = learn_pieces(old, NEW, 20)
    grown = grow(old, new, ["ko"]).tokenizer
    pieces = {one.piece: one for one in sentencepiece_model_pb2.ModelProto.FromString(grown.to_bytes()).pieces}
    types = sentencepiece_model_pb2.ModelProto.SentencePiece
    assert pieces[">>ko<<"].type == types.CONTROL
    for piece in new:
        assert pieces[piece.text].HasField("type")
        assert pieces[piece.text].type == types.NORMAL


def test_words_by_hand():
    old = WordTokenizer(["a", "b"], lowercase=True)
    new = learn_pieces(old, ["a C c d d d e", "D f F"], 2)
    assert new == [NewPiece("d", [UNK_ID]), NewPiece("c", [UNK_ID])]
    grown = grow(old, new)
    assert grown.tokenizer.vocabulary == [*CONTROL_PIECES, "a", "b", "d", "c"]
    assert grown.rows[4:] == [[4], [5], [UNK_ID], [UNK_ID]]
    assert grown.tokenizer.encode("A B C D") == [4, 5, 7, 6]
    assert [piece.text for piece in learn_pieces(old, ["a C c d d d e", "D f F"], 9)] == ["d", "c", "f"]


def test_text_keeps_its_pieces_when_the_vocabulary_is_cut_to_it(old):
    chooser = random.Random(3)
    larger = grow(old, learn_pieces(old, NEW, 40), ["ko"] if old.text_begins > 4 else []).tokenizer
    for lines in (OLD[:2], [NEW[0], "Ω 말 \u0301x", "  ▁ "]):
        cut = keep(larger, needed_ids(larger, lines))
        words = " ".join(lines).split()
        for text in [*lines, *(" ".join(chooser.choices(words, k=4)) for _ in range(50))]:
            assert names(cut.tokenizer, text) == names(larger, text)
        assert [[larger.vocabulary[id_] for id_ in row] for row in cut.rows] == [
            [one] for one in cut.tokenizer.vocabulary
        ]
        assert cut.tokenizer.vocab_size < larger.vocab_size
        assert (cut.tokenizer.kind, cut.tokenizer.target_tags) == (larger.kind, larger.target_tags)


def test_a_cut_vocabulary_has_all_characters_and_their_starts_of_words(old):
    cut = keep(old, needed_ids(old, ["a"])).tokenizer
    model, before = read_model(cut.to_bytes()), read_model(old.to_bytes())
    assert [model.pieces[id_] for id_ in model.byte] == [before.pieces[id_] for id_ in before.byte]
    assert model.charsmap == before.charsmap
    assert cut.never_generated == old.never_generated
    assert {one for one in old.vocabulary if len(one.removeprefix("▁")) < 2} <= set(cut.vocabulary)
    assert cut.vocab_size < old.vocab_size
    for text in ("the cat sat", "42% of x"):
        assert cut.decode(cut.encode(text)) == old.decode(old.encode(text))


def test_pieces_from_which_bpe_joins_others_stay():
    """A word may be found as a whole: its parts stay, which lead to it, and which other forms of it need."""
    old = SubwordTokenizer.train(OLD, "bpe", 320)
    assert names(old, "attend") != names(old, "tent")
    cut = keep(old, needed_ids(old, ["tent"])).tokenizer
    assert {one for one in old.vocabulary if one in "▁tent"} <= set(cut.vocabulary)


def test_unknown_characters_stay_as_unlikely():
    """In unigram's sum of scores, by the lowest piece."""
    old = without_bytes("unigram")
    lowest = min(read_model(old.to_bytes()).scores)
    assert min(read_model(keep(old, needed_ids(old, ["a"])).tokenizer.to_bytes()).scores) == lowest
