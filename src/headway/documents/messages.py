"""Messages of programs, gettext's .po, Qt's .ts, Android's strings.xml, .properties and .json, and the files that
translators exchange, XLIFF 1.2 and 2, and TMX.

Where a file has both languages, messages without a translation get one that is marked as not yet reviewed, and all
others stay. Where it has one, all of its messages are replaced.
"""

import json
import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from lxml import etree  # type: ignore[attr-defined]

from headway.data.memories import LANGUAGE, UNTRANSLATED_STATES, language_of_variant, parse_catalogue, state_of
from headway.documents.archives import local_name, parse_xml, write_xml
from headway.documents.markup import escape
from headway.documents.opendocument import MixedParagraph
from headway.documents.segments import Languages, OpenedFile, Put, Segment, decode_text
from headway.errors import UserError
from headway.languages import is_language, read_code, same_language
from headway.text.characters import HALF_PAIR, is_unicode
from headway.text.protected import has_words, with_nulls

logging.getLogger("translate").addHandler(logging.NullHandler())  # it would write to standard error
_ACCELERATOR = re.compile(
    r"(?<!\S)[^\W_]{0,2}(?P<mark>_)[^\W_]|(?:(?<![\w&])&(?!\w+;)\w|(?<=\w)&(?!\w+;)[a-z\u00df-\u00ff])"
)
MOST_WORDS_OF_LABEL = 8
MOST_PLURALS = 10
"""Plural forms that a message may have; no language has more than six."""
_BREAK = "<br n/>"
"""A line break in the texts of Android, while they are translated."""
_PROPERTY = re.compile(
    r"^([ \t\f]*+(?![#!])(?:\\[\s\S]|[^\\=: \t\f\r\n])++[ \t\f]*+[=:]?[ \t\f]*+)((?:\\(?:\r\n|[\s\S])|[^\\\r\n])*+)",
    re.MULTILINE,
)
"""A name of .properties with what separates it from its text, and the text."""
_ESCAPES = re.compile(r'(\\[untrf\\])|\\(?:\r?\n[ \t\f]*+)?|"')
"""Escapes of .properties, those that JSON has too first, and what JSON would escape."""
_PATTERN, _APOSTROPHE = re.compile(r"\{\d"), re.compile(r"(?<!['{}])'(?!['{}])")
"""A placeholder of Java's MessageFormat, in whose texts an apostrophe is doubled, and one that isn't."""
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+"(?:\s*+:)?)')
"""A string of JSON, with the colon behind it if it is a name."""


class Accelerated(NamedTuple):
    """A label of a button or menu without the mark of the letter that one may press, such as `_` or `&`."""

    text: str
    mark: str = ""
    letter: str = ""

    @classmethod
    def of(cls, text: str) -> "Accelerated":
        found = _ACCELERATOR.search(with_nulls(text))
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
        words = with_nulls(translation)
        letter = re.escape(self.letter)
        for pattern in (rf"\b{letter}", letter, r"[A-Za-z\u00c0-\u024f]" if self.letter.isalpha() else letter):
            if found := re.search(pattern, words, re.IGNORECASE):
                return translation[: found.start()] + self.mark + translation[found.start() :]
        end = len(translation.rstrip(" .\u2026:"))
        return f"{translation[:end]}({self.mark}{self.letter.upper()}){translation[end:]}"


def open_po(data: bytes, languages: Languages) -> OpenedFile:
    """gettext: blank translations are filled, and their messages marked as fuzzy. A header without plural forms gets
    those of the target language where messages have plurals."""
    from translate.lang.factory import getlanguage

    catalogue = parse_catalogue(data)
    declared = catalogue.parseheader().get("Language")
    _check_language("the header's Language", declared or "", languages.target)
    if declared == "":
        catalogue.updateheader(Language=languages.target)
    number = str(catalogue.getheaderplural()[0])
    if not number.isdecimal() and any(unit.hasplural() for unit in catalogue.units):
        language = getlanguage(languages.target.replace("-", "_"))
        number = str(language.nplurals or 2)
        equation = language.pluralequation or "n != 1"
        catalogue.updateheader(add=True, Plural_Forms=f"nplurals={number}; plural={equation};")
    if number.isdecimal() and int(number) > MOST_PLURALS:
        raise UserError(f"nplurals={number[:20]}: a message has at most {MOST_PLURALS} plural forms")
    texts: list[tuple[Segment, Put]] = []
    for unit in catalogue.units:
        if unit.istranslatable() and not (unit.isheader() or unit.isobsolete()):
            texts += _entry(unit, int(number) if unit.hasplural() else 1)
    return OpenedFile.of(texts, lambda: bytes(catalogue), fills=True)


