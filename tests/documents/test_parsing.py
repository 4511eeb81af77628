"""What isn't words comes back unharmed, whatever the model does."""

import re

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.documents.markup import elements_of
from headway.documents.parsing import parse_document
from headway.text.characters import visible
from headway.text.protected import Atom, with_runs
from tests.documents.wholes import whole_of

ATOMS = [
    "https://example.org/a/b?c=d&e=%20#f",
    "http://localhost:5000",
    "www.example.org",
    "https://de.wikipedia.org/wiki/Köln",
    "first.last+tag@mail.example.co.kr",
    "😀",
    "👩‍👩‍👧‍👦",
    "🇰🇷",
    "👍🏽",
    "1️⃣",
    "❤️",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
]
TEXT = st.lists(
    st.one_of(
        st.sampled_from(ATOMS),
        st.sampled_from(
            [
                " ",
                "\n",
                "\r\n",
                "\t",
                "\u2028",
                "\u00a0",
                "\u00a0.",
                "\u3000. ",
                " X",
                ". ",
                "! ",
                "。",
                ", ",
            ]
        ),
        st.sampled_from(["Ein", "Hund", "läuft", "한국어", "문장입니다", "日本", "z. B.", "Dr."]),
        st.text(max_size=8).filter(lambda text: text.isprintable()),
    ),
    max_size=12,
).map("".join)
TAGS = ["<b>", "</b>", "<p class='x'>", "</p>", "<br>", "<!-- Hund -->", '<a href="u?a=1&amp;b">', "</a>", "<img>"]
WORDS = ["Ein ", "Hund. ", "&lt;b&gt;", " & ", "&amp;", "\n", "<", "ä", "x>"]
UNENDED = re.compile(r"<[A-Za-z][^<>]*(?:<|\Z)")
"""A tag that has no end: it is text to us, and to lxml a tag all the same."""
HTML = (
    st.lists(st.one_of(st.sampled_from(TAGS), st.sampled_from(WORDS)), max_size=14)
    .map("".join)
    .filter(lambda text: not UNENDED.search(text))
)


def itself(text):
    """The alignment of a translation that is a copy."""
    return [(place, place + 1, place, place + 1) for place in range(len(text))]


def copied(document):
    """By a model that gives everything back."""
    return document.joined(
        [
            with_runs(one.elements, [run.strip() for run in one.runs])
            if whole_of(one) is None
            else one.from_whole(whole_of(one), itself(whole_of(one)))
            for one in document.sentences
        ]
    )


def copied_in_runs(document):
    return document.joined([with_runs(one.elements, [run.strip() for run in one.runs]) for one in document.sentences])


def unspaced(text):
    return re.sub(r"\s", "", text)


def readable(most):
    return lambda text: len(text) <= most


@given(TEXT, st.sampled_from(["de", "ko", "ja", "xx"]), st.sampled_from([5, 40, 1000]))
def test_a_text_that_is_copied_is_the_same(text, language, longest):
    document = parse_document(text, "text", language, readable(longest))
    assert unspaced(copied(document)) == unspaced(text), "white space beside an emoji is that of the translation"
    assert copied_in_runs(document) == text
    if not any(isinstance(one, Atom) and one.words is None for one in elements_of(text)):
        assert copied(document) == text


@given(HTML, st.sampled_from([5, 40, 1000]))
def test_html_that_is_copied_says_the_same(text, longest):
    document = parse_document(text, "html", "de", readable(longest))
    assert seen(copied_in_runs(document)) == seen(text)
    found = copied(document)
    assert letters(found) == letters(text), "each letter is in the same elements"
    assert sorted(MARKUP.findall(found)) == sorted(MARKUP.findall(text))


MARKUP = re.compile(r"<!--.*?-->|</?[a-z][^<>]*>")


