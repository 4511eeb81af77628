"""Office documents: Word, PowerPoint and Excel (Office Open XML).

A segment is a paragraph, or the text of a cell. Whatever isn't words is a mark: formatting that isn't the usual one of
the paragraph, links, tabs, notes, pictures, fields.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import accumulate
from typing import TypeAlias

from lxml import etree  # type: ignore[attr-defined]

from headway.documents.archives import local_name, open_archive
from headway.documents.marked import Mark, MarkedText, Piece, Tag, shown
from headway.documents.opendocument import AROUND, LEFT_OUT, MixedParagraph, Thing, alone, name_of
from headway.documents.segments import Languages, OpenedFile, Put, Segment

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_STARTS = frozenset({"pPr", "bookmarkStart", "commentRangeStart", "permStart"})
_ENDS = frozenset({"endParaRPr", "rPh", "phoneticPr", "bookmarkEnd", "commentRangeEnd", "permEnd"})
"""Elements that stay at the beginning and at the end of a paragraph."""
_UNASKED = re.compile("_(?!Ref)|OLE_LINK")
"""Names of bookmarks that no user has set, except those of cross-references."""
_WORDS = {"t": "", "noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
"""Elements of a run that are words or characters of these."""
_JOINTS = " \t\n\u00a0-\u2013\u2014,.:;!?/()[]'\"\u2018\u2019\u201c\u201d\u201e\u2026"
"""Characters whose formatting is given up where no word has it: the model gets them with the words around."""
_UNDERLINE = re.compile(rb":u |'u'")
_PROMPTS = etree.XPath(
    "/*[local-name()='sldMaster' or local-name()='sldLayout']"
    "//*[local-name()='sp'][*/*/*[local-name()='ph']]//*[local-name()='p']"
)
"""Texts in the placeholders of a master or a layout, which no slide shows."""
_OF_CHARTS = etree.XPath(
    "//*[local-name()='chartSpace']//*[local-name()='v'][not(ancestor::*[starts-with(local-name(),'num')])]"
    " | //*[local-name()='strDim']//*[local-name()='pt']"
)
_OF_HEADERS = etree.XPath("//*[local-name()='headerFooter']/*[text()]")
_CODE = re.compile(r"""((?<!&)(?:&&)*+&(?:[A-JL-Z+-]|"[^"]*"|\d+|K(?:[\dA-Fa-f]{6}|\d\d[+-]\d{3})))""")
_LONGEST_HEADER = 255
"""Characters of a header; Excel reads no file with a longer one."""
_SHOWN = ("descr", "title", "string")
"""Attributes with a text in place of a picture, and with that of WordArt."""
_TEXT = re.compile(r"(?!.*\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|svg)$).", re.IGNORECASE | re.DOTALL)
"""Text in place of a picture, but not the name of its file."""


_Found: TypeAlias = tuple[etree._Element | None, Piece[Thing]]
"""Words or a mark, and the properties of their run."""


class _Paragraph:
    """A paragraph of runs, of Office Open XML."""

    def __init__(self, element: etree._Element) -> None:
        self._element = element
        found = list(_pieces_of_runs(element))
        sizes = Counter[bytes]()
        for properties, piece in found:
            sizes[_canonical(properties)] += len(piece) if isinstance(piece, str) else 0
        usual = max(sizes, key=sizes.__getitem__, default=b"")
        self._usual = next((one for one, _ in found if _canonical(one) == usual), None)
        self.text = MarkedText(_with_formatting(found, usual))

    def write(self, translation: str) -> None:
        children = list(self._element)
        made = etree.Element("made")
        opened, properties = [made], [self._usual]
        for piece in self.text.restored(translation):
            if isinstance(piece, str):
                self._add_words(piece, opened[-1], properties[-1])
            elif piece.place == "break" and not piece.thing.elements:
                self._add_words("\n", opened[-1], properties[-1])
            elif piece.place == "end":
                stack = properties if piece.thing.is_run else opened
                del stack[max(1, len(stack) - 1) :]  # bookmarks may overlap others, and end first
                opened[-1].extend(piece.thing.ends)
            elif piece.place == "begin" and piece.thing.is_run:
                properties.append(piece.thing.properties)
            elif piece.place == "begin" and piece.thing.ends:
                opened[-1].extend(piece.thing.elements)
                opened.append(opened[-1])
            elif piece.place == "begin":
                opened.append(_reopened(opened[-1], piece.thing.elements[0]))
            elif piece.thing.is_run:
                opened[-1].append(self._run(piece.thing.properties, *piece.thing.elements))
            else:
                opened[-1].extend(piece.thing.elements)
        words = list(made)
        if local_name(self._element) in ("si", "is") and [len(one) for one in words] == [1]:  # without formatting
            words = list(words[0])
        children = [one for one in children if one.getparent() is self._element]  # the others are among the words
        starts = [one for one in children if local_name(one) in _STARTS]
        self._element[:] = [*starts, *words, *(one for one in children if local_name(one) in _ENDS)]

    def _add_words(self, text: str, parent: etree._Element, properties: etree._Element | None) -> None:
        """Adds a run, or lengthens the last one if a line break of a cell goes before or after it."""
        last = parent[-1][-1] if len(parent) and len(parent[-1]) else None
        if last is not None and last.tag == self._named("t") and "\n" in (text, (last.text or "")[-1:]):
            last.text = (last.text or "") + text
        else:
            parent.append(self._run(properties, self._words(text)))

    def _run(self, properties: etree._Element | None, *content: etree._Element) -> etree._Element:
        run = etree.Element(self._named("r"))
        run.extend([*([] if properties is None else [deepcopy(properties)]), *content])
        return run

    def _words(self, text: str) -> etree._Element:
        element = etree.Element(self._named("t"))
        element.text = text
        if "drawingml" not in element.tag:
            element.set(_SPACE, "preserve")
        return element

    def _named(self, name: str) -> str:
        return f"{{{etree.QName(self._element).namespace}}}{name}"


