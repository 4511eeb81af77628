"""Documents that LibreOffice writes in six formats, translated, and read by it again: the PDF has the words in capitals
at their places, in bold where they were. `make test-office`."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.documents.changing import through

pytestmark = pytest.mark.office
NAMES = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}"'
    for short, name in (
        *((name, f"{name}:1.0") for name in ("office", "text", "style", "table")),
        ("draw", "drawing:1.0"),
        ("fo", "xsl-fo-compatible:1.0"),
        ("svg", "svg-compatible:1.0"),
        ("of", "of:1.2"),
    )
)
BOLD = '<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
PAGE = (
    '<office:automatic-styles><style:page-layout style:name="L"><style:page-layout-properties fo:margin="2cm"/>'
    '<style:header-style/><style:footer-style/></style:page-layout><style:style style:name="F" style:family="graphic">'
    f'<style:graphic-properties style:wrap="none"/></style:style>{BOLD}</office:automatic-styles>'
)
MASTER = (
    '<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="L">'
    "<style:header><text:p>Kopf der Seite</text:p></style:header>"
    "<style:footer><text:p>Seite <text:page-number>1</text:page-number> am Ende</text:p></style:footer>"
    "</style:master-page></office:master-styles>"
)
LINK = '<text:a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:type="simple" xlink:href="{}">{}</text:a>'
NOTE = (
    '<text:note text:note-class="{0}note"><text:note-citation>1</text:note-citation><text:note-body>'
    "<text:p>Die {0}-Note</text:p></text:note-body></text:note>"
)
BOX = (
    '<draw:frame text:anchor-type="paragraph" draw:style-name="F" svg:width="6cm" svg:height="1cm"><draw:text-box>'
    "<text:p>Im Kasten</text:p></draw:text-box></draw:frame>"
)
CONTENTS = (
    '<text:table-of-content text:name="I"><text:table-of-content-source text:outline-level="1">'
    '<text:table-of-content-entry-template text:outline-level="1" text:style-name="Contents_20_1">'
    "<text:index-entry-link-start/><text:index-entry-text/><text:index-entry-tab-stop style:type='right'/>"
    "<text:index-entry-page-number/><text:index-entry-link-end/></text:table-of-content-entry-template>"
    "</text:table-of-content-source><text:index-body>"
    f"<text:p>{LINK.format('#1.Erster Teil|outline', 'Erster Teil<text:tab/>1')}</text:p>"
    f"<text:p>{LINK.format('#2.Zweiter Teil|outline', 'Zweiter Teil<text:tab/>1')}</text:p>"
    "</text:index-body></text:table-of-content>"
)
TEXT = (
    f'{CONTENTS}<text:h text:outline-level="1">Erster Teil</text:h>'
    f'<text:p>Ein <text:span text:style-name="B">fetter</text:span> Hund{NOTE.format("foot")} auf der '
    f"{LINK.format('http://a.b/', 'grünen Wiese')}{NOTE.format('end')}.</text:p><text:p>Vor dem Kasten{BOX}</text:p>"
    '<text:h text:outline-level="1">Zweiter Teil</text:h><text:list><text:list-item><text:p>Ein Punkt</text:p>'
    "</text:list-item></text:list><table:table><table:table-column table:number-columns-repeated='2'/><table:table-row>"
    "<table:table-cell><text:p>links</text:p></table:table-cell><table:table-cell><text:p>rechts</text:p>"
    "</table:table-cell></table:table-row></table:table><text:p>שלום abc עולם</text:p>"
)
SHEET = (
    "<table:table table:name='T'><table:table-row><table:table-cell office:value-type='string'>"
    "<text:p>Ein Hund</text:p></table:table-cell><table:table-cell office:value-type='float' office:value='3'/>"
    "<table:table-cell table:formula='of:=[.B1]*2' office:value-type='float' office:value='6'/></table:table-row>"
    "<table:table-row><table:table-cell office:value-type='string'><text:p>eine <text:span text:style-name='B'>fette"
    "</text:span> Wiese</text:p></table:table-cell></table:table-row></table:table>"
)
SLIDE = (
    "<draw:page draw:name='S'><draw:frame svg:x='2cm' svg:y='2cm' svg:width='20cm' svg:height='3cm'><draw:text-box>"
    "<text:p>Ein <text:span text:style-name='B'>fetter</text:span> Titel</text:p><text:p>und mehr</text:p>"
    "</draw:text-box></draw:frame><draw:frame svg:x='2cm' svg:y='6cm' svg:width='20cm' svg:height='3cm'><table:table>"
    "<table:table-column/><table:table-row><table:table-cell><text:p>in der Zelle</text:p></table:table-cell>"
    "</table:table-row></table:table></draw:frame></draw:page>"
)
FAMILIES = {
    "text": (TEXT, "docx", "odt"),
    "spreadsheet": (SHEET, "xlsx", "ods"),
    "presentation": (SLIDE, "pptx", "odp"),
}
KINDS = [kind for _, *kinds in FAMILIES.values() for kind in kinds]


def office(folder: Path, kind: str, *files: Path) -> None:
    """Converts the files into the folder."""
    profile = f"-env:UserInstallation=file://{folder / 'profile'}"
    command = ["soffice", profile, "--headless", "--convert-to", kind, "--outdir", folder, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PDFs of the documents of each kind, `before.KIND.pdf` and `after.KIND.pdf`."""
    folder = tmp_path_factory.mktemp("office")
    for family, (content, *kinds) in FAMILIES.items():
        flat = folder / f"{family}.xml"
        flat.write_text(
            f'<?xml version="1.0"?><office:document {NAMES} office:version="1.3" '
            f'office:mimetype="application/vnd.oasis.opendocument.{family}">{PAGE}{MASTER * (family == "text")}'
            f"<office:body><office:{family}>{content}</office:{family}></office:body></office:document>"
        )
        for kind in kinds:
            office(folder, kind, flat)
            made = folder / f"{family}.{kind}"
            (folder / f"after.{kind}.{kind}").write_bytes(through(kind, made.read_bytes(), str.upper))
            made.rename(folder / f"before.{kind}.{kind}")
    office(folder, "pdf", *(folder / f"{name}.{kind}.{kind}" for kind in KINDS for name in ("before", "after")))
    return folder


