"""Tokenizers: text comes back, control symbols in text stay text, the vocabulary has the size that was asked."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from headway.errors import UserError
from headway.text.characters import is_blank, is_too_long
from headway.text.sentencepiece_model import enlarged
from headway.text.subwords import SubwordTokenizer, fingerprint, parse_tokenizer
from headway.text.tokenizer import CONTROL_PIECES, UNK_ID
from headway.text.words import WordTokenizer

LINES = [
    "the cat sat on the mat",
    "a dog ran after the cat",
    "안녕하세요 세계",
    "고양이가 매트 위에 앉았다",
    "x <s> </s> <pad>",
] * 20


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def subwords(request) -> SubwordTokenizer:
    return SubwordTokenizer.train(LINES, request.param, 320)


def test_vocabulary_is_as_large_as_asked_or_shrinks(subwords):
    assert 290 < subwords.vocab_size <= 320
    assert SubwordTokenizer.train(LINES, "bpe", 20_000).vocab_size < 1000


def test_too_small_a_vocabulary_says_how_many_are_needed():
    with pytest.raises(UserError, match=r"tokenizer.vocab_size=100 is too small.* need \d+ tokens"):
        SubwordTokenizer.train(LINES, "bpe", 100)


FILLERS = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u200c", "\u200d", "\u2800", "\u3164", "\uffa0"}
"""They show nothing where they stand alone, but are no format characters, or ones that words differ by. So do selectors
of variations and tags, which are in emoji."""


def is_dropped(char):
    """Controls and format characters, by Unicode's categories: not white space, joiners, and signs that are seen, which
    stand before Arabic and Syriac numbers and in scripts beyond U+10000."""
    shown = unicodedata.name(char, "").split(" ")[0] in ("ARABIC", "SYRIAC") and char != "\u061c"
    return unicodedata.category(char) in ("Cc", "Cf") and not (
        char.isspace() or char in FILLERS or shown or char >= "\U00010000"
    )


def shows_nothing(char):
    selects = "VARIATION SELECTOR" in unicodedata.name(char, "")
    return is_dropped(char) or char.isspace() or char in FILLERS or selects or "\U000e0000" <= char < "\U000e1000"


def normal(text):
    """The text as it must come back: NFKC, without invisible characters and words that show nothing, white space in a
    row as one space."""
    words = [word for word in text.split() if not all(map(shows_nothing, word))]
    seen = " ".join("".join(char for char in word if not is_dropped(char)) for word in words)
    return " ".join(unicodedata.normalize("NFKC", seen).split())


SUBWORDS = {kind: SubwordTokenizer.train(LINES, kind, 320) for kind in ("bpe", "unigram")}
# Unassigned code points (Cn) are left out: Python's Unicode and sentencepiece's may be of different years, and U+FDD0,
# which never will be a character, stands for U+2581.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
MARKS = st.text("eaㅎ가갃ᄒ\u1161\u11a8\u0301\u0323\u0344\u3099ｶﾞ\u09c7\u09be¨ ", max_size=12)


def check_any_text(text):
    """It comes back, no piece of it is a control symbol, and texts that are equivalent to it are the same."""
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    for tokenizer in SUBWORDS.values():
        ids = tokenizer.encode(text)
        assert all(id_ >= len(CONTROL_PIECES) for id_ in ids)
        assert tokenizer.decode(ids) == normal(text)
        assert tokenizer.encode(composed) == tokenizer.encode(decomposed) == ids
    words = WordTokenizer.train([decomposed], vocab_size=100, min_frequency=1, lowercase=False)
    assert words.encode(composed) == words.encode(decomposed) == words.encode(text)
    assert all(id_ >= len(CONTROL_PIECES) for id_ in words.encode(text))


@settings(max_examples=500, deadline=None)
@given(text=TEXTS | MARKS)
def test_any_text_comes_back_and_equivalent_texts_are_the_same(text):
    check_any_text(text)


def test_every_character_comes_back(subwords):
    lost = []
    for code in range(0x110000):
        text = f"a{chr(code)}b"
        if unicodedata.category(text[1]) in ("Cs", "Cn"):
            continue
        if subwords.decode(subwords.encode(text)) != normal(text):
            lost.append(hex(code))
    assert lost == []


@pytest.mark.parametrize(
    "text",
    [
        "emoji 👩‍👩‍👧 joined",
        "👩‍👩‍👧‍👦" * 1000,
        "e" + "\u0301" * 5000,
        "e" + "\u0301\u0323" * 2000,
        "\u202eabc\u202c \u200fשלום\u200e עולם",
        "newline-less \x1c \x85 text",
        "a\x00b",
        "½ ①",
        "▁▂▃ a▁b ▅",
        "\ufeffa\ufeff",
    ],
)
def test_round_trip(subwords, text):
    assert subwords.decode(subwords.encode(text)) == normal(text)


def test_every_syllable_of_hangul_is_the_same_in_all_its_forms(subwords):
    for code in range(0xAC00, 0xD7A4):
        letters = unicodedata.normalize("NFD", chr(code))
        half = unicodedata.normalize("NFC", letters[:2]) + letters[2:]
        expected = subwords.encode(f"가{chr(code)}나")
        assert subwords.encode(f"가{letters}나") == subwords.encode(f"가{half}나") == expected


@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad>", "<unk>", "<sos> <eos>", "a <pad> b", "<0x41>"])
def test_control_symbols_in_text_are_text(subwords, text):
    ids = subwords.encode(text)
    assert min(ids) >= len(CONTROL_PIECES)
    assert subwords.decode(ids) == text


def test_control_ids_give_no_text(subwords):
    ids = [2, *subwords.encode("the cat"), 3, 0, 0]
    assert subwords.decode(ids) == "the cat"
    assert subwords.decoded_pieces(ids) == subwords.decoded_pieces(subwords.encode("the cat"))


@settings(max_examples=500, deadline=None)
@given(text=TEXTS | MARKS, kind=st.sampled_from(["bpe", "unigram"]))
@example("the  cat ", "bpe")
@example("Ｔhe 😀 cat안녕", "bpe")
@example("ﬁx ▁the", "unigram")
@example(unicodedata.normalize("NFD", "안녕 é"), "bpe")
@example("가\u11a8나 e\u0301\u0323 the", "bpe")
@example("a\u200bb 👨‍👩‍👧 the", "unigram")
@example("\ufeffthe\r\n\u00ad cat\u2028\u200e\u0323 e\u00ad\u0301", "bpe")
@example("  ", "bpe")
def test_pieces_stand_where_their_characters_are(text, kind):
    subwords = SUBWORDS[kind]
    ids = subwords.encode(text)
    for pieces, whole in ((subwords.encoded_pieces(text), text), (subwords.decoded_pieces(ids), subwords.decode(ids))):
        assert len(pieces) == len(ids)
        if not ids:
            continue
        starts = [piece.start for piece in pieces]
        assert starts == sorted(starts)
        covered = {place for piece in pieces for place in range(piece.start, piece.end)}
        assert {place for place, char in enumerate(whole) if not shows_nothing(char)} <= covered
        for piece in pieces:
            span = whole[piece.start : piece.end]
            assert span == span.strip()
            if not piece.text.startswith("<0x"):
                seen = "".join(char for char in span if not is_dropped(char))
                assert piece.text.removeprefix("▁") in unicodedata.normalize("NFKC", seen)


def test_each_byte_of_a_character_has_its_place(subwords):
    assert {(piece.start, piece.end) for piece in subwords.encoded_pieces("the 😀") if "<0x" in piece.text} == {(4, 5)}


def test_a_tag_in_front_is_one_piece_and_anywhere_else_text():
    tagged = SubwordTokenizer.train(LINES, "bpe", 322, ["ko", "de"])

    def source(text):
        return tagged.encode(text, tagged=True)

    ko, *rest = source(">>ko<< the cat")
    assert (tagged.target_tags, ko, rest) == (["ko", "de"], 4, tagged.encode("the cat"))
    assert source(" >>de<<the cat") == [5, *rest]
    assert [source(text) for text in (">>ko<<", ">>ko<< ", " ")] == [[], [], []]
    assert min(source("the >>ko<< cat")) > 5
    assert min(source(">>fr<< the cat")) > 5
    assert min(tagged.encode(">>ko<< the cat")) > 5  # of a target it is text
    assert tagged.never_generated == [UNK_ID, 4, 5]
    assert tagged.decode([4, *rest]) == "the cat"
    first, second, *_ = tagged.encoded_pieces(" >>ko<< the cat", tagged=True)
    assert (first.text, first.start, first.end, second.start) == (">>ko<<", 1, 7, 8)
    assert tagged.split_tag(" >>ko<<  >>de<< the cat ") == (">>ko<<", ">>de<< the cat ")
    assert tagged.split_tag(" >>fr<< the cat") == ("", " >>fr<< the cat")
    assert SubwordTokenizer(tagged.to_bytes()).target_tags == ["ko", "de"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "\t",
        "\u2028",
        "\x85 \x1c",
        "\u3000",
        "\u200b",
        "\ufeff \xad",
        "\u200e\x00",
        "\u200d\ufe0f",
        "\u3164",
        "\u2800",
    ],
)
def test_blank_text_has_no_ids(subwords, text):
    for tokenizer in (subwords, WordTokenizer(["a"])):
        assert tokenizer.encode(text) == tokenizer.encoded_pieces(text) == []
    assert is_blank(text)


@pytest.mark.parametrize(
    "space", ["\t", "\r\n", "\n", "\v", "\f", "\r", "\x85", "\u2028", "\u2029", " \t ", "\xa0", "\x1c"]
)
def test_white_space_of_any_kind_is_a_space(subwords, space):
    words = WordTokenizer(["the", "cat"])
    keeps_spaces = SubwordTokenizer(_with_spaces(subwords.to_bytes()))
    for tokenizer in (subwords, words, keeps_spaces):
        assert tokenizer.encode(f"the{space}cat") == tokenizer.encode("the cat")
        assert tokenizer.encode_all([f"the{space}cat"]) == [tokenizer.encode("the cat")]
        pieces = tokenizer.encoded_pieces(f"the{space}cat")
        assert (pieces[0].start, pieces[-1].end) == (0, 6 + len(space))


def _with_spaces(model):
    """The model, which keeps each of several spaces."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.remove_extra_whitespaces = False
    return proto.SerializeToString()