def _pieces_of_runs(parent: etree._Element, *, is_whole: bool = True) -> Iterator[_Found]:
    """is_whole: whether the parent is the paragraph, which keeps what stays at its ends."""
    children = list(_with_whole_fields(list(parent)))
    bookmarks = _bookmarks(children) if is_whole else {}
    for child in children:
        if isinstance(child, Mark) or child in bookmarks:
            yield None, child if isinstance(child, Mark) else bookmarks[child]
            continue
        name = local_name(child)
        if name in LEFT_OUT or (is_whole and name in _STARTS | _ENDS):
            continue
        elif name == "r":
            properties = next((one for one in child if local_name(one) == "rPr"), None)
            for one in child:
                if local_name(one) in _WORDS:
                    yield from _lines(_WORDS[local_name(one)] or one.text or "", properties)
                elif one is not properties and local_name(one) not in LEFT_OUT:
                    yield properties, alone(Thing([one], True, properties))
        elif name == "t":  # of a cell without runs
            yield from _lines(child.text or "")
        elif name in AROUND or (name == "fldSimple" and "HYPERLINK" in "".join(map(str, child.attrib.values()))):
            thing = Thing([child])
            yield None, Mark(thing, "begin")
            content = next(child.iterchildren("{*}sdtContent"), child)
            yield from _pieces_of_runs(content, is_whole=False)
            yield None, Mark(thing, "end")
        else:
            yield None, alone(Thing([child]))


def _bookmarks(children: Sequence[etree._Element | Mark[Thing]]) -> dict[etree._Element, Mark[Thing]]:
    """Both ends of the bookmarks around some of the words, such as the number of a caption, which fields elsewhere
    show. All others stay at the ends of the paragraph, as do those that Word sets unasked."""
    said = [0, *accumulate(isinstance(one, Mark) or any(map(str.strip, one.itertext())) for one in children)]
    places: dict[str, int] = {}
    found: dict[etree._Element, Mark[Thing]] = {}
    for place, child in enumerate(children):
        if isinstance(child, Mark) or local_name(child) not in ("bookmarkStart", "bookmarkEnd"):
            continue
        number, name = (child.get(f"{{{etree.QName(child).namespace}}}{one}", "") for one in ("id", "name"))
        if local_name(child) == "bookmarkStart" and not _UNASKED.match(name):
            places[number] = place
        elif local_name(child) == "bookmarkEnd" and number in places:
            start = places.pop(number)
            if 0 < said[place] - said[start] < said[-1]:
                thing = Thing([children[start]], ends=[child])
                found |= {children[start]: Mark(thing, "begin"), child: Mark(thing, "end")}
    return found


def _lines(text: str, properties: etree._Element | None = None) -> Iterator[_Found]:
    for number, line in enumerate(text.split("\n")):
        if number:
            yield properties, Mark(Thing([], True, properties), "break")
        yield properties, line


def _with_whole_fields(children: list[etree._Element]) -> Iterator[etree._Element | Mark[Thing]]:
    """The children one by one, but those of a field, such as a page number, as a mark. The text of a link isn't in the
    mark, nor is that of a field of several paragraphs, such as a table of contents."""
    spans: dict[int, tuple[int, int | None]] = {}  # of each field where it begins, its text begins, and it ends
    opened: list[int] = []
    for place, child in enumerate(children):
        ended = False
        for one in child if local_name(child) == "r" else ():
            kind = next(iter(one.attrib.values()), "") if local_name(one) == "fldChar" else ""
            if kind == "begin":
                opened.append(place)
                spans[place] = len(children), None
            elif kind and not opened:
                spans[place] = place + 1, None
            elif kind == "separate":
                spans[opened[-1]] = min(spans[opened[-1]][0], place + 1), None
            elif kind == "end":  # of one of two fields that end in the same run, the outer one stays whole
                spans[opened[-1]] = len(children) if ended else spans[opened[-1]][0], place
                opened.pop()
                ended = True
    links: dict[int, Thing] = {}
    place = 0
    while place < len(children):
        text, end = spans.get(place, (place, place))
        if place in links:
            yield Mark(links[place], "end")
            place += 1
        elif text == place:
            yield children[place]
            place += 1
        elif end is not None and text <= end and _is_link(children[place:text]):
            links[end] = Thing(children[place:text], ends=[children[end]])
            yield Mark(links[end], "begin")
            place = text
        else:
            after = text if end is None else end + 1
            yield Mark(Thing(children[place:after]))
            place = after


