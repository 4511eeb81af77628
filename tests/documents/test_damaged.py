"""Damaged files of every kind are written or refused in one line, whatever the damage."""

import random
import zipfile
from io import BytesIO

import pytest

from headway.documents.kinds import KINDS, open_file
from headway.errors import UserError
from tests.documents.changing import LANGUAGES
from tests.documents.test_kinds import SRT, VTT
from tests.documents.test_messages import PO
from tests.documents.test_office import archive, docx, run
from tests.documents.test_texts import MARKDOWN

PAGE = '<html><meta charset="utf-8"><p>Ein <b>Hund</b> &amp; <br>mehr</p></html>'
ODF = '<o:d xmlns:o="o" xmlns:t="t"><t:p>Ein <t:span t:style-name="T">Hund</t:span><t:tab/><t:a>mehr</t:a></t:p></o:d>'
CELLS = "<sst><si><t>Ein Hund</t></si><si><r><rPr><b/></rPr><t>fett</t></r><r><t> hier</t></r></si></sst>"
SLIDE = '<s xmlns:a="a"><a:p><a:r><a:rPr b="1"/><a:t>Ein</a:t></a:r><a:r><a:t> Titel</a:t></a:r></a:p></s>'
UNIT = '<trans-unit><source>Ein <g id="1">Hund</g><x id="2"/></source></trans-unit>'
UNDAMAGED = {
    "html": PAGE.encode(),
    "srt": SRT.encode(),
    "vtt": VTT.encode(),
    "md": MARKDOWN.encode(),
    "epub": archive(a__xhtml=PAGE, toc__ncx="<ncx><text>Kapitel</text></ncx>", c__opf="<p><title>Buch</title></p>"),
    "eml": "Subject: Gr=?utf-8?q?=C3=BC?=\nContent-Type: text/html; charset=utf-8\n\n<p>Ein Hund ü</p>\n".encode(),
    "po": PO.encode(),
    "xliff": f'<xliff version="1.2"><file source-language="de">{UNIT}</file></xliff>'.encode(),
    "tmx": b'<tmx><body><tu><tuv xml:lang="de"><seg>Ein <ph>x</ph> Hund</seg></tuv></tu></body></tmx>',
    "ts": b'<!DOCTYPE TS>\n<TS><message numerus="yes"><source>%n &amp;Hunde</source></message></TS>',
    "android": b"<resources><string name=\"a\">Ein <b>Hund</b> \\'da\\'</string></resources>",
    "properties": b"# Kommentar\na.b=Ein Hund\nc = gr\\u00fcne \\\n   Wiese\n",
    "json": b'{"a": "Ein Hund", "b": [{"c": "Zwei"}, 3, null]}',
    "docx": docx(run("Ein ") + run("Hund", "<w:b/>") + "<w:r><w:tab/></w:r>", run("Ende")),
    "pptx": archive(ppt___slides___slide1__xml=SLIDE),
    "xlsx": archive(xl___sharedStrings__xml=CELLS),
    **dict.fromkeys(("odt", "ods", "odp"), archive(mimetype="odt", content__xml=ODF)),
}
COUNT = 60


def damaged(data, chance):
    """The bytes with some of them changed, left out, cut off, repeated or with others between them."""
    found, kind = bytearray(data), chance.randrange(5)
    for _ in range(chance.choice([1, 1, 3, 20])):
        place = chance.randrange(len(found) or 1)
        match kind:
            case 0:
                found[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del found[place : place + chance.randrange(1, 50)]
            case 2:
                found[place:place] = chance.choice(
                    [*(b'<>&"{\\'[i : i + 1] for i in range(6)), b"\x00", b"\xff\xfe", b"[" * 80]
                )
            case 3:
                del found[place:]
            case _:
                start = chance.randrange(len(found) or 1)
                found[place:place] = found[start : start + chance.randrange(80)]
    return bytes(found)


def damaged_within(data, chance):
    """An archive with damage in its files, in half of all cases; any other damaged file."""
    if chance.random() < 0.5 or not zipfile.is_zipfile(BytesIO(data)):
        return damaged(data, chance)
    with zipfile.ZipFile(BytesIO(data)) as read:
        parts = {name: damaged(read.read(name), chance) for name in read.namelist()}
    return archive(**parts)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_one_line(kind):
    chance, refused = random.Random(kind), list[str]()
    for _ in range(COUNT):
        data = damaged_within(UNDAMAGED[kind], chance)
        try:
            opened = open_file(kind, data, LANGUAGES, "file")
        except UserError as error:
            refused.append(str(error))
        else:
            opened.written([f"neu {one.text}" for one in opened.segments])
    assert refused
    assert [one for one in refused if not one.startswith("file: ") or "\n" in one] == []


@pytest.mark.parametrize("kind", KINDS)
def test_undamaged_files_are_read(kind):
    assert open_file(kind, UNDAMAGED[kind], LANGUAGES, "file").segments