def words(pdf: Path) -> list[tuple[str, int, bool]]:
    """The words in their order, each with its page and whether it is bold; without the header that sheets have and
    the number of an endnote."""
    command = ["pdftohtml", "-xml", "-i", "-stdout", pdf]
    pages = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("<page ")[1:]
    return [
        (word, number, "<b>" in part)
        for number, page in enumerate(pages)
        for line in re.findall("<text [^>]*>(.*)</text>", page)
        for part in re.split("(<b>.*?</b>)", re.sub("</?[ai][^>]*>", "", line))
        for word in re.sub("<[^>]*>", "", part).split()
        if word.upper() not in ("PAGE", "I")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_of_libreoffice_is_read_by_it_again(folder: Path, kind: str) -> None:
    before, after = (words(folder / f"{name}.{kind}.pdf") for name in ("before", "after"))
    assert Counter((text.upper(), *rest) for text, *rest in before) == Counter(after)
    assert any(is_bold for *_, is_bold in after)
    shown = " ".join(text for text, *_ in after)
    expected = {
        "text": ["KOPF DER SEITE", "SEITE 1 AM ENDE", "FOOT-NOTE", "END-NOTE", "IM KASTEN", "LINKS", "EIN PUNKT"],
        "spreadsheet": ["EIN HUND", "3 6", "EINE FETTE WIESE"],
        "presentation": ["EIN FETTER TITEL", "UND MEHR", "IN DER ZELLE"],
    }
    [family] = [name for name, (_, *kinds) in FAMILIES.items() if kind in kinds]
    assert [one for one in expected[family] if one not in shown] == []
