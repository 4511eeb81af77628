"""Office documents, read back by other readers."""

import re
import zipfile
from io import BytesIO
from xml.etree import ElementTree

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table

from headway.documents.archives import rewrite_archive
from headway.documents.kinds import open_file
from headway.documents.parsing import parse_document
from headway.errors import UserError
from tests.documents.changing import LANGUAGES, texts_of, through
from tests.documents.wholes import whole_of

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
OFFICE, TEXT, STYLE = (f"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0" for name in ("office", "text", "style"))
FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'


def archive(**parts):
    """An archive of files, whose names have dots and slashes in place of two and three underscores."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in parts.items():
            written.writestr(name.replace("___", "/").replace("__", "."), content)
    return made.getvalue()


def part(data, name):
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return archive.read(name).decode()


def docx(*paragraphs):
    body = "".join(f"<w:p>{one}</w:p>" for one in paragraphs)
    document = f'<w:document xmlns:w="{W}" xmlns:r="{R}"><w:body>{body}</w:body></w:document>'
    return archive(word___document__xml=document, word___media___picture="\x01")


def run(text, properties=""):
    return f'<w:r>{properties and f"<w:rPr>{properties}</w:rPr>"}<w:t xml:space="preserve">{text}</w:t></w:r>'


def runs_of(data):
    """Of each paragraph the words of its runs, each with whether it is bold; what isn't words by its name."""
    root, found = ElementTree.fromstring(part(data, "word/document.xml")), []
    for paragraph in root.iter(f"{{{W}}}p"):
        found.append([])
        for one in paragraph.iter(f"{{{W}}}r"):
            is_bold = one.find(f"{{{W}}}rPr/{{{W}}}b") is not None
            for child in one:
                name = child.tag.partition("}")[2]
                if name != "rPr":
                    found[-1].append((child.text, is_bold) if name == "t" else (name, is_bold))
    return found


def test_runs_that_spelling_checks_have_cut_are_one_text():
    cut = run("Ein Hu", '<w:lang w:val="de"/>') + "<w:proofErr/>" + run("nd") + run(" läuft", "<w:noProof/>")
    assert texts_of("docx", docx(cut)) == ["Ein Hund läuft"]
    assert runs_of(through("docx", docx(cut), str.upper)) == [[("EIN HUND LÄUFT", False)]]


def test_formatting_stays_with_its_words_and_the_rest_where_it_is():
    paragraph = (
        '<w:pPr><w:jc w:val="center"/></w:pPr>'
        + run("Ein ")
        + run("fetter", "<w:b/>")
        + run(" Hund &amp; ")
        + f'<w:hyperlink r:id="r1">{run("eine")}{run(" Wiese")}</w:hyperlink>'
        + "<w:r><w:tab/></w:r>"
        + run("Ende.")
    )
    data = docx(paragraph)
    assert texts_of("docx", data) == ["Ein <x0>fetter</x0> Hund &amp; <x1>eine Wiese</x1><br x2/>Ende."]
    made = through("docx", data, str.upper)
    [runs] = runs_of(made)
    assert runs == [
        ("EIN ", False),
        ("FETTER", True),
        (" HUND & ", False),
        ("EINE WIESE", False),
        ("tab", False),
        ("ENDE.", False),
    ]
    text = part(made, "word/document.xml")
    assert text.index('<w:jc w:val="center"/>') < text.index("EIN ")
    assert '<w:hyperlink r:id="r1"><w:r><w:t xml:space="preserve">EINE WIESE</w:t></w:r></w:hyperlink>' in text
    assert part(made, "word/media/picture") == "\x01"


def test_lines_and_columns_are_sentences_of_their_own():
    data = docx(run("Ein Hund") + "<w:r><w:br/></w:r>" + run("Zwei Hunde") + "<w:r><w:tab/></w:r>" + run("Drei"))
    [text] = texts_of("docx", data)
    sentences = [
        whole_of(one) for one in parse_document(text, "html", "de", lambda _: True).parts if not isinstance(one, str)
    ]
    assert sentences == ["Ein Hund", "Zwei Hunde", "Drei"]
    [runs] = runs_of(through("docx", data, str.upper))
    assert [name for name, _ in runs] == ["EIN HUND", "br", "ZWEI HUNDE", "tab", "DREI"]


