"""Messages of programs: gettext's .po, Qt's .ts, Android's strings.xml, .properties and .json.

Where a file has both languages, messages without a translation get one that is marked as not yet reviewed, and all
others stay. Where it has one, all of its messages are replaced.
"""

import json
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[attr-defined]

from headway.data.memories import parse_catalogue
from headway.documents.archives import parse_xml, write_xml
from headway.documents.office import MixedParagraph
from headway.documents.segments import Languages, OpenedFile, Segment, decode_text
from headway.errors import UserError
from headway.text.protected import has_words, split_protected

logging.getLogger("translate").addHandler(logging.NullHandler())  # it would write to standard error
_ACCELERATOR = re.compile(
    r"(?<!\S)[^\W_]{0,2}(?P<mark>_)[^\W_]|(?:(?<![\w&])&(?!\w+;)\w|(?<=\w)&(?!\w+;)[a-z\u00df-\u00ff])"
)
MOST_WORDS_OF_LABEL = 8
_BREAK = "<br n/>"
"""A line break in the texts of Android, while they are translated."""
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+")(\s*+:)?')
"""A string of JSON, and the colon behind it if it is a name."""

Write = Callable[[str], object]
"""Puts a translation in its place."""


class Accelerated(NamedTuple):
    """A label of a button or menu without the mark of the letter that one may press, such as `_` or `&`."""

    text: str
    mark: str = ""
    letter: str = ""

    @classmethod
    def of(cls, text: str) -> "Accelerated":
        found = _ACCELERATOR.search(text)
        mark = "" if found is None else found["mark"] or "&"
        if not mark or text.count(mark) > 1 or len(text.split()) > MOST_WORDS_OF_LABEL:
            return cls(text)
        before, after = text.split(mark)
        return cls(before + after, mark, after[0])

    def restored(self, translation: str) -> str:
        """The translation with the mark before the same letter, at the beginning of a word if there is one; else before
        its first Latin letter, or behind it in brackets."""
        if not self.mark or not translation.strip():
            return translation
        elements = split_protected(translation)  # a placeholder such as %d stays whole
        words = "".join(one if isinstance(one, str) else "\0" * len(one.raw) for one in elements)
        letter = re.escape(self.letter)
        for pattern in (rf"\b{letter}", letter, r"[A-Za-z\u00c0-\u024f]" if self.letter.isalpha() else letter):
            if found := re.search(pattern, words, re.IGNORECASE):
                return translation[: found.start()] + self.mark + translation[found.start() :]
        end = len(translation.rstrip(" .\u2026:"))
        return f"{translation[:end]}({self.mark}{self.letter.upper()}){translation[end:]}"


def _opened(found: Sequence[tuple[Segment, Write]], content: Callable[[], bytes]) -> OpenedFile:
    def written(translations: Sequence[str]) -> bytes:
        for (_, write), translation in zip(found, translations, strict=True):
            write(translation)
        return content()

    return OpenedFile([segment for segment, _ in found], written)


def open_po(data: bytes, languages: Languages) -> OpenedFile:
    """gettext: messages without a translation are filled and marked as fuzzy. A header without plural forms gets those
    of the target language where messages have plurals."""
    from translate.lang.factory import getlanguage

    catalogue = parse_catalogue(data)
    if catalogue.parseheader().get("Language") == "":
        catalogue.updateheader(Language=languages.target)
    number = str(catalogue.getheaderplural()[0])
    if not number.isdecimal() and any(unit.hasplural() for unit in catalogue.units):
        language = getlanguage(languages.target.replace("-", "_"))
        number = str(language.nplurals or 2)
        equation = language.pluralequation or "n != 1"
        catalogue.updateheader(add=True, Plural_Forms=f"nplurals={number}; plural={equation};")
    found: list[tuple[Segment, Write]] = []
    for unit in catalogue.units:
        if unit.isheader() or unit.isobsolete() or not unit.istranslatable() or unit.istranslated() or unit.isfuzzy():
            continue
        forms = [Accelerated.of(str(one)) for one in getattr(unit.source, "strings", [unit.source])]
        made: list[str] = []

        def write(text: str, unit: Any = unit, forms: list[Accelerated] = forms, made: list[str] = made) -> None:
            made.append(forms[len(made)].restored(text))
            if len(made) == len(forms):
                count = int(number) if unit.hasplural() else 1
                unit.target = [*made[: count - 1], *made[-1:] * (count - 1)] if count > 1 else made[-1]
                unit.markfuzzy()

        found += [(Segment(one.text), write) for one in forms]
    return _opened(found, lambda: bytes(catalogue))


def open_properties(data: bytes, _: Languages) -> OpenedFile:
    """Java's .properties: in UTF-8 if it has characters of its own in it, else with escapes such as `\\u00fc`."""
    from translate.storage.properties import javautf8file

    try:
        text, has_escapes = data.decode(), data.isascii()
    except UnicodeDecodeError:
        text, has_escapes = data.decode("latin-1"), True
    store: Any = javautf8file()
    store.parse(text.encode())
    units = [unit for unit in store.units if unit.istranslatable() and unit.source]
    if not units and data.strip():
        raise UserError("holds no messages")
    found = [(Segment(str(unit.source)), lambda said, unit=unit: setattr(unit, "target", said)) for unit in units]
    return _opened(found, lambda: _escaped(bytes(store).decode()) if has_escapes else bytes(store))