def letters(text):
    """Each letter with the elements that it is in."""

    def inside(node, around):
        here = (*around, node.tag)
        parts = [(node.text, here)] if isinstance(node.tag, str) else []
        for child in node:
            parts += [*inside(child, here), (child.tail, here)]
        return parts

    parts = inside(lxml.html.fragment_fromstring(text, create_parent="root"), ())
    return [(letter, names) for words, names in parts for letter in words or "" if letter.isalnum()]


def seen(text):
    """What a browser makes of it: texts, tags, attributes, comments."""
    root = lxml.html.fragment_fromstring(text, create_parent="root")
    return lxml.html.tostring(root)


@given(TEXT, st.sampled_from([3, 20, 1000]))
def test_the_model_gets_only_what_it_can_read(text, longest):
    for sentence in parse_document(text, "text", "de", readable(longest)).sentences:
        asked = sentence.runs if whole_of(sentence) is None else [whole_of(sentence)]
        assert all(len(one.strip()) <= longest for one in asked)
        assert all(any(map(str.isalnum, one)) for one in asked)


@pytest.mark.parametrize("atom", ATOMS)
def test_addresses_and_emoji_alone_are_no_words(atom):
    document = parse_document(f"Das ist {atom} von mir.", "text", "de")
    [sentence] = document.sentences
    assert whole_of(sentence) in ("Das ist von mir.", f"Das ist {atom} von mir."), "a translator keeps protected text"
    assert parse_document(f"{atom} {atom}", "text", "de").sentences == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Siehe https://a.de/b.", "https://a.de/b"),
        ("Siehe (https://a.de/b), ja", "https://a.de/b"),
        ("https://a.kr/b에서 왔다", "https://a.kr/b"),
        ("An a.b@c.de, bitte", "a.b@c.de"),
    ],
)
def test_an_address_ends_where_the_text_goes_on(text, address):
    assert address in [one.raw for one in elements_of(text) if isinstance(one, Atom)]
    assert copied(parse_document(text, "text", "de")) == text


def test_sentences_are_sentences():
    text = "Das ist z. B. ein Satz. Dr. Müller kam um 3.5 Uhr!  Ja?\n\n안녕하세요. 저는 학생입니다."
    wanted = ["Das ist z. B. ein Satz.", "Dr. Müller kam um 3.5 Uhr!", "Ja?", "안녕하세요.", "저는 학생입니다."]
    assert [whole_of(one) for one in parse_document(text, "text", "de").sentences] == wanted


SPACES = ["\n", "\r\n", "\t", "\r", "\v", "\f", "\x85", "\u2028", "&#10;", "&NewLine;", "&Tab;"]


@pytest.mark.parametrize("space", SPACES)
def test_white_space_within_a_sentence_is_no_end_of_it(space):
    """In HTML, and in text where it ends no line."""
    html = f"<p>Am Samstag,{space}Dr. Kim kam{space}1956</p>"
    [sentence] = parse_document(html, "html", "de").sentences
    assert visible(whole_of(sentence)) == "Am Samstag, Dr. Kim kam 1956"
    if space not in ("\n", "\r\n") and not space.startswith("&"):
        [sentence] = parse_document(f"Am Samstag,{space}Dr. Kim", "text", "de").sentences
        assert visible(whole_of(sentence)) == "Am Samstag, Dr. Kim"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\u2029"])
def test_lines_and_paragraphs_of_a_text_stay(end):
    document = parse_document(f"Ein Hund{end}eine Katze{end}", "text", "de")
    assert [whole_of(one) for one in document.sentences] == ["Ein Hund", "eine Katze"]
    assert copied(document) == f"Ein Hund{end}eine Katze{end}"


def test_preformatted_text_stays():
    assert copied(parse_document("<pre>a\n\tb</pre>", "html", "de")) == "<pre>a\n\tb</pre>"


