"""Finds source and target in files with both sides, .tsv and .jsonl, by their first lines.

A .tsv file has source, TAB, target, unless its first row names the columns. Its fields may be quoted as by spreadsheets
and pandas (RFC 4180). A .jsonl file has objects with `source` and `target`, or with language codes as keys, which may
be within `translation`, as in the datasets of Hugging Face.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from headway.data.compressed import plain_name
from headway.errors import UserError
from headway.languages import code_of_name, is_language, read_code
from headway.text.characters import HALF_PAIR, is_blank, is_unicode, visible

TABLES = (".csv", ".xlsx")
MARKED_UP = (".tmx", ".xliff", ".xlf")
MEMORIES = (".po", ".mo", *MARKED_UP)
"""Kinds of tables and of translators' files, which are read as lines."""
HEAD = 1000
"""Lines that are read to find the layout."""
ROWS_ALL_QUOTED = 10
"""Fewest rows that count as quoted because all their fields are."""
LONGEST_NAME = 40
NAMES = (
    {"source", "src", "sourcetext", "srctext", "sourcesentence"},
    {"target", "tgt", "trg", "targettext", "tgttext", "targetsentence", "translation", "reference", "ref"},
)
"""Names of columns of sources and of targets, in small letters, without spaces and underscores."""
SOURCE_BESIDE_TARGET = {"text", "sentence", "original"}
"""Further names of a column of sources, if another column is named as one of targets."""
NUMBERING = {"id", "no", "nr"}
"""Names of numbered columns that are also codes of languages."""
NO_LANGUAGES = ("", "")

Sides = tuple[str, str]
"""Source and target."""


@dataclass(frozen=True)
class Form:
    """Layout of a file with both sides."""

    is_tsv: bool
    columns: int = 0
    """Columns of a .tsv file; 0 if all lines are blank."""
    places: tuple[int, int] = (0, 1)
    """The columns of source and target, from 0."""
    header: bool = False
    """Whether the first row names the columns."""
    quoted: bool = False
    """Whether fields of a .tsv file may be quoted."""
    keys: Sides = ("source", "target")
    nested: bool = False
    """Whether they are within `translation`."""
    languages: Sides = NO_LANGUAGES
    notices: tuple[str, ...] = ()
    numbered: bool = False
    """Whether each line begins with the number that it has in a file of another kind, which it was made from."""

    def swapped(self) -> Self:
        return replace(self, places=self.places[::-1], keys=self.keys[::-1])

    def split(self, line: str) -> Sides | str:
        """Source and target of a line that isn't blank, or its fault."""
        if not self.is_tsv:
            return self._split_object(line)
        fields = fields_of(line) if self.quoted else line.split("\t")
        if fields is None:
            return "has a quoted text without its end; is there a line break inside a text?"
        if self.columns and len(fields) != self.columns and (self.numbered or len(fields) > 1):
            hint = "is a cell or a quotation mark missing?" if self.numbered else "is there a TAB inside a text?"
            plural = "s" if len(fields) > 1 else ""
            return f"has {len(fields)} column{plural}, but the lines before have {self.columns}; {hint}"
        if len(fields) == 1:
            return "has 1 column; give two" if self.numbered else "has no TAB between source and target"
        if len(fields) <= max(self.places):
            return f"has only {len(fields)} columns"
        return fields[self.places[0]], fields[self.places[1]]

    def _split_object(self, line: str) -> Sides | str:
        document = parsed_line(line)
        if document is None:
            return "is not JSON"
        items = (_nested(document) or ()) if self.nested else document if isinstance(document, tuple) else ()
        source_key, target_key = self.keys
        found = [[value for key, value in items if key == side] for side in self.keys]
        if any(len(values) > 1 for values in found):
            return f"has `{source_key}` or `{target_key}` twice"
        if not all(values and isinstance(values[0], str) for values in found):
            within = " in `translation`" if self.nested else ""
            return f"is not an object with texts `{source_key}` and `{target_key}`{within}"
        source, target = (values[0].replace("\n", " ").replace("\r", " ") for values in found)
        if not is_unicode(source + target) and is_unicode(line):
            return HALF_PAIR
        return source, target


def form_of(head: Sequence[str], file: Path, languages: Sides, columns: tuple[int, int] | None = None) -> Form:
    """The layout of a file that begins with these lines. languages: codes of source and target, as far as known.
    columns: their columns in a .tsv file, from 0, as far as chosen. Raises UserError."""
    kind = plain_name(file).suffix.lower()
    if kind in TABLES:
        rows = [row.partition("\t")[2] for row in head]
        return replace(form_of_table(rows, languages, columns, may_be_quoted=False), numbered=True)
    if kind == ".tsv":
        return form_of_table(head, languages, columns)
    if columns is not None:
        raise UserError(f"{file}: has no columns; they are chosen for .tsv files and tables alone")
    return Form(is_tsv=False, numbered=True) if kind in MEMORIES else _form_of_objects(head, file, languages)