def test_hyphens_are_characters_of_their_words():
    data = docx(
        run("E") + "<w:r><w:noBreakHyphen/></w:r>" + run("Mail, Schiff") + "<w:r><w:softHyphen/></w:r>" + run("fahrt")
    )
    assert texts_of("docx", data) == ["E\u2011Mail, Schiff\u00adfahrt"]


def test_content_controls_and_moved_words():
    control = f'<w:sdt><w:sdtPr><w:alias w:val="x"/></w:sdtPr><w:sdtContent>{run("ein Hund")}</w:sdtContent></w:sdt>'
    moved = f"<w:moveFrom>{run('alt')}</w:moveFrom><w:moveTo>{run('neu')}</w:moveTo>"
    data = docx(run("Hier ist ") + control + run(".") + moved)
    assert texts_of("docx", data) == ["Hier ist <x0>ein Hund</x0>.<x1/><x2>neu</x2>"]
    made = part(through("docx", data, str.upper), "word/document.xml")
    assert control.replace("ein Hund", "EIN HUND") + run(".") + moved.replace("neu", "NEU") in made


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("docx", "word/document2.xml"),
        ("docx", "word/charts/chart1.xml"),
        ("docx", "word/diagrams/data1.xml"),
        ("pptx", "ppt/charts/chart1.xml"),
        ("xlsx", "xl/charts/chart1.xml"),
        ("xlsx", "xl/drawings/drawing1.xml"),
    ],
)
def test_other_files_with_paragraphs(kind, name):
    data = archive(**{name: f'<p:x xmlns:p="p" xmlns:a="{A}"><a:p><a:r><a:t>Ein Titel</a:t></a:r></a:p></p:x>'})
    assert "<a:t>EIN TITEL</a:t>" in part(through(kind, data, str.upper), name)


def test_cells_of_several_lines_and_comments():
    book, made = openpyxl.Workbook(), BytesIO()
    book.active["A1"] = "Ein Hund\n\nZwei Hunde"
    book.active["A1"].comment = Comment("Eine Notiz", "Max")
    book.save(made)
    assert texts_of("xlsx", made.getvalue())[0] == "Ein Hund<br x0/><br x1/>Zwei Hunde"
    changed = through("xlsx", made.getvalue(), str.upper)
    cell = openpyxl.load_workbook(BytesIO(changed)).active["A1"]
    assert (cell.value, cell.comment.text) == ("EIN HUND\n\nZWEI HUNDE", "EINE NOTIZ")
    assert part(changed, "xl/worksheets/sheet1.xml").count("</t>") == 1


def test_the_usual_formatting_needs_no_marks():
    assert texts_of("docx", docx(run("Alles fett, ", "<w:b/>") + run("alles.", "<w:b/>"))) == ["Alles fett, alles."]


BEGIN, SEPARATE, END = map(FIELD.format, ("begin", "separate", "end"))


def field(code, result):
    return f"{BEGIN}<w:r><w:instrText>{code}</w:instrText></w:r>{SEPARATE}{result}{END}"


def test_fields_stay_whole():
    data = docx(run("Seite ") + field("PAGE", run("7")) + run(" von vielen"))
    assert texts_of("docx", data) == ["Seite <x0/> von vielen"]
    [runs] = runs_of(through("docx", data, str.upper))
    assert [text for text, _ in runs] == ["SEITE ", "fldChar", "instrText", "fldChar", "7", "fldChar", " VON VIELEN"]
    both = "<w:r><w:fldChar w:fldCharType='end'/><w:fldChar w:fldCharType='end'/></w:r>"
    nested = field('HYPERLINK "a"', run("Ziel ") + field("REF b", run("eins"))).removesuffix(END + END) + both
    assert texts_of("docx", docx(nested + run("Ende"))) == ["<x0/>Ende"]
    made = part(through("docx", docx(nested + run("Ende")), str.upper), "word/document.xml")
    assert nested.replace("'", '"') + run("ENDE") in made


def test_words_of_links_that_are_fields_are_translated():
    link = field('HYPERLINK "http://a.b"', run("eine ") + run("Wiese", "<w:b/>") + field("PAGEREF c", run("7")))
    data = docx(run("Hier ist ") + link + run("."))
    assert texts_of("docx", data) == ["Hier ist <x0>eine <x1>Wiese</x1><x2/></x0>."]
    made = part(through("docx", data, str.upper), "word/document.xml")
    expected = link.replace("eine", "EINE").replace("Wiese", "WIESE")
    assert run("HIER IST ") + expected + run(".") in made
    simple = f'<w:fldSimple w:instr=" HYPERLINK a">{run("eine Wiese")}</w:fldSimple>'
    assert texts_of("docx", docx(simple)) == ["<x0>eine Wiese</x0>"]


