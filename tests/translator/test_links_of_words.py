"""Links between words and pieces, as translating and scoring give them."""

import json
import pickle
from dataclasses import replace

import pytest

from headway.data.lines import Line
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import Aligner, StoredModel
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import Piece
from headway.text.words import WordTokenizer
from headway.translator import Translator, searching
from headway.translator.aligning import piece_links, to_pharaoh, word_links
from headway.translator.lines import LineOptions, LineTranslator
from tests.page.test_inspecting import random_translator

TEXTS = ["the cat sat on the mat", "a dog ran", "the  mat"]


@pytest.fixture(scope="module")
def door() -> Translator:
    found = random_translator()
    return Translator(replace(found.stored, aligner=Aligner(0, 1, True, True)), device="cpu")


def test_words_of_a_miniature():
    source, target = "Sep 3, 15:05", "9월  3일 오후 3:05"
    source_pieces = [Piece("▁Sep", 0, 3), Piece("▁3,", 4, 6), Piece("▁15", 7, 9), Piece(":05", 9, 12)]
    spans = {"▁9": (0, 1), "월": (1, 2), "▁3": (4, 5), "일": (5, 6), "▁오후": (7, 9), "▁3:": (10, 12), "05": (12, 14)}
    target_pieces = [Piece(text, *span) for text, span in spans.items()]
    alignment = [0, None, 1, None, 2, 2, 3]
    assert piece_links(alignment) == [(0, 0), (1, 2), (2, 4), (2, 5), (3, 6)]
    assert word_links(source, source_pieces, target, target_pieces, alignment) == [(0, 0), (1, 1), (2, 2), (2, 3)]
    assert to_pharaoh([(0, 0), (1, 2)]) == "0-0 1-2"
    assert to_pharaoh([]) == ""


def test_punctuation_of_the_translation_links_no_word_but_one_of_its_own():
    source, target = "화요일 , 3일", "Tuesday, – 3"
    source_pieces = [Piece("화요일", 0, 3), Piece(",", 4, 5), Piece("3", 6, 7), Piece("일", 7, 8)]
    target_pieces = [Piece("Tuesday", 0, 7), Piece(",", 7, 8), Piece("–", 9, 10), Piece("3", 11, 12)]
    assert word_links(source, source_pieces, target, target_pieces, [0, 3, 1, 3]) == [(0, 0), (1, 1), (2, 2)]
    back = word_links(target, target_pieces, source, source_pieces, [1, 2, 3, None])
    assert back == [(0, 0), (1, 1), (2, 2)], "a source word is meant by its punctuation, too"


def test_a_piece_of_two_words_links_both_and_a_blank_one_none():
    words = word_links("ab cd", [Piece("ab▁cd", 0, 5)], "x y", [Piece("▁", 0, 0), Piece("x", 0, 1)], [0, 0])
    assert words == [(0, 0), (1, 0)]


def test_together_or_one_by_one(door, monkeypatch):
    asked = []
    align = searching.align

    def counted(*arguments):
        asked.append(len(arguments[2]))
        return align(*arguments)

    monkeypatch.setattr(searching, "align", counted)
    texts = [*TEXTS, "", "x" * 100_000]
    together = door.translate(texts, beam_size=3, n_best=2, alignments=True)
    assert asked == [6]
    every = [one for first in together for one in (first, *first.alternatives)]
    apart = [one for first in door.translate(texts, beam_size=3, n_best=2) for one in (first, *first.alternatives)]
    assert [one.alignment for one in every] == [one.alignment for one in apart]
    assert asked == [6, *[1] * 6]
    assert [one.alignment for one in every[-2:]] == [[], []]
    copied = pickle.loads(pickle.dumps(every[0]))
    assert (copied.word_links, copied.piece_links) == (every[0].word_links, every[0].piece_links)