def form_of_table(
    head: Sequence[str], languages: Sides, chosen: tuple[int, int] | None = None, *, may_be_quoted: bool = True
) -> Form:
    """The layout of a file with columns that begins with these lines. languages, chosen: as in `form_of`."""
    rows = [line for line in head if not is_blank(line)]
    if not rows:
        return Form(is_tsv=True)
    names = (fields_of(rows[0]) if may_be_quoted else rows[0].split("\t")) or []
    places = _named_columns(names, languages) if not is_blank(head[0]) else None
    quoted = may_be_quoted and _is_quoted(rows, named=places is not None)
    notices, named = [], NO_LANGUAGES
    if places is not None:
        sides = names[places[0]], names[places[1]]
        notices.append(f"the first row names the columns: `{sides[0]}` is the source and `{sides[1]}` the target")
        named = _language(sides[0]), _language(sides[1])
    if quoted:
        notices.append("fields are quoted, so quotation marks around them and doubled ones inside are no text")
    columns = len(fields_of(rows[0]) or [] if quoted else rows[0].split("\t"))
    if columns > 2 and places is None and chosen is None:
        notices.append(f"has {columns} columns; the third and later ones are left out")
    places, header = chosen or places or (0, 1), places is not None
    return Form(True, columns, places, header, quoted, languages=named, notices=tuple(notices))


def _named_columns(names: Sequence[str], languages: Sides) -> tuple[int, int] | None:
    """The columns, or keys, of source and target: those named so, or after the given languages, or, if either is
    unknown, after the only two languages with a two-letter code, in their order. None if these aren't names."""
    plain = [re.sub(r"[\s_]+", "", name).lower() for name in names]
    if len(set(plain)) < max(2, len(plain)) or any(not 0 < len(name) <= LONGEST_NAME for name in plain):
        return None
    of_sides = [[place for place, name in enumerate(plain) if name in known] for known in NAMES]
    if not of_sides[0]:
        of_sides[0] = [place for place, name in enumerate(plain) if name in SOURCE_BESIDE_TARGET]
    if len(of_sides[0]) == len(of_sides[1]) == 1:
        return of_sides[0][0], of_sides[1][0]
    source, target = (_language(one) for one in languages)
    found = [_language(name) for name in names]
    if source and target and source != target:
        return (found.index(source), found.index(target)) if found.count(source) == found.count(target) == 1 else None
    places = [place for place, code in enumerate(found) if len(code) == 2]
    if len(places) > 2:
        places = [place for place in places if names[place].strip().lower() not in NUMBERING]
    return (places[0], places[1]) if len(places) == 2 and found[places[0]] != found[places[1]] else None


def _language(name: str) -> str:
    """The code of a language, without script and region, by a code of it or its English name; "" for other text."""
    name = visible(name).strip().lower()
    code = name if is_language(name) else code_of_name(name)
    return read_code(code).language if code else ""


def _is_quoted(rows: Sequence[str], *, named: bool) -> bool:
    """Whether quotation marks around fields aren't text. In a quoted file each field with a mark begins and ends with
    one, and those inside are doubled. Plain text may look like this by chance, so some field must have a doubled mark
    or a TAB inside, or all fields must be quoted, in at least ten rows or under column names. named: whether the first
    row has column names."""
    has_proof, all_quoted = False, True
    for row in rows:
        fields = _raw_fields(row)
        if fields is None or any('"' in field for field in fields if not field.startswith('"')):
            return False
        inside = [field[1:-1] for field in fields if field.startswith('"')]
        has_proof |= any('"' in text or ("\t" in text and len(fields) > 1) for text in inside)
        all_quoted &= len(inside) == len(fields)
    return has_proof or (all_quoted and (named or len(rows) >= ROWS_ALL_QUOTED))


_RAW_FIELD = re.compile(r'(?:"(?:[^"]++|"")*+"|[^"\t][^\t]*|)(?:\t|\Z)')


def _raw_fields(row: str) -> list[str] | None:
    """The fields of a quoted row, with their quotation marks; None if one begins but doesn't end with a mark."""
    fields: list[str] = []
    place = 0
    while found := _RAW_FIELD.match(row, place):
        field, place = found.group(), found.end()
        fields.append(field.removesuffix("\t"))
        if not field.endswith("\t"):
            return fields
    return None


def fields_of(row: str) -> list[str] | None:
    """The texts of a quoted row; None as in `_raw_fields`."""
    if '"' not in row:
        return row.split("\t")
    fields = _raw_fields(row)
    return fields and [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in fields]


def _form_of_objects(head: Sequence[str], file: Path, languages: Sides) -> Form:
    document = next((parsed_line(line) for line in head if not is_blank(line)), None)
    items = document if isinstance(document, tuple) else ()
    nested = _nested(document)
    keys = [key for key, value in (items if nested is None else nested) if value is None or isinstance(value, str)]
    places = _named_columns(keys, languages)
    if {"source", "target"} <= {key for key, _ in items} or not keys or (places is None and nested is None):
        return Form(is_tsv=False)
    if places is None:
        names = ", ".join(keys)
        raise UserError(f"{file}: has {names} in `translation`, of which source and target can't be told by languages")
    sides = keys[places[0]], keys[places[1]]
    notices = (f"`{sides[0]}` is the source and `{sides[1]}` the target",)
    named = _language(sides[0]), _language(sides[1])
    return Form(False, keys=sides, nested=nested is not None, languages=named, notices=notices)


def _nested(document: Any) -> tuple[tuple[str, Any], ...] | None:
    """The items of the object `translation` in an object; None if there is none."""
    items = document if isinstance(document, tuple) else ()
    return next((value for key, value in items if key == "translation" and isinstance(value, tuple)), None)


def parsed_line(line: str) -> Any:
    """A line of JSON, its objects as tuples of their items, so that none is lost; None if it isn't JSON."""
    try:
        return json.loads(line.lstrip("\ufeff"), object_pairs_hook=tuple)  # of joined files
    except (ValueError, RecursionError):
        return None
