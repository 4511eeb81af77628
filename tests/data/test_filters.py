"""Each filter against lines that were made by hand, and against another way to the same answer."""

import random
import sys

import pytest
import regex

from headway.data.filters import filter_tests, script_name
from headway.data.options import FiltersSection
from headway.errors import UserError

WORDS = ["Hund", "läuft", "하늘", "sky", "犬", "собака", "a", "", "  ", "12", "!"]


def dropped(pairs, languages=("de", "en"), held_out=(), **chosen):
    """Of these pairs, those that the filters drop, with the filter's key."""
    tests = filter_tests(FiltersSection(**chosen), languages, list(held_out))
    found = [(pair, next((name for name, test in tests if test(*pair)), None)) for pair in pairs]
    return {pair: name for pair, name in found if name}


def random_pairs(count=400):
    chooser = random.Random(3)
    return [
        tuple(" ".join(chooser.choice(WORDS) for _ in range(chooser.randint(1, 9))) for _ in range(2))
        for _ in range(count)
    ]


def test_nothing_is_dropped_unless_it_is_asked_for():
    assert filter_tests(FiltersSection(), ("nonsense", "nonsense")) == []


def test_words_and_characters_count_on_both_sides():
    assert dropped([("a", "x y"), ("a b c", "x y"), ("a b", "x y z w"), ("a b", "x y")], words=(2, 3)).keys() == {
        ("a", "x y"),
        ("a b", "x y z w"),
    }
    assert dropped([(" ab ", "xyz"), ("abcd", "x"), ("하늘", "abcde")], characters=(2, 4)).keys() == {
        ("abcd", "x"),
        ("하늘", "abcde"),
    }
    for pair in random_pairs():
        sizes = [len(regex.findall(r"\S+", side)) for side in pair]
        assert (pair in dropped([pair], words=(2, 5))) == (min(sizes) < 2 or max(sizes) > 5)


def test_the_ratio_is_of_the_longer_side_and_short_ones_have_none():
    assert dropped([("a" * 21, "b" * 10), ("b" * 10, "a" * 21)], max_ratio=2.0).keys() == {
        ("a" * 21, "b" * 10),
        ("b" * 10, "a" * 21),
    }
    assert not dropped([("a" * 20, "b"), ("a" * 40, "b" * 20), ("  " + "a" * 20, "b")], max_ratio=2.0)


def test_copies_are_the_same_text_white_space_around_it_aside():
    pairs = [(" ant bee", "ant bee "), ("ant bee", "ant  bee"), ("Ant", "ant")]
    assert dropped(pairs, copies=True) == {pairs[0]: "copies"}


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("de", "Größe 12 犬", "собака a"),
        ("ru", "собака ist a", "Der Hund"),
        ("ko", "하늘이 sky", "이 sky blue"),
        ("ja", "犬がいる", "cats 犬"),
        ("zh", "狗在这里 a", "two dogs 狗"),
        ("sr-Latn", "pas je tu", "пас је ту"),
        ("zh_Hant", "狗", "dog"),
        ("el", "σκύλος", "dog"),
        ("hi", "कुत्ता", "dog"),
        ("bn", "কুকুর", "dog"),
        ("or", "କୁକୁର", "dog"),
        ("ar", "كلب", "dog"),
        ("am", "ውሻ", "dog"),
    ],
)
def test_a_text_of_another_script_is_dropped(language, good, bad):
    pairs = [(good, "dog"), (bad, "dog"), ("12 !", "dog")]
    assert dropped(pairs, (language, "en"), script=True) == {(bad, "dog"): "script"}
    turned = [(target, source) for source, target in pairs]
    assert dropped(turned, ("en", language), script=True) == {("dog", bad): "script"}


def test_the_majority_of_letters_is_that_of_unicode_properties():
    """By `regex`, which has Unicode's own table of scripts."""
    compared = 0
    for source, target in random_pairs():
        latin = len(regex.findall(r"[\p{Script=Latin}&&\p{L}]", source, regex.V1))
        letters = len(regex.findall(r"\p{L}", source))
        if 2 * latin > letters or letters >= 3 * latin + 1:
            compared += 1
            wanted = not 2 * latin > letters
            assert ((source, "dog") in dropped([(source, "dog")], script=True)) == wanted, (source, target)
    assert compared > 100


MARKUP = '<a target="_top" href="text/swriter/main.html">{}</a>'


