"""HTML files."""

import re

from headway.documents.segments import Languages, OpenedFile, Segment, decode_text
from headway.errors import UserError
from headway.languages import is_language, same_language

_CHARSET = re.compile(
    rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:\-]+)""", re.IGNORECASE
)


_TAG = re.compile(r"<[a-z][^<>]*+>", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"<[a-z][^\s<>]*+(?:\s++(?!(?:xml:)?lang\s*=)[^\s<>]*+)*+\s++(?:xml:)?lang\s*=[^<>]*+>", re.IGNORECASE
)
_LANGUAGE = re.compile(r"""(?<=\s)((?:xml:)?lang\s*=\s*["']?)([\w-]+)""", re.IGNORECASE)


def open_html(data: bytes, languages: Languages) -> OpenedFile:
    """A page, in the encoding that it names. Characters that this lacks are written as `&#8364;`. The attribute `lang`
    of the page, and of what is in its language, names the new one."""
    named = _CHARSET.search(data[:4096])
    try:
        found = decode_text(data)
    except UserError:
        if named is None:
            raise
        encoding = named[1].decode()
        text = _in_language(data.decode(encoding), languages)
        return OpenedFile([Segment(text, "html")], lambda said: said[0].encode(encoding, "xmlcharrefreplace"))
    segment = Segment(_in_language(found.text, languages), "html")
    return OpenedFile([segment], lambda translations: found.encoded(translations[0]))


def _in_language(page: str, languages: Languages) -> str:
    def renamed(tag: str) -> str:
        is_page = tag[1:5].lower() == "html"
        return _LANGUAGE.sub(
            lambda one: one[1] + languages.target if is_page or same_language(one[2], [languages.source]) else one[0],
            tag,
        )

    return _TAG.sub(lambda match: renamed(match[0]), page) if is_language(languages.target) else page