@pytest.mark.parametrize("hidden", ["\u200b", "\xad", "\ufeff", "\u200e", "\x00", "\x7f", "\u2060", "\u202e", "\u2066"])
def test_invisible_characters_are_dropped(subwords, hidden):
    tagged = SubwordTokenizer.train(LINES, "bpe", 322, ["ko", "de"])
    for tokenizer in (subwords, WordTokenizer(["the", "cat"])):
        for text in (f"the c{hidden}at", f"{hidden}the {hidden} cat{hidden}"):
            assert tokenizer.encode(text) == tokenizer.encode("the cat")
    assert tagged.encode(f"{hidden}>>ko<<{hidden} the", tagged=True) == tagged.encode(">>ko<< the", tagged=True)


@pytest.mark.parametrize("nothing", ["\u200c", "\u200d \u034f", "\ufe0f\u200b", "\u3164", "\u200b\u200d"])
def test_words_that_show_nothing_are_dropped(subwords, nothing):
    for tokenizer in (subwords, WordTokenizer(["the", "cat"])):
        for text in (f"the {nothing} cat", f"the {nothing}\u00a0cat", f"{nothing} the cat {nothing}"):
            assert tokenizer.encode(text) == tokenizer.encode("the cat")
            assert [text[one.start : one.end] for one in tokenizer.encoded_pieces(text)][-1][-1] == "t"


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d"])
def test_joiners_stay(subwords, joiner):
    assert subwords.decode(subwords.encode(f"می{joiner}خواهم")) == f"می{joiner}خواهم"


