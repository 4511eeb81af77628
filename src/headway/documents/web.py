"""HTML files."""

import re

from headway.documents.segments import Languages, OpenedFile, Segment, decode_text
from headway.languages import is_language, same_language

_CHARSET = re.compile(
    rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:\-]+)""", re.IGNORECASE
)
_TAG = re.compile(r"<[a-z][^<>]*+>", re.IGNORECASE)
_LANGUAGE = re.compile(r"""(?<=\s)((?:xml:)?lang\s*=\s*["']?)([\w-]+)""", re.IGNORECASE)


def open_html(data: bytes, languages: Languages) -> OpenedFile:
    """A page, in the encoding that it names. Characters that this lacks are written as `&#8364;`. The attribute `lang`
    of the page, and of what is in its language, names the new one."""
    named = _CHARSET.search(data[:4096])
    name = named[1].decode() if named else ""
    found = decode_text(data, name)
    if data.isascii() and name.lower() not in ("", "utf-8", "utf8"):  # what its encoding is can't be seen
        found = found._replace(encoding="ascii")
    page = _in_language(found.text, languages) if is_language(languages.target) else found.text
    return OpenedFile([Segment(page, "html")], lambda said: found.encoded(said[0], "xmlcharrefreplace"))


def _in_language(page: str, languages: Languages) -> str:
    def renamed(tag: re.Match[str]) -> str:
        is_page = tag[0][1:5].lower() == "html"
        return _LANGUAGE.sub(
            lambda one: one[1] + languages.target if is_page or same_language(one[2], [languages.source]) else one[0],
            tag[0],
        )

    return _TAG.sub(renamed, page)