def test_sentences_of_a_language_with_a_region():
    text = "Am 3. Mai kam Hr. Dr. Müller an. Er ging."
    wanted = [one.layout.plain for one in parse_document(text, "text", "de").sentences]
    assert len(wanted) == 2
    for code in ("de-DE", "de_AT", "DE", "deu"):
        assert [one.layout.plain for one in parse_document(text, "text", code).sentences] == wanted


def test_what_a_model_says_is_text_and_never_markup():
    document = parse_document("<p>Hund</p>", "html", "de")
    assert document.joined([["<script>alert(1)</script> &amp;"]]) == (
        "<p>&lt;script&gt;alert(1)&lt;/script&gt; &amp;amp;</p>"
    )


@pytest.mark.parametrize(
    "kept",
    [
        "<script>if (a < b) Hund();</script>",
        "<style>Hund { }</style>",
        "<!-- Ein Hund -->",
        "<pre>Ein Hund</pre>",
        '<p translate="no">Ein <b>Hund</b></p>',
        '<div class="x notranslate"><div>Hund</div> läuft</div>',
        "<!DOCTYPE html>",
        '<img alt="Ein Hund">',
    ],
)
def test_what_is_not_to_be_translated_stays(kept):
    document = parse_document(f"<p>Eins</p>{kept}<p>Zwei</p>", "html", "de")
    assert [whole_of(one) for one in document.sentences] == ["Eins", "Zwei"]
    assert document.joined([["One"], ["Two"]]) == f"<p>One</p>{kept}<p>Two</p>"


@pytest.mark.parametrize("text", ["<p><sup>1</sup></p>", "<p>😀 <sup><a>[1]</a></sup> 👍🏽</p>"])
def test_the_number_of_a_note_alone_stays(text):
    document = parse_document(text, "html", "de")
    assert (document.sentences, document.joined([])) == ([], text)


def test_a_note_after_the_full_stop_belongs_to_its_sentence():
    text = "Ein Hund läuft.<sup><a href=1>[1]</a></sup> Eine Katze<sup>2</sup> schläft.<sup>1&lt;2</sup>"
    document = parse_document(text, "html", "de")
    assert [whole_of(one) for one in document.sentences] == ["Ein Hund läuft.", "Eine Katze schläft."]
    assert copied(document) == copied_in_runs(document) == text


def test_entities_are_characters_for_the_model():
    document = parse_document("<p>Ein &lt;Hund&gt; &amp; K&ouml;ter&#33;</p>", "html", "de")
    [sentence] = document.sentences
    assert whole_of(sentence) == "Ein <Hund> & Köter!"


def test_long_words_without_end_are_cut_anywhere():
    document = parse_document("x" * 1000, "text", "de", readable(100))
    assert all(len(whole_of(one)) <= 100 for one in document.sentences)
    assert copied(document) == "x" * 1000


HOSTILE = [
    "<b>",
    "<!--",
    "</",
    "&",
    "a@",
    "www.",
    " a",
    "( ",
    "a. ",
    "http://",
    "<a ",
    '<a b="',
    "<a b='",
    '<a "',
    "<script>",
    '="',
    "<p translate=no>",
    "<div translate=no><ul>",
    "<b>a ",
]
"""Texts that are these again and again have taken parsers long; that they don't is a test of the system."""


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_texts_come_back(unit):
    text = (unit * 5000)[:5000]
    assert unspaced(copied(parse_document(text, "text", "de", readable(500)))) == unspaced(text)


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000", "&nbsp;"])
def test_an_initial_before_a_wide_space_is_no_defect(space, capfd):
    for text in (f"Das ist Plan B{space}.", f"B{space}. Ja", f"Ein Hund. Typ{space}A{space}. Ende"):
        document = parse_document(text, "html" if "&" in space else "text", "de")
        assert copied(document) == text.replace("&nbsp;", "\u00a0")
    assert capfd.readouterr().err == "", "a panic is not to quote a text on standard error"


