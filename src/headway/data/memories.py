r"""Reads pairs from translators' files: gettext's catalogues (.po, .mo), translation memories (.tmx) and XLIFF.

A pair is one line: a line break in a segment becomes `\n`, as in a catalogue, and white space around the segment is
dropped. Inline elements become the code that they hold, such as `<b>`; those without code stay tags.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from headway.data.compressed import naming_damage, open_text, plain_name
from headway.data.two_sided import MARKED_UP, NO_LANGUAGES, Sides
from headway.errors import UserError
from headway.languages import same_language

LARGEST = 256 << 20
"""Most bytes of a file that is read whole."""
FUZZY, UNTRANSLATED, OBSOLETE, FIXED = "fuzzy", "untranslated", "obsolete", "not to be translated"
"""Reasons to leave an entry out."""
UNTRANSLATED_STATES = "new", "initial", "needs-translation"
"""States of XLIFF in which a target isn't a translation yet."""
_UNSURE = re.compile("|".join((*UNTRANSLATED_STATES, "needs-.*")))
"""These, and those in which it isn't reviewed."""
_WORDS, _CODE = {"hi", "mrk", "sub"}, {"bpt", "ept", "it", "ph", "ut"}
"""Inline elements around words, and those around code of the original format."""
_LINE_BREAK = re.compile(r"\s*(?:\r\n|\r|\n)[^\S\r\n]*")
_SAFELY: Any = {"resolve_entities": False, "no_network": True, "remove_comments": True, "remove_pis": True}
"""Options of lxml's parser: external entities aren't loaded."""
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
"""The attribute `xml:lang`."""


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
        entries = _of_catalogue(stream, file, languages, left_out)
    with naming_damage(file):
        for line, source, target, documents in entries:
            sides = in_one_line(source), in_one_line(target)
            if sides[0] and sides[1]:
                yield Entry(line, *sides, {"file": file.name, **documents})
            elif any(sides):
                left_out[UNTRANSLATED] += 1


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
    with open_text(file) as stream, naming_damage(file):
        if kind in (".po", ".mo"):
            return "", _catalogue(_whole(stream, file), file).language
        if kind != ".tmx":
            named = map(_file_languages, _elements(stream, file, set(), {"xliff", "file"}))
            return next(filter(any, named), NO_LANGUAGES)
        declared, found = "", Counter[str]()
        for element in _elements(stream, file, {"header", "tuv"}):
            declared = element.get("srclang", declared) if _name(element) == "header" else declared
            if _name(element) == "tuv":
                found[language_of_variant(element)] += 1
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
    """The content. Raises UserError if it is too large to be read at once."""
    content = stream.read(LARGEST + 1)
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


class _Message(NamedTuple):
    """A message of a catalogue, in its plural forms if it has some."""

    line: int
    sources: list[str]
    targets: list[str]
    documents: dict[str, str]
    unwanted: str
    """The reason to leave it out; empty for none."""


class _Catalogue(NamedTuple):
    language: str
    """The language of the translations; empty if the header doesn't name it."""
    messages: list[_Message]


@lru_cache(maxsize=1)
def _catalogue(content: bytes, file: Path) -> _Catalogue:
    """A .po or .mo file, kept for the next reading of the same."""
    if plain_name(file).suffix.lower() == ".mo":
        return _of_mo(content, file)
    with formats_extra(file):
        try:
            catalogue = parse_catalogue(content)
        except UserError as error:
            raise UserError(f"{file}, {error}") from None
    messages = []
    for unit in catalogue.units:
        if not (unit.isheader() or unit.isblank()):
            sources, targets = (
                list(map(str, getattr(text, "strings", [text or ""]))) for text in (unit.source, unit.target)
            )
            reference = next(iter(unit.getlocations()), "").rpartition(":")
            unwanted = OBSOLETE if unit.isobsolete() else FUZZY if unit.isfuzzy() else ""
            documents = {"reference": reference[0] or reference[2]}
            messages.append(_Message(unit.line_number or 1, sources, targets, documents, unwanted))
    return _Catalogue(str(catalogue.parseheader().get("Language", "")).strip(), messages)


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


def _of_mo(content: bytes, file: Path) -> _Catalogue:
    """A .mo file. translate-toolkit would take what is left of one that was cut off."""
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(content[:4])
    if order is None or len(content) < 20:
        raise UserError(f"{file}: isn't a .mo file")
    _, count, *tables = struct.unpack(f"{order}4I", content[4:20])
    entries, total = list[list[bytes]](), 0
    for number in range(count):
        entries.append([])
        for table in tables:  # of keys, of values
            begin = table + 8 * number
            length, offset = struct.unpack(f"{order}2I", content[begin : begin + 8].ljust(8, b"\xff"))
            total += length
            if offset + length > len(content) or total > 2 * len(content):
                raise UserError(f"{file}: entry {number + 1} of {count:,} is outside the file; is it complete?")
            entries[-1].append(content[offset : offset + length])
    header = next((value for key, value in entries if not key), b"")
    charset = re.search(rb"charset=([\w\-]+)", header)
    language = re.search(rb"^Language: *([\w@.\-]+)", header, re.MULTILINE)
    encoding = charset[1].decode("ascii", "replace") if charset else "utf-8"
    messages = []
    for number, (key, value) in enumerate(entries, start=1):
        if key:
            try:
                source, target = (side.decode(encoding).split("\0") for side in (key.rpartition(b"\x04")[2], value))
            except (UnicodeDecodeError, LookupError):
                raise UserError(f"{file}: entry {number} isn't {encoding}, which its header names") from None
            messages.append(_Message(number, source, target, {}, ""))
    return _Catalogue(language[1].decode("ascii", "replace") if language else "", messages)