def _escaped(text: str) -> bytes:
    """The text in ASCII, other characters as the escapes of UTF-16."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass"))
    numbers = (int.from_bytes(units[place : place + 2]) for place in range(0, len(units), 2))
    return "".join(chr(one) if one < 128 else f"\\u{one:04x}" for one in numbers).encode()


def open_json(data: bytes, _: Languages) -> OpenedFile:
    """JSON: every text, but no name."""
    text = decode_text(data)
    json.loads(text.text)  # refuses what is no JSON
    parts = _STRING.split(text.text)  # what stands between strings, a string, whether it is a name; and so on
    is_escaped = text.text.isascii() and "\\u" in text.text
    found: list[tuple[Segment, Write]] = []
    for place in range(1, len(parts), 3):
        parts[place + 1] = parts[place + 1] or ""
        if not parts[place + 1]:
            value: str = json.loads(parts[place])

            def write(said: str, place: int = place, value: str = value) -> None:
                parts[place] = parts[place] if said == value else json.dumps(said, ensure_ascii=is_escaped)

            found.append((Segment(value), write))
    return _opened(found, lambda: text.encoded("".join(parts)))


def open_ts(data: bytes, languages: Languages) -> OpenedFile:
    """Qt: messages without a translation are filled and stay unfinished."""
    root = parse_xml(data)
    if root.tag != "TS":
        raise UserError("is no file of Qt's translators")
    root.set("language", root.get("language") or languages.target)
    found: list[tuple[Segment, Write]] = []
    for message in root.iter("message"):
        source, translation = message.find("source"), message.find("translation")
        if source is None or (translation is not None and translation.get("type") in ("vanished", "obsolete")):
            continue
        if translation is None:
            translation = etree.SubElement(message, "translation", type="unfinished")
        forms = translation.findall("numerusform")
        if message.get("numerus") == "yes" and not forms:
            forms = [etree.SubElement(translation, "numerusform") for _ in range(2)]
        places = [part for one in forms or [translation] for part in one.findall("lengthvariant") or [one]]
        if translation.get("type") != "unfinished" or any(len(one) or (one.text or "").strip() for one in places):
            continue

        label, mixed = Accelerated.of(source.text or ""), MixedParagraph(source)  # with elements for control characters

        def write(
            text: str, label: Any = label, mixed: Any = mixed, source: Any = source, places: Any = places
        ) -> None:
            for place in places:
                place.text = None if len(source) else label.restored(text)
                mixed.write_into(place, mixed.text.restored(text) if len(source) else [])

        found.append((mixed.text.segment if len(source) else Segment(label.text), write))
    return _opened(found, lambda: write_xml(root))


def open_android(data: bytes, _: Languages) -> OpenedFile:
    """Android's strings.xml: texts, items of lists and plural forms, with their inline elements."""
    root = parse_xml(data)
    if root.tag != "resources":
        raise UserError("is no file of Android's texts")
    found: list[tuple[Segment, Write]] = []
    for element in [*root.iter("string", "item")]:
        holder = element.getparent() if element.tag == "item" else element
        if holder is None or "false" in (holder.get("translatable"), element.get("translatable")):
            continue
        is_html = not len(element) and "<![CDATA[" in etree.tostring(element, encoding="unicode", with_tail=False)
        text = _outside_tags(r"\\(['\"@?])", r"\1", (element.text or "") if is_html else _content(element))
        if not has_words(text) or text.startswith("@"):
            continue
        text = text.replace("\\n", _BREAK)

        def write(translation: str, element: etree._Element = element, is_html: bool = is_html) -> None:
            text = _outside_tags(r"(?<!\\)(['\"])", r"\\\1", translation.replace(_BREAK, "\\n"))
            if is_html:
                element.text = etree.CDATA(text.replace("]]>", "]]&gt;"))
                return
            names = "".join(f' xmlns:{name}="{address}"' for name, address in root.nsmap.items() if name)
            made = parse_xml(f"<made{names}>{text}</made>".encode())
            element.text = made.text
            element[:] = list(made)

        found.append((Segment(text, "html"), write))
    return _opened(found, lambda: write_xml(root))


def _content(element: etree._Element) -> str:
    """The content as HTML."""
    first = (element.text or "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    rest = "".join(etree.tostring(one, encoding="unicode") for one in element)
    return first + re.sub(r' xmlns:\w+="[^"]*"', "", rest)


def _outside_tags(pattern: str, replacement: str, text: str) -> str:
    parts = re.split(r"(<[^>]*>)", text)
    return "".join(part if place % 2 else re.sub(pattern, replacement, part) for place, part in enumerate(parts))