def test_a_table_of_contents_is_translated():
    """A field of several paragraphs, whose first and last have its marks in them."""
    first, middle, last = (
        run(f"{name} Teil") + "<w:r><w:tab/></w:r>" + field("PAGEREF a", run("1")) for name in ("Erster", "2.", "3.")
    )
    [begin, end] = field("TOC \\h", "|").split("|")
    data = docx("<w:pPr/>" + begin + first, middle, last, end, run("danach"))
    assert texts_of("docx", data)[0].replace("<x0/>", "") == "Erster Teil<br x1/><x2/>"
    made = through("docx", data, str.upper)
    expected = part(data, "word/document.xml").replace("Erster", "ERSTER").replace("Teil", "TEIL")
    assert part(made, "word/document.xml").endswith(expected.replace("danach", "DANACH") + "\n")


def test_slides():
    shape = '<a:p><a:r><a:t>Ein </a:t></a:r><a:r><a:rPr b="1"/><a:t>Titel</a:t></a:r><a:endParaRPr lang="de"/></a:p>'
    data = archive(ppt___slides___slide1__xml=f'<p:sld xmlns:p="p" xmlns:a="{A}">{shape}</p:sld>')
    assert texts_of("pptx", data) == ["Ein <x0>Titel</x0>"] or texts_of("pptx", data) == ["<x0>Ein </x0>Titel"]
    made = part(through("pptx", data, str.upper), "ppt/slides/slide1.xml")
    assert '<a:r><a:t>EIN </a:t></a:r><a:r><a:rPr b="1"/><a:t>TITEL</a:t></a:r><a:endParaRPr lang="de"/></a:p>' in made


def test_cells_but_no_numbers_formulas_and_headings_of_tables():
    book, made = openpyxl.Workbook(), BytesIO()
    rows = [["Name", "Menge"], ["Ein Hund", 3], ["=B2*2", 4.5]]
    for row in rows:
        book.active.append(row)
    book.active.add_table(Table(displayName="T", ref="A1:B3"))
    book.save(made)
    found = openpyxl.load_workbook(BytesIO(through("xlsx", made.getvalue(), str.upper))).active
    assert [[cell.value for cell in row] for row in found.rows] == [rows[0], ["EIN HUND", 3], rows[2]]


def test_open_documents():
    styles = (
        '<style:style style:name="T1"><style:text-properties o:rsid="1"/></style:style>'
        '<style:style style:name="T2"><style:text-properties o:weight="bold" o:rsid="2"/></style:style>'
    )
    words = (
        '<text:p>Ein <text:span text:style-name="T1">Hu</text:span>nd <text:span text:style-name="T2">läuft</text:span>'
        "<text:line-break/><text:note><text:p>Eine Note</text:p></text:note> und "
        '<text:a href="x">weiter</text:a>.</text:p>'
    )
    names = f'xmlns:office="{OFFICE}" xmlns:text="{TEXT}" xmlns:style="{STYLE}" xmlns:o="o"'
    data = archive(mimetype="odt", content__xml=f"<office:document {names}>{styles}{words}</office:document>")
    assert texts_of("odt", data) == ["Ein Hund <x0>läuft</x0><br x1/><x2/> und <x3>weiter</x3>.", "Eine Note"]
    made = part(through("odt", data, str.upper), "content.xml")
    assert (
        '<text:p>EIN HUND <text:span text:style-name="T2">LÄUFT</text:span><text:line-break/>'
        '<text:note><text:p>EINE NOTE</text:p></text:note> UND <text:a href="x">WEITER</text:a>.</text:p>'
    ) in made


def test_numbers_and_formulas_of_an_open_spreadsheet_stay():
    def cell(text, attributes):
        return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"

    cells = (
        cell("Ein Hund", 'office:value-type="string"')
        + cell("4,5 kg", 'office:value-type="float" office:value="4.5"')
        + cell("Ein Hund", 'office:value-type="string" table:formula="of:=[.A1]"')
        + cell("", "")
    )
    names = f'xmlns:office="{OFFICE}" xmlns:text="{TEXT}" xmlns:table="table"'
    data = archive(content__xml=f"<office:document {names}>{cells}</office:document>")
    assert texts_of("ods", data) == ["Ein Hund"]