def _is_link(codes: Sequence[etree._Element]) -> bool:
    """Whether these begin a field whose text is that of the document."""
    instruction = "".join(part.text or "" for one in codes for part in one.iter("{*}instrText"))
    return re.match(r"\s*(HYPERLINK|TOC)\b", instruction) is not None


def _with_formatting(found: Iterable[_Found], usual: bytes) -> Iterator[Piece[Thing]]:
    """The pieces, with marks around the words whose properties aren't the usual ones."""
    form, thing = usual, Thing([])
    for properties, piece in found:
        wanted = _canonical(properties) if isinstance(piece, str) else usual
        is_joint = isinstance(piece, str) and not piece.strip(None if wanted == usual else _JOINTS)
        if wanted != form and not (is_joint and not _UNDERLINE.search(wanted)):
            if form != usual:
                yield Mark(thing, "end")
            form, thing = wanted, Thing([], True, properties)
            if form != usual:
                yield Mark(thing, "begin")
        yield piece
    if form != usual:
        yield Mark(thing, "end")


def _canonical(properties: etree._Element | None) -> bytes:
    """The properties as bytes, without the language of spelling checks."""
    if properties is None:
        return b""
    kept = [etree.tostring(one, with_tail=False) for one in properties if local_name(one) not in ("lang", "noProof")]
    attributes = {name: value for name, value in properties.items() if name not in ("lang", "dirty", "err", "altLang")}
    return b"".join([repr(sorted(attributes.items())).encode(), *kept]) if kept or attributes else b""


def _reopened(parent: etree._Element, around: etree._Element) -> etree._Element:
    """A new element like one around words, where these go; a content control has properties in front of them."""
    made = etree.SubElement(parent, *name_of(around))
    if local_name(around) != "sdt":
        return made
    for child in around:
        made.append(etree.Element(*name_of(child)) if local_name(child) == "sdtContent" else deepcopy(child))
    return next(made.iterchildren("{*}sdtContent"), made)


def _texts(roots: Sequence[etree._Element]) -> Iterator[tuple[Segment, Put]]:
    """The texts of files of Office Open XML: paragraphs, cells and comments, names and categories in charts, texts in
    place of pictures, and the headers of sheets. Headings of tables stay, because formulas refer to them."""
    headings = {one.get("name") for root in roots for one in root.iter("{*}tableColumn")}
    for root in roots:
        prompts = frozenset(_PROMPTS(root))
        for one in (*root.iter("{*}p", "{*}si", "{*}is", "{*}text"), *_OF_CHARTS(root)):
            text = "".join(one.itertext())
            if text and text not in headings and one not in prompts:
                found = _Paragraph(one) if len(one) else MixedParagraph(one)
                yield found.text.segment, found.write
        for one in root.iter("{*}docPr", "{*}cNvPr", "{*}textpath"):
            shown_texts = ((name, one.get(name, "")) for name in _SHOWN)
            yield from ((Segment(text), partial(one.set, name)) for name, text in shown_texts if _TEXT.match(text))
        yield from map(_header, _OF_HEADERS(root))


def _header(element: etree._Element) -> tuple[Segment, Put]:
    """A header of a sheet, whose three parts and fields begin with `&`."""
    parts = enumerate(_CODE.split(element.text or ""))
    text = MarkedText(
        Mark(Tag(part), "break" if part.lstrip("&")[0] in "LCR" else "alone") if place % 2 else part.replace("&&", "&")
        for place, part in parts
    )

    def put(translation: str) -> None:
        made = shown(text.restored(translation), lambda part: part.replace("&", "&&"))
        element.text = made if len(made) <= _LONGEST_HEADER else element.text

    return text.segment, put


def open_docx(data: bytes, _: Languages) -> OpenedFile:
    """Word: the text, headers, footers, notes, comments, charts and diagrams."""
    parts = r"word/(document\d*|header\d*|footer\d*|footnotes|endnotes|comments|(charts|diagrams|drawings)/\w+)\.xml"
    return open_archive(data, parts, _texts)


def open_pptx(data: bytes, _: Languages) -> OpenedFile:
    """PowerPoint: slides with their charts, diagrams, notes and comments, and what their masters show on them."""
    parts = r"ppt/(slides|slideMasters|slideLayouts|notesSlides|charts|diagrams|drawings|comments)/\w+\.xml"
    return open_archive(data, parts, _texts)


def open_xlsx(data: bytes, _: Languages) -> OpenedFile:
    """Excel: cells with text, comments, text boxes, charts, diagrams and headers."""
    folders = "worksheets|chartsheets|drawings|charts|diagrams|tables|comments|threadedComments"
    return open_archive(data, rf"xl/(sharedStrings|comments\d*|({folders})/\w+)\.xml", _texts)
