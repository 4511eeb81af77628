r"""Reads pairs from translators' files: gettext's catalogues (.po, .mo), translation memories (.tmx) and XLIFF.

A pair is one line: a line break in a segment becomes `\n`, as in a catalogue, and white space around the segment is
dropped. Inline elements become the code that they hold, such as `<b>`; those without code stay tags.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from headway.data.compressed import damages, open_text, plain_name
from headway.data.two_sided import MARKED_UP, NO_LANGUAGES, Sides
from headway.errors import UserError
from headway.languages import same_language

LARGEST = 256 << 20
"""Most bytes of a file that is read whole."""
FUZZY, UNTRANSLATED, OBSOLETE, FIXED = "fuzzy", "untranslated", "obsolete", "not to be translated"
"""Reasons to leave an entry out."""
_UNSURE = re.compile("new|initial|needs-.*")
"""States of XLIFF in which a target isn't a translation yet."""
_WORDS, _CODE = {"hi", "mrk", "sub"}, {"bpt", "ept", "it", "ph", "ut"}
"""Inline elements around words, and those around code of the original format."""
_PO_HEADER = re.compile(rb'.*?^msgid\s+"".*?(?:\n\s*\n|\Z)', re.DOTALL | re.MULTILINE)
_LINE_BREAK = re.compile(r"\s*(?:\r\n|\r|\n)[^\S\r\n]*")
_SAFELY: Any = {"resolve_entities": False, "no_network": True, "remove_comments": True, "remove_pis": True}
"""Options of lxml's parser: external entities aren't loaded."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


class Entry(NamedTuple):
    """A pair of a translators' file."""

    line: int
    """The line on which it begins, counted from 1; in a .mo file the number of the entry."""
    source: str
    target: str
    documents: dict[str, str]
    """Names of documents that it belongs to, by the kind of name."""


