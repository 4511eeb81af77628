"""Documents of LibreOffice (OpenDocument), and paragraphs whose words stand between their elements, as in XLIFF."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

from lxml import etree  # type: ignore[attr-defined]

from headway.documents.archives import local_name, open_archive
from headway.documents.marked import Mark, MarkedText, Piece
from headway.documents.segments import Languages, OpenedFile, Put, Segment

LEFT_OUT = frozenset({"", "proofErr", "lastRenderedPageBreak", "soft-page-break"})
_BREAKS = frozenset({"br", "cr", "tab", "ptab", "line-break"})
AROUND = frozenset({"hyperlink", "ins", "moveTo", "smartTag", "sdt", "span", "a", "g", "mrk", "pc", "hi"})
"""Elements that enclose words."""
_UNFORMATTED = etree.XPath(
    "//*[local-name()='style'][*][not(*[local-name()!='text-properties' or * or @*[local-name()!='rsid']])]"
)
"""Styles that note an editing session and nothing else."""
_STAYS = etree.XPath(
    "../@*[local-name()='formula' or (local-name()='value-type' and .!='string')]"
    " | ancestor::*[local-name()='deletion']"
    " | parent::*[local-name()='g']/parent::*[local-name()='table-cell']"
)
"""Places of paragraphs that aren't translated: a cell of which they show the number, the date or the formula; deleted
text; a cell of a chart, for which they name a range of cells."""
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_PARAGRAPHS = (
    *("{*}p", "{*}h", "{*}index-title-template", "{*}header-decl", "{*}footer-decl"),
    *(f"{_SVG}title", f"{_SVG}desc"),
)


@dataclass(eq=False)
class Thing:
    """The content of a mark: an element around words; the properties of a run, if `is_run`; or elements without
    words, which stand in a run with these properties; or, with others at its end, what begins a field."""

    elements: list[etree._Element]
    is_run: bool = False
    properties: etree._Element | None = None
    ends: Sequence[etree._Element] = ()


def alone(thing: Thing) -> Mark[Thing]:
    return Mark(thing, "break" if local_name(thing.elements[0]) in _BREAKS else "alone")


def name_of(element: etree._Element) -> tuple[str, dict[str, str]]:
    return element.tag, dict(element.attrib)


class MixedParagraph:
    """A paragraph whose words stand between its elements, of OpenDocument and XLIFF."""

    def __init__(self, element: etree._Element, unformatted: frozenset[str] = frozenset()) -> None:
        """unformatted: styles that change nothing."""
        self._element = element
        self.text = MarkedText(_pieces_of_mixed(element, unformatted))

    def write(self, translation: str) -> None:
        self.write_into(self._element, translation)

    def write_into(self, element: etree._Element, translation: str) -> None:
        """Writes a translation in place of what an element holds. If it is another one, the paragraph stays, and its
        elements without words are copied."""
        element[:] = []
        element.text = None
        opened = [element]
        for piece in self.text.restored(translation):
            parent = opened[-1]
            if isinstance(piece, str):
                last = next(parent.iterchildren(reversed=True), None)  # `len` would count them all
                if last is not None:
                    last.tail = (last.tail or "") + piece
                else:
                    parent.text = (parent.text or "") + piece
            elif piece.place == "end":
                opened.pop()
            elif piece.place == "begin":
                opened.append(etree.SubElement(parent, *name_of(piece.thing.elements[0])))
            else:
                [alone] = piece.thing.elements
                alone = alone if element is self._element else deepcopy(alone)
                alone.tail = None
                parent.append(alone)


def _pieces_of_mixed(element: etree._Element, unformatted: frozenset[str]) -> Iterator[Piece[Thing]]:
    if element.text:
        yield element.text
    for child in element:
        name = local_name(child)
        if name == "span" and _style_name(child) in unformatted:
            yield from _pieces_of_mixed(child, unformatted)
        elif name in AROUND:
            thing = Thing([child])
            yield Mark(thing, "begin")
            yield from _pieces_of_mixed(child, unformatted)
            yield Mark(thing, "end")
        elif name not in LEFT_OUT:
            yield alone(Thing([child]))
        if child.tail:
            yield child.tail


def _style_name(element: etree._Element) -> str:
    return next((value for name, value in element.items() if etree.QName(name).localname in ("style-name", "name")), "")


def open_odf(data: bytes, _: Languages) -> OpenedFile:
    """Writer, Calc and Impress, and the charts in their documents."""
    return open_archive(data, r"(?:.*/)?(content|styles)\.xml", _texts)


def _texts(roots: Sequence[etree._Element]) -> Iterator[tuple[Segment, Put]]:
    for root in roots:
        unformatted = frozenset(map(_style_name, _UNFORMATTED(root)))
        for one in root.iter(*_PARAGRAPHS):
            if (len(one) or one.text) and not _STAYS(one):
                found = MixedParagraph(one, unformatted)
                yield found.text.segment, found.write