def _entry(unit: Any, plurals: int) -> list[tuple[Segment, Put]]:
    """The texts of an entry, whose blank forms are filled when the last text is put in its place; none if it has no
    blank form."""
    forms = [Accelerated.of(str(one)) for one in getattr(unit.source, "strings", [unit.source])]
    given = [str(one) for one in getattr(unit.target, "strings", [unit.target])]
    given = [one for place, one in enumerate(given) if one or place < plurals] + [""] * (plurals - len(given))
    made: list[str] = []

    def put(translation: str) -> None:
        made.append(forms[len(made)].restored(translation))
        if len(made) == len(forms):  # a single form is the plural's
            unit.target = [one or made[-1 if place or len(given) == 1 else 0] for place, one in enumerate(given)]
            unit.markfuzzy()

    return [] if all(given) else [(Segment(one.text), put) for one in forms]


def open_properties(data: bytes, _: Languages) -> OpenedFile:
    """Java's .properties: in UTF-8 if it has characters of its own in it, else with escapes such as `\\u00fc`."""
    found = decode_text(data, "latin-1")
    parts = _PROPERTY.split(found.text)  # what stands between messages, a name, its text, and so on
    if len(parts) == 1 and data.strip():
        raise UserError("holds no messages")
    is_escaped = data.isascii() or found.encoding == "latin-1"
    is_doubled = not any(_PATTERN.search(value) and _APOSTROPHE.search(value) for value in parts[2::3])

    def read(value: str) -> str:
        as_json = _ESCAPES.sub(lambda some: some[1] or '\\"' * (some[0] == '"'), value)
        try:
            text = str(json.loads(f'"{as_json}"', strict=False))
        except ValueError:
            raise UserError(f"{value[:60]!r}: an escape \\u has four digits") from None
        return text.replace("''", "'") if is_doubled and _PATTERN.search(text) else text

    def written(said: str) -> str:
        text = _APOSTROPHE.sub("''", said) if is_doubled and _PATTERN.search(said) else said
        text = json.dumps(text, ensure_ascii=is_escaped)[1:-1].replace('\\"', '"')
        return f"\\{text}" if text[:1] == " " else text

    return _of_parts(parts, range(2, len(parts), 3), read, written, found.encoded)


def open_json(data: bytes, _: Languages) -> OpenedFile:
    """JSON: every text, but no name."""
    text = decode_text(data)
    json.loads(text.text)  # refuses what is no JSON
    parts = _STRING.split(text.text)  # what stands between strings, a string, and so on
    places = [place for place in range(1, len(parts), 2) if not parts[place].endswith(":")]
    is_escaped = text.text.isascii() and "\\u" in text.text
    return _of_parts(parts, places, json.loads, partial(json.dumps, ensure_ascii=is_escaped), text.encoded)


def _of_parts(
    parts: list[str],
    places: Sequence[int],
    read: Callable[[str], str],
    written: Callable[[str], str],
    encoded: Callable[[str], bytes],
) -> OpenedFile:
    """The file of these parts, some of which are texts. read: the text of a part; written: the part for a text."""

    def put(place: int, said: str) -> None:
        parts[place] = written(said)

    texts = [(Segment(read(parts[place])), partial(put, place)) for place in places]
    if wrong := next((one.text for one, _ in texts if has_words(one.text) and not is_unicode(one.text)), ""):
        raise UserError(f"{wrong[:60]!r} {HALF_PAIR}")
    return OpenedFile.of(texts, lambda: encoded("".join(parts)))


def open_ts(data: bytes, languages: Languages) -> OpenedFile:
    """Qt: messages without a translation are filled and stay unfinished."""
    root = parse_xml(data)
    if root.tag != "TS":
        raise UserError("is no file of Qt's translators")
    _name_languages(root, ("sourcelanguage", "language"), languages)
    texts: list[tuple[Segment, Put]] = []
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
        texts.append(_message(source, places))
    return OpenedFile.of(texts, lambda: write_xml(root), fills=True)


def _message(source: etree._Element, places: list[etree._Element]) -> tuple[Segment, Put]:
    """The text of a message of Qt, which may have elements for control characters."""
    label, mixed = Accelerated.of(source.text or ""), MixedParagraph(source)

    def put(translation: str) -> None:
        for place in places:
            if len(source):
                mixed.write_into(place, translation)
            else:
                place.text = label.restored(translation)

    return mixed.text.segment if len(source) else Segment(label.text), put