def read_entries(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    """The translated entries of the file with this content. languages: codes of source and target, as far as known; the
    sides change places where the file has them so. left_out: counts the other entries by reason. Raises UserError."""
    kind = plain_name(file).suffix.lower()
    if kind == ".tmx":
        both = languages if all(languages) else languages_of(file, languages)
        entries = _of_memory(stream, file, both, left_out)
    elif kind in MARKED_UP:
        entries = _of_xliff(stream, file, languages, left_out)
    else:
        entries = (_of_mo if kind == ".mo" else _of_po)(stream, file, languages, left_out)
    for line, source, target, documents in entries:
        sides = in_one_line(source), in_one_line(target)
        if sides[0] and sides[1]:
            yield Entry(line, *sides, {"file": file.name, **documents})
        elif any(sides):
            left_out[UNTRANSLATED] += 1


def _entry(line: int, pair: Sides, exchanged: bool, documents: dict[str, str]) -> Entry:
    source, target = pair[::-1] if exchanged else pair
    return Entry(line, source, target, documents)


def in_one_line(text: str) -> str:
    r"""The text without white space around it, its line breaks as `\n`."""
    return _LINE_BREAK.sub(r"\\n", text.strip())


def languages_of(file: Path, given: Sides = NO_LANGUAGES) -> Sides:
    """The languages of the sides: those given, else by the file, empty where it names none. Raises UserError for a
    memory of other than two languages, or of two that could be either side, with the settings that choose."""
    source, target = _named_languages(file, any(given))
    if any(code and same_language(code, [other]) for code, other in zip(given, (target, source), strict=True)):
        source, target = target, source
    return given[0] or source, given[1] or target


def _named_languages(file: Path, either_side: bool) -> Sides:
    """The languages in the order of the file. either_side: whether those of a memory may be in any order."""
    kind = plain_name(file).suffix.lower()
    with open_text(file) as stream:
        if kind == ".mo":
            return "", next((found for one in _mo_entries(stream, file) if (found := _header_language(one))), "")
        if kind == ".po":
            return "", _po_language(_catalogue(stream, file, header_alone=True))
        if kind != ".tmx":
            return next(_languages_of_files(stream, file), NO_LANGUAGES)
        declared, found = "", Counter[str]()
        for element in _elements(stream, file, {"header", "tuv"}):
            declared = element.get("srclang", declared) if _name(element) == "header" else declared
            if _name(element) == "tuv":
                found[_code(element)] += 1
    first = same_language(declared, found) if declared else None
    if first is None and either_side:
        first = next(iter(found), None)
    if len(found) != 2 or first is None:
        keys = zip(("data.source_language", "data.target_language"), [*found, "...", "..."], strict=False)
        choice = " ".join(f"{key}={code}" for key, code in keys)
        raise UserError(f"{file}: has {', '.join(found) or 'no languages'}; choose, such as {choice}")
    return first, next(code for code in found if code != first)


def _is_exchanged(languages: Sides, found: Sides, file: Path, line: int) -> bool:
    """Whether a file has the source language on its target side, or the other way round. Raises UserError for other
    languages than the wanted ones."""
    known = [(wanted, side) for side, wanted in enumerate(languages) if wanted and any(found)]
    straight = all(not found[side] or same_language(wanted, [found[side]]) for wanted, side in known)
    crossed = all(not found[1 - side] or same_language(wanted, [found[1 - side]]) for wanted, side in known)
    if not (straight or crossed):
        wanted = " and ".join(filter(None, languages))
        raise UserError(f"{file}, line {line}: is in {' and '.join(filter(None, found))}, not in {wanted}")
    return not straight


def _whole(stream: IO[bytes], file: Path) -> bytes:
    """The content. Raises UserError if it is damaged or too large to be read at once."""
    try:
        content = stream.read(LARGEST + 1)
    except damages() as error:
        raise UserError(f"{file}: can't be read ({error}); is it complete?") from None
    if len(content) > LARGEST:
        raise UserError(f"{file}: is larger than {LARGEST >> 20} MiB, the most for a file of this kind; divide it")
    return content


@contextmanager
def formats_extra(file: Path) -> Iterator[None]:
    """Imports of the packages that read a file. Raises UserError if they are missing."""
    try:
        yield
    except ImportError:
        raise UserError(f"{file}: needs extra packages: pip install 'headway[formats]'") from None


def _catalogue(stream: IO[bytes], file: Path, *, header_alone: bool = False) -> Any:
    content = _whole(stream, file)
    if header_alone and (header := _PO_HEADER.match(content)):
        content = header[0]
    with formats_extra(file):
        try:
            return parse_catalogue(content)
        except UserError as error:
            raise UserError(f"{file}, {error}") from None


def parse_catalogue(content: bytes) -> Any:
    """translate-toolkit's form of a .po file. Raises UserError with the line, without the file's name."""
    from translate.storage.poparser import PoParseError
    from translate.storage.pypo import pofile

    catalogue = pofile()
    try:
        catalogue.parse(content)
    except PoParseError as error:
        state = error.parse_state
        shown = state.next_line.strip()[:60]
        raise UserError(f"line {state.lineno}: isn't part of a .po file: {shown!r}") from None
    except UnicodeDecodeError as error:
        line = content[: content.find(error.object)].count(b"\n") + 1
        raise UserError(f"line {line}: isn't {error.encoding}, which its header names") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:  # in damaged files
        raise UserError(f"line 1: isn't a .po file ({error})") from None
    if not catalogue.units and content.strip():
        raise UserError("line 1: isn't part of a .po file")
    return catalogue


def _po_language(catalogue: Any) -> str:
    return str(catalogue.parseheader().get("Language", "")).strip()


def _forms(source: Any, target: Any) -> list[Sides]:
    """The pairs of an entry. One with plural forms has two: the singular with the first form, the plural with the last.
    In a target language with a single form that is the plural's."""
    sources, targets = (list(map(str, getattr(text, "strings", [text or ""]))) for text in (source, target))
    if len(sources) < 2:
        return [(sources[0], targets[0])] if sources else []
    plural = (sources[1], targets[-1])
    return [(sources[0], targets[0]), plural] if len(targets) > 1 else [plural]


def _of_po(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    catalogue = _catalogue(stream, file)
    exchanged = _is_exchanged(languages, ("", _po_language(catalogue)), file, 1)
    for unit in catalogue.units:
        if unit.isheader() or unit.isblank():
            continue
        if unit.isobsolete() or unit.isfuzzy():
            left_out[OBSOLETE if unit.isobsolete() else FUZZY] += 1
            continue
        reference = next(iter(unit.getlocations()), "").rpartition(":")
        documents = {"reference": reference[0] or reference[2]}
        for pair in _forms(unit.source, unit.target):
            yield _entry(unit.line_number or 1, pair, exchanged, documents)


def _mo_entries(stream: IO[bytes], file: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, key and value of each entry. translate-toolkit would take what is left of a file that was cut off."""
    content = _whole(stream, file)
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(content[:4])
    if order is None or len(content) < 20:
        raise UserError(f"{file}: isn't a .mo file")
    _, count, keys, values = struct.unpack(f"{order}4I", content[4:20])
    total = 0
    for number in range(count):
        parts = []
        for table in (keys, values):
            begin = table + 8 * number
            length, offset = struct.unpack(f"{order}2I", content[begin : begin + 8].ljust(8, b"\xff"))
            total += length
            if offset + length > len(content) or total > 2 * len(content):
                raise UserError(f"{file}: entry {number + 1} of {count:,} is outside the file; is it complete?")
            parts.append(content[offset : offset + length])
        yield number + 1, parts[0].rpartition(b"\x04")[2], parts[1]


def _header_language(entry: tuple[int, bytes, bytes]) -> str:
    """The language by an entry, if that is the header."""
    found = None if entry[1] else re.search(rb"^Language: *([\w@.\-]+)", entry[2], re.MULTILINE)
    return found[1].decode("ascii", "replace") if found else ""


def _of_mo(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    encoding, exchanged = "utf-8", False
    for number, key, value in _mo_entries(stream, file):
        if not key:
            found = re.search(rb"charset=([\w\-]+)", value)
            encoding = found[1].decode("ascii", "replace") if found else encoding
            exchanged = _is_exchanged(languages, ("", _header_language((number, key, value))), file, 1)
            continue
        try:
            texts = [[form.decode(encoding) for form in side.split(b"\0")] for side in (key, value)]
        except (UnicodeDecodeError, LookupError):
            raise UserError(f"{file}: entry {number} isn't {encoding}, which its header names") from None
        for pair in _forms(_Strings(texts[0]), _Strings(texts[1])):
            yield _entry(number, pair, exchanged, {})


class _Strings(NamedTuple):
    """The forms of a text, as translate-toolkit has them."""

    strings: list[str]


def _elements(stream: IO[bytes], file: Path, names: set[str], beginnings: set[str] | None = None) -> Iterator[Any]:
    """The elements of these local names, each when it is read to its end, those of `beginnings` when they begin.
    Elements are forgotten afterwards. External entities and DTDs aren't loaded. Raises UserError with the line."""
    with formats_extra(file):
        from lxml import etree  # type: ignore[attr-defined]
    beginnings, is_first = beginnings or set(), True
    try:
        for event, element in etree.iterparse(stream, events=("start", "end"), **_SAFELY):
            if is_first:
                is_first, dtd = False, element.getroottree().docinfo.internalDTD
                if dtd is not None and next(iter(dtd.iterentities()), None) is not None:
                    raise UserError(f"{file}: declares entities (<!ENTITY), which could be anything; remove them")
            if (name := _name(element)) in (beginnings if event == "start" else names):
                yield element
            if event == "end" and name in ("tu", "trans-unit", "unit"):
                parent = element.getparent()
                element.clear()
                while parent is not None and element.getprevious() is not None:
                    del parent[0]
    except etree.XMLSyntaxError as error:
        reason = re.sub(r", line \d+, column \d+.*", "", error.msg or "is incomplete").replace("\n", " ")
        raise UserError(f"{file}, line {error.lineno or 1}: isn't whole XML ({reason})") from None
    except damages() as error:
        raise UserError(f"{file}: can't be read ({error}); is it complete?") from None


def _name(element: Any) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _code(variant: Any) -> str:
    return variant.get(_LANGUAGE) or variant.get("lang") or ""


def _children(element: Any, *names: str) -> Iterator[Any]:
    return (child for child in element if _name(child) in names)


def _text(element: Any, codes: dict[str, str]) -> str:
    """The text of a segment, with its inline elements. codes: the original code of an XLIFF 2 unit, by its ids."""
    parts = [element.text or ""]
    for child in element:
        if not isinstance(child.tag, str):
            raise _EntityError
        parts += [_inline(child, codes), child.tail or ""]
    return "".join(parts)


class _EntityError(Exception):
    """A reference to an entity that isn't declared in the file."""


def _inline(element: Any, codes: dict[str, str]) -> str:
    name, inner = _name(element), _text(element, codes)
    if name == "cp":  # a character that XML can't hold
        return ""
    if name in _WORDS or (name in _CODE and inner):
        return inner
    shown = next((f' {key}="{element.get(key)}"' for key in ("id", "i", "x") if element.get(key)), "")
    if name == "pc" or inner:
        start, end = (codes.get(element.get(key, "")) for key in ("dataRefStart", "dataRefEnd"))
        return f"{start or f'<{name}{shown}>'}{inner}{end or f'</{name}>'}"
    return codes.get(element.get("dataRef", "")) or f"<{name}{shown}/>"


def _segment(element: Any, file: Path, codes: dict[str, str] | None = None) -> str:
    try:
        return _text(element, codes or {})
    except _EntityError:
        raise UserError(f"{file}, line {element.sourceline}: refers to an entity that XML doesn't have") from None


def _of_memory(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    seen, has_pairs = Counter[str](), False
    for unit in _elements(stream, file, {"tu"}):
        variants = {_code(variant): variant for variant in _children(unit, "tuv")}
        seen.update(variants.keys())
        chosen = [same_language(code, variants) for code in languages]
        if chosen[0] is None or chosen[1] is None:
            left_out["without one of the languages"] += 1
            continue
        has_pairs = True
        segments = [next(_children(variants[code], "seg"), None) for code in chosen if code is not None]
        source, target = ("" if one is None else _segment(one, file) for one in segments)
        documents = {prop.get("type", ""): prop.text or "" for prop in _children(unit, "prop")}
        yield Entry(unit.sourceline or 1, source, target, documents)
    if not has_pairs:
        raise UserError(f"{file}: has no pair in {languages[0]} and {languages[1]}; has {', '.join(seen) or 'no text'}")


def _file_languages(element: Any) -> Sides:
    """The languages of a `file` of XLIFF 1, or of the root of XLIFF 2."""
    names = ("srcLang", "trgLang") if _name(element) == "xliff" else ("source-language", "target-language")
    return element.get(names[0], ""), element.get(names[1], "")


def _languages_of_files(stream: IO[bytes], file: Path) -> Iterator[Sides]:
    for element in _elements(stream, file, set(), {"xliff", "file"}):
        if any(found := _file_languages(element)):
            yield found


def _of_xliff(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    exchanged, document = False, {}
    for element in _elements(stream, file, {"trans-unit", "segment", "unit"}, {"xliff", "file"}):
        name = _name(element)
        if name in ("xliff", "file"):
            if any(found := _file_languages(element)):
                exchanged = _is_exchanged(languages, found, file, element.sourceline or 1)
            document = {"original": element.get("original") or element.get("id") or ""}
            continue
        if name == "unit":
            continue
        unit = element if name == "trans-unit" else element.getparent()
        source, target = (next(_children(element, side), None) for side in ("source", "target"))
        if source is None:
            raise UserError(f"{file}, line {element.sourceline}: has no source")
        state = element.get("state", "") if target is None else target.get("state") or element.get("state", "")
        if unit.get("translate") == "no":
            left_out[FIXED] += 1
        elif target is not None and len(target.xpath("string()").strip()) and _UNSURE.fullmatch(state):
            left_out[FUZZY] += 1
        else:
            codes = {
                one.get("id", ""): one.text or ""
                for data in _children(unit, "originalData")
                for one in _children(data, "data")
            }
            sides = _segment(source, file, codes), "" if target is None else _segment(target, file, codes)
            yield _entry(element.sourceline or 1, sides, exchanged, document)