def test_files_of_an_archive_keep_their_order_and_packing():
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        written.writestr("mimetype", "a", zipfile.ZIP_STORED)
        written.writestr("b", "b" * 99, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(BytesIO(rewrite_archive(made.getvalue(), {"b": b"new"}))) as found:
        assert [(one.filename, one.compress_type) for one in found.infolist()] == [("mimetype", 0), ("b", 8)]
        assert (found.read("mimetype"), found.read("b")) == (b"a", b"new")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no archive", "damaged, or no docx file: File is not a zip file"),
        (archive(a="b"), "holds no text of such a document"),
        (archive(word___document__xml="<a>"), "damaged, or no docx file: "),
        (archive(word___document__xml='<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>'), "declares entities"),
        (
            archive(word___document__xml='<!DOCTYPE a [<!ENTITY e SYSTEM "/etc/passwd">]><a>&e;</a>'),
            "declares entities",
        ),
        (
            archive(**{"META-INF/manifest.xml": "<m:encryption-data/>"}, content__xml="\x01"),
            "is encrypted; save it without a ",
        ),
        (b"\xd0\xcf\x11\xe0\0" + "EncryptedPackage".encode("utf-16-le"), "is encrypted; save it without a password"),
        (archive(bomb="0" * (201 << 20)), "has 210,763,776 bytes when unpacked, the limit is 209,715,200"),
    ],
)
def test_hostile_files_are_one_line(data, message):
    with pytest.raises(UserError) as caught:
        texts_of("docx", data)
    assert str(caught.value).startswith(f"file: {message}")
    assert "\n" not in str(caught.value)


def test_formatting_of_a_colon_alone_is_given_up_but_no_line_to_fill_in():
    cut = run("Stufe 1", "<w:b/>") + run(": ", "<w:i/>") + run("Kennwort und mehr")
    assert texts_of("docx", docx(cut)) == ["<x0>Stufe 1: </x0>Kennwort und mehr"]
    cut = run("Hier sind ") + run("Hund", "<w:b/>") + run(", ") + run("Kuh", "<w:b/>")
    assert texts_of("docx", docx(cut)) == ["Hier sind <x0>Hund</x0>, <x1>Kuh</x1>"]
    line = run("      ", '<w:u w:val="single"/>')
    assert texts_of("docx", docx(run("Name: ") + line + run("Datum"))) == ["Name: <x0>      </x0>Datum"]


DGM, DSP = (
    f"http://schemas.{name}/diagram"
    for name in ("openxmlformats.org/drawingml/2006", "microsoft.com/office/drawing/2008")
)
C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
PARAGRAPH = '<a:p><a:r><a:rPr lang="de-DE"/><a:t>{}</a:t></a:r></a:p>'
SMART_ART = {
    "diagrams/data1.xml": (
        f'<dgm:dataModel xmlns:dgm="{DGM}" xmlns:a="{A}"><dgm:ptLst><dgm:pt modelId="{{1}}" type="doc"><dgm:prSet/>'
        f'</dgm:pt><dgm:pt modelId="{{2}}"><dgm:prSet phldrT="[Text]"/><dgm:spPr/><dgm:t><a:bodyPr/><a:lstStyle/>'
        f"{PARAGRAPH.format('Ein Hund')}</dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
    ),
    "diagrams/drawing1.xml": (
        f'<dsp:drawing xmlns:dsp="{DSP}" xmlns:a="{A}"><dsp:spTree><dsp:sp modelId="{{3}}"><dsp:txBody><a:bodyPr/>'
        f"{PARAGRAPH.format('Ein Hund')}</dsp:txBody></dsp:sp></dsp:spTree></dsp:drawing>"
    ),
    "diagrams/layout1.xml": f'<dgm:layoutDef xmlns:dgm="{DGM}"><dgm:title val="Liste"/></dgm:layoutDef>',
}
CACHE = "<c:{0}><c:f>Tabelle1!$A$2</c:f><c:{1}><c:ptCount val='1'/><c:pt idx='0'><c:v>{2}</c:v></c:pt></c:{1}></c:{0}>"
CHART = {
    "charts/chart1.xml": (
        f'<c:chartSpace xmlns:c="{C}" xmlns:a="{A}"><c:chart><c:title><c:tx><c:rich>{PARAGRAPH.format("Ein Titel")}'
        f"</c:rich></c:tx></c:title><c:ser><c:tx>{CACHE.format('strRef', 'strCache', 'Eine Reihe')}</c:tx>"
        f"<c:cat>{CACHE.format('strRef', 'strCache', 'Eine Art')}</c:cat>"
        f"<c:val>{CACHE.format('numRef', 'numCache', '4.3')}</c:val></c:ser>"
        "<c:ser><c:tx><c:v>Ein Name</c:v></c:tx></c:ser></c:chart></c:chartSpace>"
    ),
    "charts/chartEx1.xml": (
        "<cx:chartSpace xmlns:cx='cx'><cx:chartData><cx:data id='0'><cx:strDim type='cat'><cx:f>Tabelle1!$A$2</cx:f>"
        "<cx:lvl ptCount='1'><cx:pt idx='0'>Ein Ast</cx:pt></cx:lvl></cx:strDim><cx:numDim type='size'>"
        "<cx:lvl ptCount='1'><cx:pt idx='0'>7</cx:pt></cx:lvl></cx:numDim></cx:data></cx:chartData></cx:chartSpace>"
    ),
}