def test_given_translations_are_aligned_as_found_ones():
    """Each word is a piece, so that a translation has the same pieces when it is read again."""
    tokenizer = WordTokenizer([f"w{number}" for number in range(20)])
    config = ModelConfig(24, 24, d_model=16, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=2, max_length=30)
    door = Translator(
        StoredModel(
            model=Transformer(config),
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="a",
            target_language="b",
        ),
        device="cpu",
    )
    texts = ["w1 w2  w3", "w4", "w5 w6 w7 w8"]
    found = door.translate(texts, beam_size=2, max_length=6)
    kept = [(text, one) for text, one in zip(texts, found, strict=True) if "<" not in one.text and one.text]
    assert kept
    links = door.align([text for text, _ in kept], [one.text for _, one in kept])
    assert links == [one.word_links for _, one in kept] == [one.piece_links for _, one in kept]
    assert door.align(["", "w1", "w1 " * 100, "w2"], ["w1", "", "w2", "w3"]) == [[], [], [], [(0, 0)]]
    with pytest.raises(ValueError, match="1 sources but 2 targets"):
        door.align(["w1"], ["w1", "w2"])


def test_a_tag_is_no_word():
    tokenizer = SubwordTokenizer.train(TEXTS * 20, "bpe", 290, ["de", "ko"])
    size = tokenizer.vocab_size
    config = ModelConfig(size, size, d_model=16, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1)
    door = Translator(
        StoredModel(
            model=Transformer(config),
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="mul",
        ),
        device="cpu",
    )
    for source in (">>de<< the cat sat", ">>ko<<the cat sat", "  >>ko<<   the cat sat"):
        [pieces], [words] = (door.align([source], ["the mat on a dog"], pieces=one) for one in (True, False))
        assert min(one for one, _ in pieces) >= 1
        assert {one for one, _ in words} <= {0, 1, 2}
        assert {other for _, other in words} == {0, 1, 2, 3, 4}
        [found] = door.translate([source], max_length=5)
        assert all(one >= 1 for one in found.alignment if one is not None)
        assert all(one <= 2 for one, _ in found.word_links)


def test_the_last_field_of_a_line(door):
    lines = [Line(number, text) for number, text in enumerate([TEXTS[0], "", TEXTS[1]], start=1)]
    plain, words, pieces = (
        LineTranslator(door, LineOptions(search={"beam_size": 2}, **options)).translate(lines).text.split("\n")[:-1]
        for options in ({}, {"alignments": True}, {"alignments": True, "pieces": True})
    )
    found = door.translate([line.text for line in lines], beam_size=2)
    assert words == [f"{text} ||| {to_pharaoh(one.word_links)}" for text, one in zip(plain, found, strict=True)]
    assert pieces == [f"{text} ||| {to_pharaoh(one.piece_links)}" for text, one in zip(plain, found, strict=True)]
    assert words[1] == " ||| "


def test_alignments_of_the_next_best(door):
    lines = [Line(number, text) for number, text in enumerate([TEXTS[0], "", TEXTS[1]], start=1)]
    best, documents = (
        LineTranslator(door, LineOptions(search={"beam_size": 2, "n_best": 2}, alignments=True, as_json=as_json))
        .translate(lines)
        .text.split("\n")[:-1]
        for as_json in (False, True)
    )
    found = door.translate([line.text for line in lines], beam_size=2, n_best=2)
    every = [one for first in found for one in (first, *first.alternatives)]
    assert [line.split(" ||| ")[-1] for line in best] == [to_pharaoh(one.word_links) for one in every]
    shown = [one for line in map(json.loads, documents) for one in (line, *line["alternatives"])]
    assert [one["alignments"] for one in shown] == [[list(link) for link in one.word_links] for one in every]


def test_options_that_do_not_fit(door):
    with pytest.raises(UserError, match="--confidence are of whole lines"):
        LineTranslator(door, LineOptions(alignments=True, split=True))
    with pytest.raises(UserError, match="give both"):
        LineTranslator(door, LineOptions(pieces=True))