def open_android(data: bytes, _: Languages) -> OpenedFile:
    """Android's strings.xml: texts, items of lists and plural forms, with their inline elements."""
    root = parse_xml(data)
    if root.tag != "resources":
        raise UserError("is no file of Android's texts")

    def put(element: etree._Element, is_html: bool, quote: str, translation: str) -> None:
        text = _outside_tags(r"(?<!\\)(['\"])", r"\\\1", translation.replace(_BREAK, "\\n"))
        text = f"{quote}{text}{quote}"
        if is_html:
            element.text = etree.CDATA(text.replace("]]>", "]]&gt;"))
            return
        spaces = {name: address for one in element.iter() for name, address in one.nsmap.items() if name}
        names = "".join(f' xmlns:{name}="{address}"' for name, address in spaces.items())
        made = parse_xml(f"<made{names}>{text}</made>".encode())
        element.text = made.text
        element[:] = list(made)

    texts: list[tuple[Segment, Put]] = []
    for element in root.iter("string", "item"):
        holder = element.getparent() if element.tag == "item" else element
        if holder is None or "false" in (holder.get("translatable"), element.get("translatable")):
            continue
        is_html = not len(element) and "<![CDATA[" in etree.tostring(element, encoding="unicode", with_tail=False)
        written = (element.text or "") if is_html else _content(element)
        bare = _outside_tags(r'(?<!\\)"', "", written)
        text = _outside_tags(r"\\(['\"@?])", r"\1", bare)
        if has_words(text) and not text.startswith("@"):
            put_it = partial(put, element, is_html, '"' * (bare != written))  # quotes, which keep white space
            texts.append((Segment(text.replace("\\n", _BREAK), "html"), put_it))
    return OpenedFile.of(texts, lambda: write_xml(root))


def _content(element: etree._Element) -> str:
    """The content as HTML."""
    rest = "".join(etree.tostring(one, encoding="unicode") for one in element)
    return escape(element.text or "") + re.sub(r' xmlns:\w+="[^"]*"', "", rest)


def _outside_tags(pattern: str, replacement: str, text: str) -> str:
    parts = re.split(r"(<[^>]*>)", text)
    return "".join(part if place % 2 else re.sub(pattern, replacement, part) for place, part in enumerate(parts))


def open_xliff(data: bytes, languages: Languages) -> OpenedFile:
    """XLIFF: units without a target, or with one whose state says that it isn't a translation, are filled and marked as
    not yet reviewed."""
    root = parse_xml(data)
    if local_name(root) != "xliff":
        raise UserError("is no XLIFF")
    is_new = root.get("version", "").startswith("2")
    names = ("srcLang", "trgLang") if is_new else ("source-language", "target-language")
    for element in [root] if is_new else root.iter("{*}file"):
        _name_languages(element, names, languages)
    texts: list[tuple[Segment, Put]] = []
    for unit in root.iter("{*}segment" if is_new else "{*}trans-unit"):
        source, target = unit.find("{*}source"), unit.find("{*}target")
        has_text = target is not None and "".join(map(str, target.itertext())).strip()
        is_filled = has_text and state_of(unit, target) not in UNTRANSLATED_STATES
        if source is None or is_filled or _is_kept(unit):
            continue
        if target is None:
            target = etree.Element(f"{{{etree.QName(source).namespace}}}target" if source.tag[0] == "{" else "target")
            before = unit.find("{*}seg-source")
            (source if before is None else before).addnext(target)
            target.tail, source.tail = source.tail, source.tail
        if is_new:
            unit.set("state", "translated")
        else:
            target.set("state", "needs-review-translation")
        texts.append(_text(source, target))
    return OpenedFile.of(texts, lambda: write_xml(root), fills=True)


def open_tmx(data: bytes, languages: Languages) -> OpenedFile:
    """Units without a variant in the target language get one."""
    root = parse_xml(data)
    if local_name(root) != "tmx":
        raise UserError("is no TMX")
    texts: list[tuple[Segment, Put]] = []
    for unit in root.iter("{*}tu"):
        variants = {language_of_variant(one): one for one in unit.findall("{*}tuv")}
        source = same_language(languages.source, variants) if languages.source else next(iter(variants), None)
        if source is None or same_language(languages.target, variants):
            continue
        segment = variants[source].find("{*}seg")
        if segment is None:
            continue
        variant = etree.SubElement(unit, "tuv", {LANGUAGE: languages.target})
        texts.append(_text(segment, etree.SubElement(variant, "seg")))
    return OpenedFile.of(texts, lambda: write_xml(root), fills=True)


def _check_language(name: str, declared: str, wanted: str) -> None:
    """Raises UserError if what a file calls by this name is another language than that of the translation."""
    if is_language(declared) and is_language(wanted) and read_code(declared).language != read_code(wanted).language:
        raise UserError(
            f"{name} is {declared}, the translation's is {wanted}; correct the file or choose a model for {declared}"
        )


def _name_languages(element: etree._Element, names: tuple[str, str], languages: Languages) -> None:
    """Names the target language where an element names none. names: the attributes for source and target. Raises
    UserError if they name other languages."""
    for name, wanted in zip(names, languages, strict=True):
        _check_language(f"line {element.sourceline}: {name}", element.get(name, ""), wanted)
    element.set(names[1], element.get(names[1]) or languages.target)


def _is_kept(unit: etree._Element) -> bool:
    """Whether the nearest element around that says whether it is translated, says no."""
    return next((one.get("translate") for one in [unit, *unit.iterancestors()] if one.get("translate")), "") == "no"


def _text(source: etree._Element, target: etree._Element) -> tuple[Segment, Put]:
    mixed = MixedParagraph(source)
    return mixed.text.segment, lambda translation: mixed.write_into(target, translation)