@pytest.mark.parametrize(("kind", "folder"), [("docx", "word"), ("pptx", "ppt"), ("xlsx", "xl")])
def test_smart_art_and_charts(kind, folder):
    parts = {f"{folder}/{name}": content for name, content in (SMART_ART | CHART).items()}
    data = archive(**parts)
    texts = ["Ein Hund", "Ein Hund", "Ein Titel", "Eine Reihe", "Eine Art", "Ein Name", "Ein Ast"]
    assert texts_of(kind, data) == texts
    made = through(kind, data, str.upper)
    for name, content in parts.items():
        wanted = re.sub("(?<=>)(Ein[^<]*)", lambda text: text[0].upper(), content)
        assert ElementTree.canonicalize(part(made, name)) == ElementTree.canonicalize(wanted)


def test_texts_in_place_of_pictures_and_word_art():
    names = f'xmlns:w="{W}" xmlns:wp="wp" xmlns:v="v"'
    picture = (
        '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="Grafik 1" descr="Ein Hund"/><pic:cNvPr xmlns:pic="pic" '
        r'id="2" name="" descr="C:\a b\c.PNG"/></wp:inline></w:drawing></w:r>'
    )
    word_art = '<w:r><w:pict><v:shape><v:textpath string="ENTWURF"/></v:shape></w:pict></w:r>'
    header = f"<w:hdr {names}><w:p>{picture}{word_art}</w:p></w:hdr>"
    data = archive(word___header1__xml=header)
    assert texts_of("docx", data) == ["Ein Hund", "ENTWURF"]
    made = part(through("docx", data, str.lower), "word/header1.xml")
    assert made.endswith(header.replace("Ein Hund", "ein hund").replace("ENTWURF", "entwurf") + "\n")


def test_masters_show_what_is_no_placeholder():
    shape = "<p:sp><p:nvSpPr><p:cNvPr id='1' name='x'/><p:nvPr>{}</p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>"
    shapes = shape.format("<p:ph type='title'/>", PARAGRAPH.format("Titel bearbeiten"))
    shapes += shape.format("", PARAGRAPH.format("Streng vertraulich"))
    names = f'xmlns:p="p" xmlns:a="{A}"'
    for name, root, texts in (
        ("slideMasters/slideMaster1", "sldMaster", ["Streng vertraulich"]),
        ("slideLayouts/slideLayout1", "sldLayout", ["Streng vertraulich"]),
        ("slides/slide1", "sld", ["Titel bearbeiten", "Streng vertraulich"]),
    ):
        assert texts_of("pptx", archive(**{f"ppt/{name}.xml": f"<p:{root} {names}>{shapes}</p:{root}>"})) == texts


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("pptx", "ppt/comments/comment1.xml", "<p:cm xmlns:p='p'><p:pos x='1'/><p:text>Ein Hund</p:text></p:cm>"),
        (
            "pptx",
            "ppt/comments/modernComment_100_0.xml",
            f"<m:cm xmlns:m='m' xmlns:a='{A}'><m:txBody>{PARAGRAPH.format('Ein Hund')}</m:txBody></m:cm>",
        ),
        (
            "xlsx",
            "xl/threadedComments/threadedComment1.xml",
            "<ThreadedComments><threadedComment ref='A1'><text>Ein Hund</text></threadedComment></ThreadedComments>",
        ),
    ],
)
def test_comments(kind, name, content):
    data = archive(**{name: content})
    assert texts_of(kind, data) == ["Ein Hund"]
    assert ">EIN HUND<" in part(through(kind, data, str.upper), name)