@pytest.mark.parametrize(
    ("source", "target", "is_dropped"),
    [
        (MARKUP.format("Wrap"), MARKUP.format("순환"), False),
        (MARKUP.format("Wrap the text"), MARKUP.format("Wrap the text"), True),
        (MARKUP.format("Wrap the text"), MARKUP.format("Wrap text"), True),
        ("Print LibreOffice Impress version", "LibreOffice Impress 버전", False),
        ("NetworkManager runs", "NetworkManager가 동작합니다", False),
        ("Configuration (*.cfg)", "구성 (*.cfg)", False),
        ("LibreOffice", "LibreOffice", False),
        ("Print", "Print", True),
        ("THREE STEPS", "THREE STEPS", True),
        ("See =SUM(A1)", "See =SUM(A1)", True),
        (MARKUP.format("WORKDAY"), MARKUP.format("WORKDAY"), False),
        ("HTTP", "HTML", True),
        ("Read https://example.org/some/page first", "https://example.org/some/page 먼저", False),
        ("at %(position)s", "위치 %(position)s", False),
        ("%(position)s", "%(position)s", False),
        (r"&Undo\tCtrl+Z", r"실행 취소(&U)\tCtrl+Z", False),
        ("M_yPaint Brush", "MyPaint 붓(_Y)", False),
        ("Interchange (EPSI)", "교환(ESPI)", False),  # a syllable counts as three letters
        ("Interchange (EPSI)", "Exchange 표(ESPI)", True),
        (MARKUP.format("Command") + "+Page Up", MARKUP.format("Command ") + " + Page Up", False),
        ("The row must be selected.", "Die Zeile muss markiert sein.", True),
    ],
)
def test_letters_of_markup_and_of_names_are_not_judged(source, target, is_dropped):
    assert bool(dropped([(source, target)], ("en", "ko"), script=True)) == is_dropped
    assert bool(dropped([(target, source)], ("ko", "en"), script=True)) == is_dropped


@pytest.mark.parametrize(
    "text",
    [
        "=SUM(A1;B2)",
        "GetBaseName",
        "com.sun.star.Name",
        "GMT-12",
        "Ctrl+Shift+Page Up",
        "ISPMT",
        "user_home",
        "%1 kHz",
        "2,000",
        '<img alt="a b">',
    ],
)
def test_a_copy_that_has_nothing_to_translate_is_kept(text):
    assert dropped([(text, text), (f" {text}", text)], ("en", "ko"), copies=True, script=True) == {}


@pytest.mark.parametrize(
    "text", ["Merge cells", "Key", "mkv", "see =SUM(A1)", "Grün", "собака", "犬", "하늘", "KITE OF KAWELO"]
)
def test_a_copy_of_words_is_dropped(text):
    assert dropped([(text, text)], ("en", "de"), copies=True) == {(text, text): "copies"}


def test_every_language_of_babel_has_a_script_and_others_are_told():
    for code in ("en", "ko", "ja", "zh", "ka", "hy", "th", "km", "my", "si", "ta", "te", "kn", "ml", "gu", "pa", "lo"):
        assert script_name(code).isupper(), code
    with pytest.raises(UserError, match=r"'source' isn't a known language code; set data\.source"):
        script_name("source")


@pytest.mark.parametrize(
    ("code", "name"),
    [("zh_TW", "CJK"), ("zho", "CJK"), ("DE-at", "LATIN"), ("sr_Latn", "LATIN"), ("pa-PK", "ARABIC")],
)
def test_codes_with_script_and_region(code, name):
    assert script_name(code) == name


def test_what_overlaps_with_held_out_text_is_dropped():
    held_out = [("ein Hund", "a dog"), ("", "blank")]
    pairs = [("ein Hund ", "a dog"), ("ein Hund", "a cat"), ("eine Katze", " a dog"), ("ein", "dog"), ("", "")]
    assert dropped(pairs, held_out=held_out, overlap="pair").keys() == {pairs[0]}
    assert dropped(pairs, held_out=held_out, overlap="side").keys() == set(pairs[:3])


def test_a_language_is_told_by_lingua():
    pytest.importorskip("lingua")
    german = "Der Hund läuft über die große Wiese und sucht seinen Ball."
    english = "The dog runs across the large meadow and looks for his ball."
    dutch = "De hond rent over de grote weide en zoekt naar zijn bal."
    pairs = [(german, english), (english, english), (german, german), (dutch, english)]
    assert dropped([("Use Count", "Use Count"), ("Weight", "Braid")], ("de", "de"), language=0.1) == {}, "too short"
    for codes in (("de", "en"), ("de_AT", "eng"), ("deu", "EN-us")):
        assert dropped(pairs, codes, language=0.1).keys() == set(pairs[1:])
    with pytest.raises(UserError, match="lingua doesn't know the language 'xx'"):
        dropped(pairs, ("xx", "en"), language=0.1)


def test_without_lingua_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lingua", None)
    with pytest.raises(UserError, match=r"pip install 'headway\[detect\]'"):
        dropped([], language=0.5)
