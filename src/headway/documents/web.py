"""HTML files."""

import re
from collections.abc import Sequence

from headway.documents.segments import Languages, OpenedFile, Segment, decode_text
from headway.errors import UserError

_CHARSET = re.compile(
    rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:\-]+)""", re.IGNORECASE
)


def open_html(data: bytes, _: Languages) -> OpenedFile:
    """A page, in the encoding that it names. Characters that this lacks are written as `&#8364;`."""
    named = _CHARSET.search(data[:4096])
    try:
        found = decode_text(data)
    except UserError:
        if named is None:
            raise
        encoding = named[1].decode()
        text = data.decode(encoding)
        return OpenedFile([Segment(text, "html")], lambda said: said[0].encode(encoding, "xmlcharrefreplace"))

    def written(translations: Sequence[str]) -> bytes:
        return found.encoded(translations[0])

    return OpenedFile([Segment(found.text, "html")], written)