def _of_catalogue(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    """A message with plural forms has two pairs: the singular with the first form, the plural with the last. In a
    target language with a single form that is the plural's."""
    language, messages = _catalogue(_whole(stream, file), file)
    exchanged = _is_exchanged(languages, ("", language), file, 1)
    for line, sources, targets, documents, unwanted in messages:
        if unwanted:
            left_out[unwanted] += 1
            continue
        pairs = list(zip(sources[:2], (targets[0], targets[-1]), strict=False))
        for pair in pairs if len(targets) > 1 else pairs[-1:]:
            source, target = pair[::-1] if exchanged else pair
            yield Entry(line, source, target, documents)


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
                for entity in element.iter(etree.Entity):
                    line = entity.getparent().sourceline
                    raise UserError(f"{file}, line {line}: refers to an entity that XML doesn't have")
                yield element
            if event == "end" and name in ("tu", "trans-unit", "unit"):
                parent = element.getparent()
                element.clear()
                while parent is not None and element.getprevious() is not None:
                    del parent[0]
    except etree.XMLSyntaxError as error:
        reason = re.sub(r", line \d+, column \d+.*", "", error.msg or "is incomplete").replace("\n", " ")
        raise UserError(f"{file}, line {error.lineno or 1}: isn't whole XML ({reason})") from None


def _name(element: Any) -> str:
    return element.tag.rpartition("}")[2]


def language_of_variant(variant: Any) -> str:
    """The code of the language of a `tuv` of a translation memory."""
    return variant.get(LANGUAGE) or variant.get("lang") or ""


def _text(element: Any, codes: dict[str, str]) -> str:
    """The text of a segment, with its inline elements. codes: the original code of an XLIFF 2 unit, by its ids."""
    return (element.text or "") + "".join(_inline(child, codes) + (child.tail or "") for child in element)


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


def _of_memory(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    seen, has_pairs = Counter[str](), False
    for unit in _elements(stream, file, {"tu"}):
        variants = {language_of_variant(variant): variant for variant in unit.iterchildren("{*}tuv")}
        seen.update(variants.keys())
        chosen = [same_language(code, variants) for code in languages]
        if chosen[0] is None or chosen[1] is None:
            left_out["without one of the languages"] += 1
            continue
        has_pairs = True
        segments = [variants[code].find("{*}seg") for code in chosen if code is not None]
        source, target = ("" if one is None else _text(one, {}) for one in segments)
        documents = {prop.get("type", ""): prop.text or "" for prop in unit.iterchildren("{*}prop")}
        yield Entry(unit.sourceline or 1, source, target, documents)
    if not has_pairs:
        raise UserError(f"{file}: has no pair in {languages[0]} and {languages[1]}; has {', '.join(seen) or 'no text'}")


def _file_languages(element: Any) -> Sides:
    """The languages of a `file` of XLIFF 1, or of the root of XLIFF 2."""
    names = ("srcLang", "trgLang") if _name(element) == "xliff" else ("source-language", "target-language")
    return element.get(names[0], ""), element.get(names[1], "")


def state_of(unit: Any, target: Any) -> str:
    """The state of a target of XLIFF, which version 2 notes at its segment."""
    return target.get("state") or unit.get("state", "")


def _of_xliff(stream: IO[bytes], file: Path, languages: Sides, left_out: Counter[str]) -> Iterator[Entry]:
    exchanged, document = False, {}
    for element in _elements(stream, file, {"trans-unit", "segment"}, {"xliff", "file"}):
        name = _name(element)
        if name in ("xliff", "file"):
            if any(found := _file_languages(element)):
                exchanged = _is_exchanged(languages, found, file, element.sourceline or 1)
            document = {"original": element.get("original") or element.get("id") or ""}
            continue
        unit = element if name == "trans-unit" else element.getparent()
        source, target = (element.find(f"{{*}}{side}") for side in ("source", "target"))
        if source is None:
            raise UserError(f"{file}, line {element.sourceline}: has no source")
        if unit.xpath("string(ancestor-or-self::*[@translate][1]/@translate)") == "no":
            left_out[FIXED] += 1
        elif (
            target is not None
            and len(target.xpath("string()").strip())
            and _UNSURE.fullmatch(state_of(element, target))
        ):
            left_out[FUZZY] += 1
        else:
            codes = {one.get("id", ""): one.text or "" for one in unit.iterfind("{*}originalData/{*}data")}
            pair = _text(source, codes), "" if target is None else _text(target, codes)
            source, target = pair[::-1] if exchanged else pair
            yield Entry(element.sourceline or 1, source, target, document)
