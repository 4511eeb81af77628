"""The page's tokenizer gives what the tokenizer in Python gives, whatever the text, for every kind of model."""

import io
import random
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from headway.errors import UserError
from headway.page.model_file import tokenizer_description
from headway.text.sentencepiece_model import renumbered, text_pieces
from headway.text.subwords import SubwordTokenizer, Tokenizer
from headway.text.tokenizer import CONTROL_PIECES
from headway.text.words import WordTokenizer
from tests.page.scripts import page

LINES = [
    "the cat sat on the mat, and the other cat sat there too",
    "a dog ran after the cat; it didn't catch it",
    "Ein Hund läuft über die Straße. ΣΑΣ ΣΟΦΟΣ",
    "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "안녕하세요 세계, 고양이가 매트 위에 앉았다",
    "고양이는 개를 보고 달아났다 3.5 % 2017",
] * 20


def trained(kind: str, **options) -> SubwordTokenizer:
    """As a model from elsewhere may be: sentencepiece's own normalisation, no bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        model_type=kind,
        vocab_size=180,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "bos_piece": "<sos>", "eos_piece": "<eos>"} | options,
    )
    return SubwordTokenizer(model.getvalue())


def with_unused(tokenizer: SubwordTokenizer) -> SubwordTokenizer:
    """Every third piece of more than a character is unused."""
    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.to_bytes())
    normal = [piece for piece in model.pieces if piece.type == piece.NORMAL and len(piece.piece) > 1]
    for piece in normal[::3]:
        piece.type = piece.UNUSED
    return SubwordTokenizer(model.SerializeToString())


def with_strangers(tokenizer: SubwordTokenizer) -> SubwordTokenizer:
    vocabulary = [*text_pieces(tokenizer.to_bytes()), "stranger", "▁Ω"]
    random.Random(0).shuffle(vocabulary)
    return SubwordTokenizer(renumbered(tokenizer.to_bytes(), [*CONTROL_PIECES, ">>de<<"], vocabulary))


SYMBOLS = ["cat sat", "ﬁ", "<x>", "고양이", "<x><y>"]
SPACES = {"add_dummy_prefix": False, "remove_extra_whitespaces": False}
TOKENIZERS: dict[str, Tokenizer] = {
    **{kind: SubwordTokenizer.train(LINES, kind, 420, ["ko", "zh-Hans"]) for kind in ("bpe", "unigram")},
    **{f"{kind} without bytes": trained(kind, character_coverage=0.98) for kind in ("bpe", "unigram")},
    **{f"{kind} with symbols": trained(kind, user_defined_symbols=SYMBOLS) for kind in ("bpe", "unigram")},
    **{f"{kind} with all spaces": trained(kind, **SPACES) for kind in ("bpe", "unigram")},
    "bpe with some spaces": trained("bpe", remove_extra_whitespaces=False),
    "unigram with spaces after": trained("unigram", treat_whitespace_as_suffix=True),
    "unigram in lower case": trained("unigram", normalization_rule_name="nmt_nfkc_cf"),
    "bpe with unused": with_unused(SubwordTokenizer.train(LINES, "bpe", 420)),
    "unigram with unused": with_unused(trained("unigram")),
    "unigram with strangers": with_strangers(trained("unigram")),
    "words": WordTokenizer.train(LINES, vocab_size=60, min_frequency=1, lowercase=False),
    "words in lower case": WordTokenizer.train(LINES, vocab_size=60, min_frequency=1, lowercase=True),
}

FAMILY = "👩‍👩‍👧‍👦"
BY_HAND = [
    *LINES[:6],
    *(unicodedata.normalize("NFD", line) for line in LINES[:6]),
    *("", " ", "  \t ", "\u2028", "\x85 \x1c", "\u3000", "\ufeff", "\u200b", "\x00", "\x1f"),
    *(
        " the  cat ",
        "the\tcat\u00a0sat\u3000on",
        "x\u2028y\u0085z\rw\x00v\x1cu",
        "\ufeffthe cat\ufeff",
        "a\u200bb\u00adc",
        "the \u200c \u200d\u034f cat \ufe0f",
        "\u200b\u200d the\u200b\u200d \U000e0067 cat\u3164 \u3164",
    ),
    *("가\u11a8나", "\u1112\u1161\u11ab글", "ㅎㅏㄴ", "ｶﾞ ﾊﾟ", "\u11a8가", "각\u11a8", "\u1100\u1100\u1161"),
    *("e\u0301\u0323 e\u0323\u0301", "\u0345\u0301a", "ᾳ\u0301", "\u0301", " \u0301 ", "\u0344", "\u09c7\u09be", "क़ ड़"),
    *(
        f"{FAMILY} joined",
        "👍🏽👍🏿",
        "🇰🇷🇩🇪🇰",
        "❤\ufe0f 1\ufe0f\u20e3",
        "🏴\U000e0067\U000e0062\U000e007f",
        "😀😀 the😀cat",
    ),
    *("½ ① Ⅳ ﬁx ﷺ ㎒ ｆｕｌｌ", "▁▂▃ a▁b ▁ ▁▁", "\ufdd0 a\ufdd0b \ufdd0\ufdd0", "▅", "\ufffd a\ufffdb"),
    *("<s> </s> <pad> <unk> <sos> <eos>", "<0x41><0xE2>", "<0xEC><0x95><0x88>", "<x><y><x>y>", "cat sat cat  sat"),
    *(
        "\u202eabc\u202c \u200fשלום\u200e عالم",
        "漢字 한글 ไทย ქართული",
        "\U0001d54f\U0001d552 \U000f0000\U0010ffff \uffff",
    ),
    *("ΣΑΣ ΟΔΟΣ Σ ΑΣ. ΑΣΑ İSTANBUL ǅ ẞ", "STRASSE Straße", "ﬀ ŉ ǰ"),
    *(">>ko<< the cat", " >>zh-Hans<<the cat", ">>ko<<", ">>ko<< ", ">>fr<< the", "the >>ko<< cat", ">>ko<<>>ko<< a"),
    *("\x1c>>ko<<\x85the", ">>de<< the stranger", "\ufeff>>ko<< a", ">> ko<< a", ">>ko<a<< b"),
    *("a" * 4_000, "at" * 1_000, "Ω" * 12_000, "😀" * 1_000, FAMILY * 200, "고양이" * 1_000, "가나 " * 1_000),
    *("e" + "\u0301" * 2_000, "e" + "\u0301\u0323" * 1_000, " " * 4_000 + "cat" + " " * 4_000, "▁" * 2_000),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with page(Path(__file__).with_name("tokenizing.js"), tmp_path_factory.mktemp("page")) as process:
        for name, tokenizer in TOKENIZERS.items():
            assert load(process, name, tokenizer) == {
                "kind": "unigram" if name.startswith("unigram") else tokenizer.kind,
                "vocabulary": tokenizer.vocabulary,
                "targetTags": tokenizer.target_tags,
                "neverGenerated": tokenizer.never_generated,
            }
        yield process


def placed(pieces):
    return [[piece.text, piece.start, piece.end] for piece in pieces]


def load(browser, name, tokenizer):
    return browser.ask({"name": name, "description": tokenizer_description(tokenizer)})


def check_texts(browser, name, tokenizer, texts):
    for text, answer in zip(texts, browser.ask({"name": name, "texts": texts}), strict=True):
        assert answer["ids"] == tokenizer.encode(text), ascii(text[:100])
        assert answer["pieces"] == placed(tokenizer.encoded_pieces(text)), ascii(text[:100])
        assert answer["split"] == list(tokenizer.split_tag(text)), ascii(text[:100])
    split = [answer["split"] for answer in browser.ask({"name": name, "texts": texts})]
    for text, (tag, _), answer in zip(
        texts, split, browser.ask({"name": name, "texts": [rest for _, rest in split]}), strict=True
    ):
        tags = [tokenizer.vocabulary.index(tag)] if tag and answer["ids"] else []
        assert [*tags, *answer["ids"]] == tokenizer.encode(text, tagged=True), ascii(text[:100])
    check_ids(browser, name, tokenizer, tokenizer.encode_all(texts))


def check_ids(browser, name, tokenizer, sequences):
    for ids, answer in zip(sequences, browser.ask({"name": name, "ids": sequences}), strict=True):
        assert answer["text"] == tokenizer.decode(ids), ids[:100]
        assert answer["pieces"] == placed(tokenizer.decoded_pieces(ids)), ids[:100]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_odd_texts(browser, name):
    check_texts(browser, name, TOKENIZERS[name], BY_HAND)


SOME = [
    "bpe",
    "unigram",
    "unigram without bytes",
    "bpe with all spaces",
    "unigram in lower case",
    "words in lower case",
]
# Unassigned code points (Cn) are left out: the Unicode of Python and of the page may be of different years. Halves of
# surrogate pairs (Cs) are no text.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
MARKS = st.text("eaㅎ가갃ᄒ\u1161\u11a8\u0301\u0323\u0344\u0345\u3099ｶﾞ\u09c7\u09be¨ ﬁΣ\x1c\u200b", max_size=12)
PIECES = st.lists(
    st.sampled_from([*"▁ catshe<x>고양이😀ﬁ", "cat sat", "▁the", "t", "Hund", "stranger"]), max_size=30
).map("".join)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=60)
@given(texts=st.lists(TEXTS | MARKS | PIECES, min_size=1, max_size=5))
def test_any_text(browser, name, texts):
    check_texts(browser, name, TOKENIZERS[name], texts)


@pytest.mark.parametrize("name", SOME)
def test_every_character(browser, name):
    """Between letters, twenty in a text."""
    characters = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) not in ("Cs", "Cn", "Co")]
    texts = [
        " ".join(f"a{char}b" for char in characters[start : start + 20]) for start in range(0, len(characters), 20)
    ]
    tokenizer = TOKENIZERS[name]
    answers = browser.ask({"name": name, "texts": texts})
    for text, answer, ids in zip(texts, answers, tokenizer.encode_all(texts), strict=True):
        assert answer["ids"] == ids, ascii(text)


@pytest.mark.parametrize("name", ["bpe", "unigram", "words"])
def test_every_syllable_of_hangul_in_all_its_forms(browser, name):
    syllables = [chr(code) for code in range(0xAC00, 0xD7A4)]
    letters = [unicodedata.normalize("NFD", syllable) for syllable in syllables]
    halves = [unicodedata.normalize("NFC", some[:2]) + some[2:] for some in letters]
    expected = TOKENIZERS[name].encode_all([f"가{syllable}나" for syllable in syllables])
    for forms in (syllables, letters, halves):
        answers = browser.ask({"name": name, "texts": [f"가{form}나" for form in forms]})
        assert [answer["ids"] for answer in answers] == expected


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=40)
@given(data=st.data())
def test_any_ids(browser, name, data):
    """What a model may generate, broken UTF-8 included."""
    size = TOKENIZERS[name].vocab_size
    ids = st.integers(0, size - 1) | st.integers(0, min(size - 1, 270))
    check_ids(browser, name, TOKENIZERS[name], data.draw(st.lists(st.lists(ids, max_size=12), min_size=1, max_size=5)))


MODEL = sentencepiece_model_pb2.ModelProto
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def any_model(chance: random.Random) -> SubwordTokenizer:
    """Pieces of two letters and spaces. There are few scores, so many sums are equal, some in 32 bits alone."""
    scores = [*(-number / 10 for number in range(1, 31)), 0.0, 0.3]
    scores += [-3e4, -2.5e4, 3e4] if chance.random() < 0.2 else []
    names = {"".join(chance.choices("aab▁", k=chance.randint(1, 5))) for _ in range(chance.randint(1, 40))}
    pieces = [(name, 0.0, UNKNOWN if name == "<unk>" else CONTROL) for name in CONTROL_PIECES]
    types = chance.choice([[NORMAL], [NORMAL, NORMAL, UNUSED], [NORMAL, NORMAL, NORMAL, UNUSED, USER_DEFINED]])
    pieces += [(name, chance.choice(scores), chance.choice(types)) for name in sorted(names)]
    pieces.append(("c", -2.0, NORMAL))
    model = MODEL()
    model.trainer_spec.byte_fallback = chance.random() < 0.5
    if model.trainer_spec.byte_fallback:
        pieces += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    for name, score, type_ in pieces:
        model.pieces.add(piece=name, score=score, type=type_)
    model.trainer_spec.model_type = chance.choice([1, 2])
    model.trainer_spec.treat_whitespace_as_suffix = chance.random() < 0.3
    for flag in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces"):
        setattr(model.normalizer_spec, flag, chance.random() < 0.7)
    return SubwordTokenizer(model.SerializeToString())


@pytest.mark.parametrize("seed", range(8))
def test_any_model(browser, seed):
    chance = random.Random(seed)
    for _ in range(50):
        tokenizer = any_model(chance)
        texts = ["".join(chance.choices("aaaabbb c d", k=chance.randint(0, 60))) for _ in range(20)]
        load(browser, "any", tokenizer)
        check_texts(browser, "any", tokenizer, texts)


def test_a_description_is_small():
    """The rules of normalisation that headway's own models have are those for characters newer than Python."""
    rules = tokenizer_description(TOKENIZERS["bpe"])["rules"]
    assert all(any(unicodedata.category(char) == "Cn" for char in key) for key in rules)


@pytest.mark.parametrize("kind", ["word", "char"])
def test_other_kinds_of_models_are_refused(kind):
    with pytest.raises(UserError, match="neither BPE nor unigram"):
        tokenizer_description(trained(kind))


def test_rewriting_of_decoded_text_is_refused():
    model = sentencepiece_model_pb2.ModelProto.FromString(TOKENIZERS["unigram without bytes"].to_bytes())
    model.denormalizer_spec.precompiled_charsmap = model.normalizer_spec.precompiled_charsmap
    with pytest.raises(UserError, match="denormalizer_spec"):
        tokenizer_description(SubwordTokenizer(model.SerializeToString()))