def test_a_text_is_too_long_by_its_characters_alone():
    assert not is_too_long("가" * 640, max_length=10)
    assert is_too_long("가" * 641, max_length=10)


def test_training_is_deterministic(subwords):
    again = [SubwordTokenizer.train(LINES, "bpe", 320) for _ in range(2)]
    assert fingerprint(again[0]) == fingerprint(again[1])


@pytest.mark.parametrize("odd", ["▅", "\x00", "\t", "▁", "\ufffd", "\ufdd0", "\ufeff"])
def test_a_vocabulary_is_learned_from_odd_lines_too(odd):
    for kind in ("bpe", "unigram"):
        vocabulary = SubwordTokenizer.train([f"zebra zebra {odd} zebra"] * 50, kind, 300).vocabulary
        assert "▁zebra" in vocabulary


def test_words_by_hand():
    tokenizer = WordTokenizer.train(["b a b", "a c b"], vocab_size=100, min_frequency=2, lowercase=False)
    assert tokenizer.vocab_size == 6
    assert tokenizer.encode("b a c B") == [4, 5, UNK_ID, UNK_ID]
    assert tokenizer.decode([2, 4, 5, 1, 3, 0]) == "b a <unk>"
    assert [(piece.text, piece.start, piece.end) for piece in tokenizer.encoded_pieces(" b  c")] == [
        ("b", 1, 2),
        ("<unk>", 4, 5),
    ]
    assert [(piece.text, piece.start, piece.end) for piece in tokenizer.decoded_pieces([2, 4, 1, 5, 3])] == [
        ("b", 0, 1),
        ("<unk>", 2, 7),
        ("a", 8, 9),
    ]


