"""Markdown, books and mail."""

import time
import zipfile
from email import message_from_bytes, policy
from email.message import EmailMessage
from io import BytesIO

import pytest
from markdown_it import MarkdownIt

from headway.errors import UserError
from tests.documents.changing import texts_of, through
from tests.documents.test_office import archive

MARKDOWN = """\
---
title: Ein Hund
---
# Titel *schräg*

Ein Absatz mit **fett** und
[Link](http://a.b "t") und `code`, ![Bild](a.png) <http://u.v> <x@y.z>.

> - Punkt eins
>   weiter
> - zwei

| A | B |
|---|---|
| c \\| d | e |

```
Code bleibt
```

Setext
======
"""


def test_markdown_changes_words_alone():
    made = through("md", MARKDOWN.encode(), str.upper).decode()
    assert made == (
        MARKDOWN.replace("Titel *schräg*", "TITEL *SCHRÄG*")
        .replace("Ein Absatz mit **fett** und\n[Link]", "EIN ABSATZ MIT **FETT** UND [LINK]")
        .replace(") und `code`", ") UND `code`")
        .replace("Punkt eins\n>   weiter\n> - zwei", "PUNKT EINS WEITER\n> - ZWEI")
        .replace("c \\| d | e", "C \\| D | E")
        .replace("Setext", "SETEXT")
    )


EXTENDED = """\
Ein Hund[^1] für $5 und $6, mit $x^2 + y$.

> [^1]: Eine Note
> [^b]: Noch eine

$$
x = text
$$

Wort
: Erklärung

:::warning Titel
Achtung
:::

Zeile eins\\
Zeile zwei
"""


def test_notes_formulas_and_the_like_stay_and_begin_their_lines():
    made = through("md", EXTENDED.encode(), lambda text: text.replace("e", "E")).decode()
    kept = ("text", "y$", ":::warning Titel")
    assert made.splitlines() == [
        line if any(one in line and not line.startswith("Ein") for one in kept) else line.replace("e", "E")
        for line in EXTENDED.splitlines()
    ]
    assert texts_of("md", EXTENDED.encode())[0] == "Ein Hund<x0/> für $5 und $6, mit <x1/>."
    assert texts_of("md", b"Eins\\\nZwei\n") == ["Eins<br x0/>Zwei"]


@pytest.mark.parametrize(
    "words", ["2 * 3 * 4", "a_b_", "[x](y)", "# eins", "1. eins", "- eins", "`", "a | b", "<b>", "*"]
)
def test_words_of_a_translation_are_no_markup(words):
    made = through("md", b"Ein *Hund*\n", lambda part: words if part.strip() == "Hund" else part).decode()
    again = through("md", b"Hund\n", lambda part: words).decode()
    for text in (made, again):
        blocks = MarkdownIt().parse(text)
        assert [one.type for one in blocks] == ["paragraph_open", "inline", "paragraph_close"]
    assert "".join(one.content for one in blocks[1].children) == words