def test_where_the_splitter_panics_a_block_is_one_sentence(monkeypatch):
    class PanicException(BaseException):
        """As that of pyo3, which is no Exception."""

    def panic(*_):
        raise PanicException

    monkeypatch.setattr("headway.documents.sentences.sentencex.segment", panic)
    sentences = parse_document("Eins. Zwei.\nDrei.", "text", "de").sentences
    assert [whole_of(one) for one in sentences] == ["Eins. Zwei.", "Drei."]


@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        ("Sind Sie <b>Anna</b>?", ["Sind Sie Anna?"]),
        ("<p>Ein <b>Hund</b>. Eine <i>Katze</i></p>", ["Ein Hund.", "Eine Katze"]),
        ("<b>Anna</b> kommt.", ["Anna kommt."]),
        ("<b>Anna kommt.</b>", ["Anna kommt."]),
        ("<b><i>Anna</i> kommt.</b> <br>", ["Anna kommt."]),
        ("<i>Eins. Zwei.</i>", ["Eins.", "Zwei."]),
        ("<b><i>Anna</b></i> kommt", [None]),
    ],
)
def test_a_sentence_keeps_its_end_and_the_partners_of_its_tags(text, wholes):
    document = parse_document(text, "html", "de")
    assert [whole_of(one) for one in document.sentences] == wholes
    assert copied(document) == copied_in_runs(document) == text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Wo bist du 😀?", "Wo bist du?"),
        ("Kennst du https://a.de?", "Kennst du https://a.de?"),
        ("😀 „Ja“, 😀 sagte er 😀.", "„Ja“, sagte er."),
        ("😀 Ein Hund läuft. 😀", "Ein Hund läuft."),
        ("  Ein Hund 😀 ", "Ein Hund"),
    ],
)
def test_what_stands_at_the_edge_stays_outside_but_not_punctuation(text, whole):
    document = parse_document(text, "text", "de")
    assert [whole_of(one) for one in document.sentences] == [whole]
    assert copied(document) == copied_in_runs(document) == text


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("<p translate=no>Eins<p>Zwei</p><p>Drei</p>", ["Zwei", "Drei"]),
        ("<ul><li class=notranslate>A<li>B</ul><p>C</p>", ["B", "C"]),
        ("<ul><li>A<li class='x notranslate'>B</ul><p>C</p>", ["A", "C"]),
        ("<ul><li class=notranslate>A<ul><li>B<li>C</ul>D<li>E</ul>", ["E"]),
        ("<dl><dt translate=no>A<dd>B</dl>", ["B"]),
        ("<table><tr><td translate=no>A<td>B<tr><td>C</table>", ["B", "C"]),
        ("<table><tr><td translate=no>A<table><tr><td>B</table>C<td>D</table>", ["D"]),
        ("<div translate=no>A<div>B</div>C</div>D", ["D"]),
        ("<div translate=no><p>A<p>B</div>C", ["C"]),
        ("<p>A<div translate=no>B</p>C</div>D", ["A", "D"]),
        ("<b>A<div translate=no>B</b>C</div>D", ["A", "D"]),
        ("<svg/><p>Hund</p>", ["Hund"]),
        ("<svg><path/><text>A</text></svg>Hund", ["Hund"]),
        ("<code/>Hund", []),
        ("<p title='say translate=no'>Hund</p>", ["Hund"]),
        ("<p class='notranslate-x'>Hund</p>", ["Hund"]),
        ("<p data-translate=no>Hund</p>", ["Hund"]),
        ("<p CLASS=NoTranslate>Hund</p>", []),
        ("<p a='b'translate=no>Hund</p>", []),
    ],
)
def test_what_is_not_translated_ends_where_a_browser_ends_it(text, translated):
    document = parse_document(text, "html", "de")
    assert [whole_of(one) for one in document.sentences] == translated
    assert copied(document) == text


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\u200e", "\u200b\u00ad"])
@pytest.mark.parametrize("end", ["{} ", " {}", "{}\u00a0", " {} ", "{}\n"])
def test_white_space_beside_invisible_characters_stays(unseen, end):
    """Whatever becomes of the sentences."""
    between = end.format(unseen)
    for format_ in ("text", "html"):
        if format_ == "html" or "\n" not in between:
            document = parse_document(f"{unseen}Ein Hund.{between}Ein Mann.{unseen}", format_, "de")
            assert [whole_of(one) for one in document.sentences] == ["Ein Hund.", "Ein Mann."]
            assert document.joined([["A."], ["B."]]) == f"{unseen}A.{between}B.{unseen}"


