"""Kinds of files that are translated as a whole, known by the ends of their names.

To add a kind, write a function like `open_html`, which takes the bytes of a file and the languages of the translation
and returns an `OpenedFile`, and name it in `KINDS`. For a file that it refuses it raises UserError, without the file's
name; `open_file` explains errors of readers that stand in `DAMAGED`. This module needs no extra.
"""

from __future__ import annotations

import struct
import zlib
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from headway.errors import UserError

if TYPE_CHECKING:
    from headway.documents.segments import Languages, OpenedFile

KINDS = {
    "html": "web.open_html",
    "srt": "subtitles.open_srt",
    "vtt": "subtitles.open_vtt",
    "md": "markdown.open_md",
    "epub": "books.open_epub",
    "eml": "mail.open_eml",
    "po": "messages.open_po",
    "xliff": "messages.open_xliff",
    "tmx": "messages.open_tmx",
    "ts": "messages.open_ts",
    "android": "messages.open_android",
    "properties": "messages.open_properties",
    "json": "messages.open_json",
    "docx": "office.open_docx",
    "pptx": "office.open_pptx",
    "xlsx": "office.open_xlsx",
    "odt": "opendocument.open_odf",
    "ods": "opendocument.open_odf",
    "odp": "opendocument.open_odf",
}
"""For the end of a file's name the function that opens it, and its module here."""
OTHER_ENDS = {"htm": "html", "xhtml": "html", "markdown": "md", "xlf": "xliff", "pot": "po"}
"""Other ends of the names of such files."""
_CONVERTED = {
    "pdf": "pdftotext",
    **dict.fromkeys(("doc", "docm", "rtf"), "soffice --convert-to docx"),
    **dict.fromkeys(("xls", "xlsm"), "soffice --convert-to xlsx"),
    **dict.fromkeys(("ppt", "pptm"), "soffice --convert-to pptx"),
}
"""Ends of the names of files that are no text, and the commands that convert them."""
MOST_BYTES = 200 * 2**20
"""The largest file that is read."""
DAMAGED = (
    ValueError,
    LookupError,
    SyntaxError,  # of lxml
    EOFError,
    OSError,
    RuntimeError,  # an encrypted archive, a recursion too deep
    OverflowError,
    struct.error,
    zlib.error,
    BadZipFile,
)
"""Errors of the readers for files that they can't read."""


def kind_of(name: str) -> str | None:
    """The kind of a file, by its name; None if it is read as lines. Raises UserError for a file that is no text."""
    end = PurePath(name).suffix.lower().removeprefix(".")
    if end in _CONVERTED:
        raise UserError(f"{name}: .{end} is not translated; convert it first: {_CONVERTED[end]}")
    if PurePath(name).name.lower().endswith("strings.xml"):
        return "android"
    end = OTHER_ENDS.get(end, end)
    return end if end in KINDS else None


def open_file(kind: str, data: bytes, languages: Languages, name: str) -> OpenedFile:
    """The texts of a file of this kind. name: the file in messages. Raises UserError if it can't be read."""
    if kind not in KINDS:
        raise UserError(f"there is no kind {kind!r} of file; there are {', '.join(KINDS)}, and lines")
    if len(data) > MOST_BYTES:
        raise UserError(f"{name}: has {len(data):,} bytes, the limit is {MOST_BYTES:,}")
    try:
        module, _, function = KINDS[kind].partition(".")
        return getattr(import_module(f"headway.documents.{module}"), function)(data, languages)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'headway[formats]'") from None
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{name}: damaged, or no {kind} file: {reason}") from None