@pytest.mark.parametrize("unit", ["[^a", "![", "*a_ ", "`b``", "> a\n>> b\n"])
def test_markdown_takes_linear_time(unit):
    def seconds(size):
        data, start = unit.encode() * (size // len(unit)), time.process_time()
        texts_of("md", data)
        return time.process_time() - start

    assert seconds(40_000) < 7 * max(*(seconds(10_000) for _ in range(2)), 0.15)


def test_markdown_of_more_than_four_megabytes_is_refused():
    with pytest.raises(UserError, match=r"^file: has 4,194,305 bytes, the limit of Markdown is 4,194,304; divide it$"):
        texts_of("md", b"#" * (2**22 + 1))


def test_books():
    page, made = '<html><body><p>Ein <i id="a">Hund</i>.</p></body></html>', BytesIO()
    contents = "<ncx><text>Erstes Kapitel</text></ncx>"
    package = "<package><dc:title>Das Buch</dc:title><dc:language>de</dc:language></package>"
    with zipfile.ZipFile(made, "w") as written:
        for name, text in (("a.xhtml", page), ("toc.ncx", contents), ("content.opf", package), ("a.css", "p { }")):
            written.writestr(name, text)
    with zipfile.ZipFile(BytesIO(through("epub", made.getvalue(), str.upper))) as found:
        assert found.read("a.xhtml").decode() == page.replace("Ein ", "EIN ").replace("Hund", "HUND")
        assert found.read("toc.ncx").decode() == contents.replace("Erstes Kapitel", "ERSTES KAPITEL")
        assert found.read("content.opf").decode() == package.replace("Das Buch", "DAS BUCH").replace(">de<", ">en<")
        assert found.read("a.css") == b"p { }"


def test_a_book_whose_fonts_alone_are_encrypted_is_translated():
    keys = '<encryption><CipherReference URI="{}"/></encryption>'

    def book(name):
        return archive(**{"META-INF/encryption.xml": keys.format(name), "a/b.xhtml": "<p>Ein Hund</p>"})

    assert texts_of("epub", book("a/font.otf")) == ["<p>Ein Hund</p>"]
    with pytest.raises(UserError, match=r"^file: is protected against copying$"):
        texts_of("epub", book("a/b.xhtml"))


def test_mail():
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "Grüße", "a@b.c"
    mail.set_content("Lieber Hund,\n\ngrüne Wiese.\n", charset="iso-8859-1")
    mail.add_alternative("<p>Lieber <b>Hund</b></p>", subtype="html")
    mail.add_attachment("Anlage", filename="a.txt")
    made = message_from_bytes(through("eml", bytes(mail), str.upper), policy=policy.default)
    assert (made["Subject"], made["From"]) == ("GRÜSSE", "a@b.c")
    parts = [part.get_content().strip() for part in made.walk() if not part.is_multipart()]
    assert parts == ["LIEBER HUND,\n\nGRÜNE WIESE.", "<p>LIEBER <b>HUND</b></p>", "Anlage"]
    hostile = {
        b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\na\n" * 2000: "has more than 1,000 parts",
        b"To: " + b"a <a@b.c>, " * 9000 + b"\n\nx": "has more than 65,536 bytes in its headers",
        b"content-type: a/b;" + b"\n x=y;" * 20_000 + b"\n\nx": "has more than 65,536 bytes in its headers",
    }
    for data, message in hostile.items():
        with pytest.raises(UserError, match=f"^file: {message}$"):
            texts_of("eml", data)
    signed = b"Content-Type: multipart/signed; boundary=x\n\n--x--\n"
    with pytest.raises(UserError, match=r"^file: is signed or encrypted, which a translation can't be$"):
        texts_of("eml", signed)


FLOWED = """\
Lieber Hund, \nhier ist die \nWiese.
 From unten \noder oben.

>> Ein Zitat, das \n>> weitergeht.
> Und \nkeines.
-- \nHund
"""


def flowed(text, delsp):
    kind = f"Content-Type: text/plain; charset=utf-8; format=flowed{'; delsp=yes' * delsp}"
    return f"Subject: Ja\n{kind}\nContent-Transfer-Encoding: 8bit\n\n{text}".encode()


@pytest.mark.parametrize("delsp", [False, True])
def test_paragraphs_of_flowed_mail_are_joined_and_broken_again(delsp):
    text = FLOWED.replace(" \n", "  \n").replace("--  \n", "-- \n") if delsp else FLOWED
    paragraphs = (
        "Lieber Hund, hier ist die Wiese.|From unten oder oben.||>> Ein Zitat, das weitergeht.|> Und |keines.|-- |Hund|"
    )
    assert texts_of("eml", flowed(text, delsp))[1] == paragraphs.replace("|", "\n")
    made = through("eml", flowed(text, delsp), lambda part: part.replace("Wiese", "Wiese " * 30 + "."))
    message = message_from_bytes(made, policy=policy.default)
    assert (message.get_param("format"), message.get_param("delsp")) == ("flowed", "yes" if delsp else None)
    content = message.get_content()
    lines = content.split("\n")
    assert max(map(len, lines)) <= 72 + 1 + delsp
    assert sum(line.endswith("Wiese" + " " * (1 + delsp)) for line in lines) == 2
    assert "\n From unten oder oben.\n" in content
    assert "\n>> Ein Zitat, das weitergeht.\n> Und\n" in content
    assert texts_of("eml", made)[1].replace("Und\n", "Und \n") == paragraphs.replace("|", "\n").replace(
        "Wiese", "Wiese " * 30 + "."
    )


def test_a_long_paragraph_of_flowed_mail_takes_linear_time():
    def seconds(count):
        data, start = flowed("Wort \n" * count, False), time.process_time()
        through("eml", data)
        return time.process_time() - start

    assert min(seconds(20_000) for _ in range(2)) < 8 * max(seconds(5_000), 0.02)


def test_the_headers_of_a_mail_and_its_line_ends_stay_as_they_are():
    mail = (
        "Received: from a.b\n\t(a.b) by c.d;\n\tMon, 1 Jan 2024\nX-Long: " + "wort " * 30 + "ende\n"
        "From: =?ISO-8859-1?Q?Andr=E9?= <a@b.c>\nSubject: Hund\nMIME-Version: 1.0\n"
        'Content-Type: multipart/related; boundary="x"; type="text/html"; start="<a@b>"\n\n'
        '--x\nContent-Type: text/html; charset="utf-8"; name="a.html"\nContent-ID: <a@b>\n'
        "Content-Disposition: inline\n\n<p>Hund</p>\n\n--x\nContent-Type: image/png\nContent-ID: <c>\n\nabc\n\n--x--\n"
    ).replace("\n", "\r\n")
    assert through("eml", mail.encode()) == mail.encode()
    made = through("eml", mail.encode(), str.upper).decode().split("\r\n")
    assert [line for line in mail.split("\r\n") if line not in made] == ["Subject: Hund", "<p>Hund</p>"]
    assert "\n" not in "".join(made)
