"""List markers stay outside of sentences; dates, and numbers that a dot makes ordinal, in them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpora.dates import dates_corpus
from headway.documents.parsing import parse_document
from headway.documents.sentences import ORDINAL_DOT, marker_length

MARKERS = [
    *("1.", "12.", "1)", "(1)", "[1]", "1.2.3", "1.2.3.", "1.2.3)", "a)", "(a)", "a.", "B.", "iv)", "IV.", "(ii)"),
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
TIGHT = ["①", "•", "・", "（1）", "（一）", "1、", "一、", "1．", "1）", "（ア）"]


def asked(text, language="de", format_="text"):
    """What a model would get."""
    return [one.whole for one in parse_document(text, format_, language).sentences]


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
    assert [one.whole for one in document.sentences] == [sentence]
    assert document.joined([["X"]]) == text.removesuffix(sentence) + "X"


@pytest.mark.parametrize("marker", TIGHT)
def test_signs_of_the_east_need_no_space(marker):
    assert asked(f"{marker}犬が走る。", "ja") == ["犬が走る。"]


@pytest.mark.parametrize("line", [*(one for one in MARKERS if one != "가."), *TIGHT, "  2) ", "- 1."])
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
    assert [one.whole for one in document.sentences] == wholes


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "-5 Grad"),
        ("de", "3. März 2026"),
        ("de", "1. Mai"),
        ("de-AT", "1. Jänner war Neujahr."),
        ("de", "3. Okt. 1990"),
        ("de", "1. bis 5. Mai"),
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
        ("ko", ["정답은 5.", "그다음은 무엇인가?"]),
    ],
)
def test_other_numbers_end_a_sentence(language, sentences):
    assert asked(" ".join(sentences), language) == sentences