def test_words_may_be_lower_cased():
    tokenizer = WordTokenizer.train(["The THE the"], vocab_size=100, min_frequency=3, lowercase=True)
    assert tokenizer.encode("tHE") == [4]


def test_word_vocabulary_is_capped_by_frequency():
    tokenizer = WordTokenizer.train(["a a a b b c"], vocab_size=6, min_frequency=1, lowercase=False)
    assert tokenizer.decode([4, 5]) == "a b"
    assert tokenizer.vocab_size == 6


def test_control_symbols_as_words_are_words():
    tokenizer = WordTokenizer.train(["<eos> <pad> x"], vocab_size=100, min_frequency=1, lowercase=False)
    assert min(tokenizer.encode("<eos> <pad> x <unk>")[:3]) >= len(CONTROL_PIECES)


def test_files_give_the_same_tokenizer(tmp_path, subwords):
    words = WordTokenizer.train(LINES, vocab_size=100, min_frequency=1, lowercase=True)
    for tokenizer in (subwords, words):
        path = tmp_path / f"x{tokenizer.suffix}"
        path.write_bytes(tokenizer.to_bytes())
        copy = parse_tokenizer(path.read_bytes(), path)
        assert fingerprint(copy) == fingerprint(tokenizer)
        assert copy.encode("The cat 안녕") == tokenizer.encode("The cat 안녕")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.spm", b"junk"),
        ("a.vocab.json", b"{"),
        ("a.vocab.json", b"[]"),
        ("a.vocab.json", b'{"words": [1], "lowercase": true}'),
        ("a.vocab.json", b'{"words": ["a", "a"], "lowercase": true}'),
    ],
)
def test_damaged_files_are_named(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UserError, match=name):
        parse_tokenizer(path.read_bytes(), path)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_knows_how_it_was_learned(kind):
    assert SubwordTokenizer.train(LINES, kind, 320).kind == kind
    assert WordTokenizer(["a"]).kind == "word"


def test_a_whole_number_as_the_last_score_makes_no_bpe():
    one = SubwordTokenizer.train(LINES, "unigram", 320)
    assert SubwordTokenizer(enlarged(one.to_bytes(), [], one.text_begins, [("zz", -20.0)])).kind == "unigram"
