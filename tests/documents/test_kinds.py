"""Files of each kind: their texts come back translated, and everything else as it was."""

from contextlib import suppress

import pytest

from headway.documents.kinds import KINDS, kind_of, open_file
from headway.errors import UserError
from tests.documents.changing import LANGUAGES, through

SRT = (
    "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Ein Hund läuft\r\nüber die Wiese.</i>\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,500 X1:10\r\n- Ja & <3.\r\n- {\\an8}Nein.\r\n"
)
VTT = (
    "WEBVTT - Titel\n\nNOTE Ein Hund\n\nSTYLE\n::cue { color: red }\n\nerste\n00:01.000 --> 00:02.000 align:start\n"
    "<v Bob>Hallo &amp; <c.laut>guten</c> Tag\n\n1:00:03.000 --> 1:00:04.000\nEins <00:01.500>zwei.\n"
)


def test_a_file_is_known_by_its_name():
    assert (kind_of("a/b.SRT"), kind_of("a.htm")) == ("srt", "html")
    assert [kind_of(name) for name in ("-", "a", "a.txt", "a.de", "a.srt.gz", "srt", ".srt")] == [None] * 7
    with pytest.raises(UserError, match=r"^a.pdf: .pdf is not translated; convert it first: pdftotext$"):
        kind_of("a.pdf")


@pytest.mark.parametrize(("kind", "text"), [("srt", SRT), ("vtt", VTT)])
def test_a_model_that_copies_copies_all_but_line_breaks(kind, text):
    copied = through(kind, text.encode()).decode()
    assert copied.split() == text.split()
    assert [line for line in copied.splitlines() if "-->" in line] == [
        line for line in text.splitlines() if "-->" in line
    ]


def test_words_of_subtitles_change_and_nothing_else():
    assert through("srt", SRT.encode(), str.upper).decode() == (
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>EIN HUND LÄUFT ÜBER DIE WIESE.</i>\r\n\r\n"
        "2\r\n00:00:03,000 --> 00:00:04,500 X1:10\r\n- JA & <3.\r\n- {\\an8}NEIN.\r\n"
    )
    assert through("vtt", VTT.encode(), str.upper).decode() == VTT.replace("Hallo", "HALLO").replace(
        ">guten</c> Tag", ">GUTEN</c> TAG"
    ).replace("Eins <00:01.500>zwei", "EINS <00:01.500>ZWEI")


def test_a_film_without_speech_stays_as_it_is():
    assert through("vtt", b"WEBVTT\n\nNOTE Ein Hund\n") == b"WEBVTT\n\nNOTE Ein Hund\n"
    assert through("srt", b"") == b""


def test_long_lines_are_broken_in_the_middle():
    data = b"1\n00:00:01,000 --> 00:00:02,500\nEin Hund.\n"
    made = through("srt", data, lambda _: "wort " * 15).decode().splitlines()
    assert sorted(len(line) for line in made[2:]) == [34, 39]


def test_a_page_keeps_its_encoding():
    page = '<html><meta charset="iso-8859-1"><p>Grün</p></html>'
    assert through("html", page.encode("latin-1")).decode("latin-1") == page
    made = through("html", page.encode("latin-1"), lambda text: text.replace("Grün", "초록"))
    assert "<p>&#52488;&#47197;</p>" in made.decode("latin-1")
    assert through("html", b"\xff\xfe" + page.encode("utf-16-le")) == b"\xff\xfe" + page.encode("utf-16-le")


def test_a_page_without_special_letters_says_nothing_of_its_encoding():
    for charset, made in (("ISO-8859-1", "&#52488;&#47197;"), ("UTF-8", "초록")):
        page = f'<html><meta charset="{charset}"><p>Wiese</p></html>'
        said = through("html", page.encode(), lambda text: text.replace("Wiese", "초록")).decode()
        assert said == page.replace("Wiese", made)


def test_a_page_names_the_new_language():
    page = '<html class=a lang="{0}-AT" xml:lang={0}><p lang="{0}" hreflang="de">Ein<b lang="la">ad hoc</b></p></html>'
    assert through("html", page.format("de").encode()).decode() == page.format("en").replace("-AT", "")
    assert through("html", b"<HTML LANG=fr><p lang='fr'>Oui</p>").decode() == "<HTML LANG=en><p lang='fr'>Oui</p>"


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("srt", b"Ein Hund\n", "file: has no times such as 00:00:01,000 --> 00:00:02,500"),
        ("srt", b"1\n\xff\n", "file: line 2 is not UTF-8; convert the file to UTF-8"),
        ("vtt", b"1\n", "file: a WebVTT file begins with WEBVTT"),
        ("html", b'<meta charset="none-such">\xff', "file: damaged, or no html file: unknown encoding: none-such"),
        ("doc", b"", f"there is no kind 'doc' of file; there are {', '.join(KINDS)}, and lines"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(kind, data, message):
    with pytest.raises(UserError) as caught:
        open_file(kind, data, LANGUAGES, "file")
    assert str(caught.value) == message


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_is_written_or_refused(kind):
    with suppress(UserError):
        assert through(kind, b"") == b""
