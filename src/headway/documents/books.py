"""Books: EPUB."""

import re
from collections.abc import Sequence
from urllib.parse import quote

from headway.documents.archives import read_archive, rewrite_archive
from headway.documents.segments import Languages, OpenedFile, Segment, decode_text
from headway.documents.web import open_html
from headway.errors import UserError

_PAGE = re.compile(r".*\.x?html?", re.IGNORECASE)
_KEYS = "META-INF/encryption.xml"
_CONTENTS = re.compile(r".*\.(ncx|opf)", re.IGNORECASE)
_TITLE = re.compile(r"(<(text|(?:\w+:)?title)\b[^>]*>)([^<]*)(?=</\2>)")
"""An entry of a table of contents, or the title of the book."""
_LANGUAGE = re.compile(r"(<(?:\w+:)?language\b[^>]*>)[^<]*(?=<)")


def open_epub(data: bytes, languages: Languages) -> OpenedFile:
    """The pages, the table of contents, and the title, which names the new language."""
    files = read_archive(data, lambda name: name == _KEYS or _PAGE.fullmatch(name) or _CONTENTS.fullmatch(name))
    keys = files.pop(_KEYS, b"").decode("utf-8", "replace")  # those of fonts alone don't matter
    if any(f'"{quote(name)}"' in keys for name in files):
        raise UserError("is protected against copying")
    opened = {
        name: open_html(part, languages) if _PAGE.fullmatch(name) else _open_contents(part, languages)
        for name, part in files.items()
    }
    if not opened:
        raise UserError("holds no page")

    def written(translations: Sequence[str]) -> bytes:
        rest = iter(translations)
        made = {name: one.written([next(rest) for _ in one.segments]) for name, one in opened.items()}
        return rewrite_archive(data, made)

    return OpenedFile([segment for one in opened.values() for segment in one.segments], written)


def _open_contents(data: bytes, languages: Languages) -> OpenedFile:
    found = decode_text(data)

    def written(translations: Sequence[str]) -> bytes:
        rest = iter(translations)
        text = _TITLE.sub(lambda match: match[1] + next(rest), found.text)
        return found.encoded(_LANGUAGE.sub(lambda match: match[1] + languages.target, text, 1))

    return OpenedFile([Segment(match[3], "html") for match in _TITLE.finditer(found.text)], written)