def test_headers_of_sheets_keep_their_codes():
    header = (
        '&amp;L&amp;"Arial,Fett"&amp;12Ein Hund &amp;&amp; mehr&amp;CSeite &amp;P von &amp;N&amp;R&amp;K00-024&amp;D'
    )
    data = archive(xl___worksheets___sheet1__xml=f"<w><headerFooter><oddHeader>{header}</oddHeader></headerFooter></w>")
    assert texts_of("xlsx", data) == [
        "<br x0/><x1/><x2/>Ein Hund &amp; mehr<br x3/>Seite <x4/> von <x5/><br x6/><x7/><x8/>"
    ]
    made = part(through("xlsx", data, str.upper), "xl/worksheets/sheet1.xml")
    wanted = (
        header.replace("Ein Hund", "EIN HUND").replace("mehr", "MEHR").replace("Seite", "SEITE").replace("von", "VON")
    )
    assert wanted in made
    assert header in part(through("xlsx", data, lambda text: text * 99), "xl/worksheets/sheet1.xml")


def test_charts_and_pictures_of_open_documents():
    svg = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
    names = f'xmlns:office="{OFFICE}" xmlns:text="{TEXT}" xmlns:svg="{svg}" xmlns:draw="draw" xmlns:table="table"'
    picture = (
        "<draw:frame draw:name='x'><draw:image/><svg:title>Bild</svg:title><svg:desc>Ein Hund</svg:desc></draw:frame>"
    )
    deleted = "<text:tracked-changes><text:deletion><text:p>Gelöscht</text:p></text:deletion></text:tracked-changes>"
    cell = "<table:table-cell><text:p>Reihe</text:p><draw:g><svg:desc>T.A1:T.B2</svg:desc></draw:g></table:table-cell>"
    data = archive(
        content__xml=f"<office:document {names}>{deleted}<text:p>{picture}</text:p></office:document>",
        **{"Object 1/content.xml": f"<office:document {names}>{cell}</office:document>"},
    )
    assert texts_of("odt", data) == ["<x0/>", "Bild", "Ein Hund", "Reihe"]
    made = through("odt", data, str.upper)
    assert "<svg:title>BILD</svg:title><svg:desc>EIN HUND</svg:desc>" in part(made, "content.xml")
    assert cell.replace("Reihe", "REIHE") in part(made, "Object 1/content.xml")


def test_bookmarks_stay_around_the_words_that_fields_show():
    def marked(number, name, words):
        return f'<w:bookmarkStart w:id="{number}" w:name="{name}"/>{words}<w:bookmarkEnd w:id="{number}"/>'

    label = run("Abbildung ") + field("SEQ Abbildung", run("1"))
    caption = marked(1, "_Ref1", label) + run(": Ein Hund")
    assert texts_of("docx", docx(caption)) == ["<x0>Abbildung <x1/></x0>: Ein Hund"]
    made = part(through("docx", docx(caption), str.upper), "word/document.xml")
    assert caption.replace("Abbildung ", "ABBILDUNG ", 1).replace("Ein Hund", "EIN HUND") in made
    for name in ("_GoBack", "_Hlk1", "OLE_LINK1"):
        assert texts_of("docx", docx(marked(1, name, run("Ein")) + run(" Hund"))) == ["Ein Hund"]
    assert texts_of("docx", docx(marked(1, "_Ref1", run("Ein Hund")))) == ["Ein Hund"]
    overlapping = (
        '<w:bookmarkStart w:id="1" w:name="a"/>' + run("Ein ") + '<w:bookmarkStart w:id="2" w:name="b"/>' + run("Hund ")
    )
    overlapping += '<w:bookmarkEnd w:id="1"/>' + run("läuft") + '<w:bookmarkEnd w:id="2"/>'
    data = docx(overlapping)
    for order in ("<x0>A<x1>B</x0>C</x1>", "</x1>A</x0>B<x0><x1>C"):
        made = part(open_file("docx", data, LANGUAGES, "file").written([order]), "word/document.xml")
        assert made.count("bookmarkStart") == made.count("bookmarkEnd") == 2


def test_a_cell_may_become_empty():
    data = archive(xl___sharedStrings__xml="<sst><si><t>Ein Hund</t></si><si><r><t>Zwei</t></r></si></sst>")
    assert texts_of("xlsx", through("xlsx", data, lambda _: "")) == []
