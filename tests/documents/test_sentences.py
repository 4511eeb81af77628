"""List markers stay outside of sentences; dates, and numbers that a dot makes ordinal, in them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpora.dates import dates_corpus
from headway.documents.parsing import parse_document
from headway.documents.sentences import ORDINAL_DOT, marker_length
from tests.documents.wholes import whole_of

MARKERS = [
    *("1.", "12.", "1)", "(1)", "[1]", "1.2.3", "1.2.3.", "1.2.3)", "a)", "(a)", "a.", "B)", "iv)", "IV.", "(ii)"),
    *("1.)", "1).", "1a.", "a.)", "A.)", "i.", "ii.", "iv.", "->", "=>", "»", "α.", "א.", "क.", "১।"),
    *("а)", "α)", "أ)", "א)", "क)", "ア)", "(б)"),
    *(
        "-",
        "--",
        "*",
        "+",
        "#",
        "###",
        ">",
        ">>",
        "•",
        "·",
        "–",
        "—",
        "◦",
        "▪",
        "‣",
        "※",
        "→",
        "■",
        "●",
        "✓",
        "- [ ]",
        "- [x]",
    ),
    *("①", "⑵", "㉠", "가.", "나)", "(다)", "Ⅱ."),
]
TIGHT = [
    *("①", "•", "・", "（1）", "（一）", "1、", "一、", "1．", "1）", "（ア）"),
    *("1.", "12.", "1)", "1.)", "(1)", "ア．", "ア）", "A．", "一.", "●", "■", "※", "→", "✓", "·"),
]


def asked(text, language="de", format_="text"):
    """What a model would get."""
    return [whole_of(one) for one in parse_document(text, format_, language).sentences]


@given(
    st.lists(st.sampled_from(MARKERS), min_size=1, max_size=2).filter(
        lambda some: not some[0].endswith(".") or some[1:] == []
    ),
    st.sampled_from(["", "  ", "\t", "\u3000"]),
    st.sampled_from([" ", "  ", "\t", "\u00a0"]),
    st.sampled_from(["Ein Hund läuft.", "개가 달린다.", "犬"]),
    st.sampled_from(["de", "en", "ko", "ja"]),
)
def test_markers_stay_outside(markers, indent, space, sentence, language):
    text = indent + "".join(marker + space for marker in markers) + sentence
    document = parse_document(text, "text", language)
    assert [whole_of(one) for one in document.sentences] == [sentence]
    assert document.joined([["X"]]) == text.removesuffix(sentence) + "X"


@pytest.mark.parametrize("marker", TIGHT)
@pytest.mark.parametrize("language", ["ja", "zh", "de"])
def test_signs_of_the_east_need_no_space(marker, language):
    assert asked(f"{marker}犬が走る。", language) == ["犬が走る。"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ko", "개가 달린다."),
        ("ru", "Собака бежит."),
        ("el", "Ένας σκύλος."),
        ("en", "A dog runs."),
        ("hi", "कुत्ता दौड़ता है।"),
        ("bn", "কুকুর দৌড়ায়।"),
    ],
)
def test_a_number_before_the_first_letter_is_a_marker(language, text):
    for marker in ("1.", "1)", "12.)", "(3)", "●", "→", "1a. ", "\u200b1."):
        assert asked(f"{marker}{text}", language) == [text]


@pytest.mark.parametrize("unseen", ["\ufeff", "\u200e", "\u200f", "\u200c", "\u2060\u200b"])
def test_invisible_characters_hide_no_marker(unseen):
    for marker in ("1.", "-", "a)", "•", "(1)"):
        for line in (f"{unseen}{marker} ", f"{unseen} {marker}{unseen} ", f"{marker} {unseen}"):
            for format_ in ("text", "html"):
                document = parse_document(f"{line}Ein Hund", format_, "de")
                assert [whole_of(one) for one in document.sentences] == ["Ein Hund"]
                assert document.joined([["X"]]) == f"{line}X".replace(">", "&gt;" if format_ == "html" else ">")


@pytest.mark.parametrize("sign", ["##", "###"])
def test_a_heading_ends_before_its_closing_sign(sign):
    document = parse_document(f"{sign} Ein Hund {sign}", "text", "de")
    assert [whole_of(one) for one in document.sentences] == ["Ein Hund"]
    assert document.joined([["X"]]) == f"{sign} X {sign}"


@pytest.mark.parametrize("format_", ["text", "html"])
@pytest.mark.parametrize("sign", ["♪", "♫", "♩", "♬", "♪♪", "♪ ♫"])
@pytest.mark.parametrize("words", ["Zwei Kinder", "Zwei Kinder lächeln.", "Eins ♪ zwei"])
@pytest.mark.parametrize("space", ["", " ", "\u00a0"])
def test_a_song_keeps_the_signs_around_it(words, sign, space, format_):
    for around in ("{}", "{} ") if format_ == "text" else ("{}", "<i>{}</i>", "<i>{}</i> "):
        text = around.format(f"{sign}{space}{words}{space}{sign}")
        document = parse_document(text, format_, "de")
        assert [whole_of(one) for one in document.sentences] == [words]
        assert document.joined([["X"]]) == text.replace(words, "X")


@pytest.mark.parametrize("line", [*(one for one in MARKERS if one != "가."), *TIGHT, "  2) ", "- 1.", "B."])
def test_a_marker_alone_stays(line):
    assert asked(line) == asked(f"Ein Hund\n{line}")[1:] == []


@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        ("<ol><li>1. Ein Hund</ol>", ["Ein Hund"]),
        ("<p>- Ein Hund<br>- Eine Katze</p>", ["Ein Hund", "Eine Katze"]),
        ("<p><b>1.</b> Ein Hund</p>", ["Ein Hund"]),
        ("<p><b>1. Ein</b> Hund</p>", ["Ein Hund"]),
        ("<p>&bull; Ein Hund. Ja.</p>", ["Ein Hund.", "Ja."]),
    ],
)
def test_markers_in_html(text, wholes):
    document = parse_document(text, "html", "de")
    assert [whole_of(one) for one in document.sentences] == wholes


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "-5 Grad"),
        ("de", "3. März 2026"),
        ("de", "1. Mai"),
        ("de-AT", "1. Jänner war Neujahr."),
        ("de", "3. Okt. 1990"),
        ("de", "1. bis 5. Mai"),
        ("de", "1. - 3. Mai"),
        ("de", "1.–3. Mai"),
        ("de", "3. Okt 2020"),
        ("de", "Es war der 3."),
        ("de", "3. Oktobers"),
        ("de", "3.Oktober"),
        ("de", "1.Liga"),
        ("de", "2.Weltkrieg"),
        ("sl", "3. oktobra"),
        ("sl", "3. marca"),
        ("sr", "3. октобра"),
        ("sr", "3. oktobra"),
        ("lv", "3. oktobrī"),
        ("et", "3. oktoobril"),
        ("fi", "1. toukokuun"),
        ("fr", "M. Dupont chante."),
        ("de", "A. Merkel spielt."),
        ("en", "S. Korea won."),
        ("en", "E. coli is here."),
        ("en", "2.x is old."),
        ("es", "D. Juan vino."),
        ("es", "—Sí, dijo."),
        ("ru", "А. Пушкин писал."),
        ("de", "24.12. ist Weihnachten"),
        ("fi", "3. maaliskuuta 2026"),
        ("cs", "3. března"),
        ("hr", "3. ožujka"),
        ("de", "1.5 Liter Milch"),
        ("de", "z. B. ein Hund"),
        ("de", "d. h. er"),
        ("de", "(Ein Hund) läuft"),
        ("de", "**Ein** Hund"),
        ("de", "#hund"),
        ("de", "„Ein Hund“, sagte er."),
        ("en", "A dog"),
        ("en", "I am a dog."),
        ("ko", "가."),
        ("ja", "3、4日後"),
    ],
)
def test_what_is_no_marker_belongs_to_the_sentence(language, text):
    assert asked(text, language) == [text]


@pytest.mark.parametrize("name", ["Junge", "Marta", "Augen", "Janna", "Dezimalzahlen", "Septett", "Novelle"])
def test_a_word_like_a_month_is_no_date(name):
    for language in ("de", "sl", "sr", "fi", "et", "cs"):
        assert asked(f"1. {name}", language) == [name]


@pytest.mark.parametrize("language", ["en", "de", "ko", "ja", "fr", "cs", "pl", "hu", "tr", "fi", "nb", "ru"])
def test_dates_are_given_to_the_model_whole(language):
    """All that the built-in data writes."""
    pairs = dates_corpus(language, "en", sizes=(400, 1, 1)).pairs["train"]
    for text, _ in pairs:
        assert marker_length(text, language) == 0, text
        if not any(char.isalpha() for char in text):
            assert asked(text, language) == [text]


@pytest.mark.parametrize(
    "pattern",
    [
        *("{d}. {m}. {y}", "{d}.{m}.{y}", "{y}. {m}. {d}.", "{y}-{m}-{d}", "{m}/{d}/{y}", "{d}. {m}.", "{y}.{m}.{d}."),
        *("{d:02}.{m:02}.{y}", "{d:02}. {m:02}. {y}", "{y}. {m:02}. {d:02}.", "{d}.{m}.26"),
    ],
)
def test_dates_in_figures_are_no_markers_in_any_language(pattern):
    random = Random(1)
    for _ in range(50):
        day = pattern.format(y=random.randint(1900, 2100), m=random.randint(1, 12), d=random.randint(1, 31))
        for language in ("de", "en", "ko", "pl", "xx"):
            assert asked(day, language) == asked(f"- {day}", language) == [day]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Am 3. Oktober 1990 war der Tag."),
        ("de-CH", "Im 19. Jahrhundert war es so."),
        ("de", "Ludwig XIV. regierte lange."),
        ("de", "Die (3.) Auflage und die 4. Auflage."),
        ("de", "Vom 24.12. Bis heute."),
        ("hu", "Budapest, 2026. március 3. napján."),
        *((one, "Den 3. Mai 2026 var han her.") for one in sorted(ORDINAL_DOT)),
        *((one, "den 3. mai og den 15. mai var han her.") for one in sorted(ORDINAL_DOT)),
        ("en", "Born on 5. 3. 2026 in Berlin."),
        ("ko", "2026. 3. 5. 오후에 왔다."),
    ],
)
def test_a_dot_after_an_ordinal_ends_no_sentence(language, text):
    assert asked(f"{text} Ja!", language) == [text, "Ja!"]


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Das war im Jahr 1990.", "Danach kam er."]),
        ("de", ["Es kostet 2,50.", "Das ist viel."]),
        ("en", ["I was 3.", "Then he went."]),
        ("en", ["The dog is 5.", "The cat is 3."]),
        ("ko", ["네.", "갑니다."]),
        ("zh", ["好。", "狗在跑。"]),
        ("ko", ["정답은 5.", "그다음은 무엇인가?"]),
    ],
)
def test_other_numbers_end_a_sentence(language, sentences):
    assert asked(" ".join(sentences), language) == sentences