@pytest.mark.parametrize("blank", ["\u3164", "\uffa0", "\u115f\u1160", "\u3164.", "\u200b", " \ufeff "])
def test_letters_that_show_nothing_are_no_words(blank):
    for text in (blank, f"{blank}<b>{blank}</b>"):
        document = parse_document(text, "html", "ko")
        assert (document.sentences, document.joined([])) == ([], text)


INSIDE = ["o:p", "x-foo", "g", "nobr", "ruby", "picture", "button", "video", "font", "st1:city"]
BETWEEN = ["div", "td", "li", "h2", "option", "caption", "legend", "summary", "title", "center"]


@pytest.mark.parametrize("name", INSIDE)
def test_an_element_that_is_no_block_stays_in_its_sentence(name):
    text = f"Ein <{name} id=1>Hund</{name}> sieht einen Ball."
    document = parse_document(text, "html", "de")
    assert [whole_of(one) for one in document.sentences] == ["Ein Hund sieht einen Ball."]
    assert copied(document) == text


@pytest.mark.parametrize("name", BETWEEN)
def test_a_block_ends_a_sentence(name):
    document = parse_document(f"Ein Hund<{name}>Ein Mann</{name}>Ein Ball", "html", "de")
    assert [whole_of(one) for one in document.sentences] == ["Ein Hund", "Ein Mann", "Ein Ball"]


@pytest.mark.parametrize(
    "tag",
    [
        *("<input id=1>", "<img>", "<wbr>", "<source>", "<x/>", '<g id="1"/>', "<o:p />"),
        "<svg><path d='x'/><g><path /></g></svg>",
    ],
)
def test_a_tag_without_words_stays_in_its_sentence(tag):
    text = f"Ein {tag} Hund läuft."
    document = parse_document(text, "html", "de")
    assert [whole_of(one) for one in document.sentences] == ["Ein Hund läuft."]
    assert copied(document) == text


def test_the_slash_of_an_address_closes_no_element():
    text = "Ein <a href=https://a.de/>Hund</a> läuft."
    assert copied(parse_document(text, "html", "de")) == text
    assert [whole_of(one) for one in parse_document(text, "html", "de").sentences] == ["Ein Hund läuft."]


@pytest.mark.parametrize("end", ["<b>.</b>", "<span>!</span>", "<i><b>?</b></i>", " <b>.</b>", "<b>。</b>"])
def test_an_end_in_a_tag_is_there_once(end):
    """A model ends each sentence with a full stop."""
    text = f"Ein <i>Hund</i> sieht einen Ball{end} Ein Mann."
    document = parse_document(text, "html", "de")
    first, second = document.sentences
    translation = "Ein Hund sieht einen Ball."
    for found in (
        first.from_whole(translation, itself(translation)),
        with_runs(first.elements, [f"{run}." for run in first.runs]),
    ):
        assert document.joined([found, second.elements]) == text


def test_a_full_stop_stays_where_no_tag_holds_the_end():
    [sentence] = parse_document("Ein <b>Hund</b> läuft", "html", "de").sentences
    found = sentence.from_whole("Ein Hund läuft.", itself("Ein Hund läuft"))
    assert "".join(one if isinstance(one, str) else one.raw for one in found) == "Ein <b>Hund</b> läuft."
