"""Signatures of files that aren't UTF-8 text: UTF-16 and UTF-32, with or without a byte order mark, archives, documents
and images."""

from __future__ import annotations

MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""Byte order marks; those of UTF-32 come first, because one of them begins like one of UTF-16."""
FORMATS = {
    b"PK\x03\x04": "a ZIP archive, as .docx, .xlsx and .odt files are; save its text as a plain text file",
    b"\xd0\xcf\x11\xe0": "a document of an old Office format; save its text as a plain text file",
    b"{\\rtf": "an RTF document; save its text as a plain text file",
    b"%PDF-": "a PDF document; save its text as a plain text file",
    b"\x89PNG": "an image; give a text file",
    b"\xff\xd8\xff": "an image; give a text file",
    b"\x1f\x8b": "compressed with gzip; decompress it first, as with `gzip -dc`",
    b"\xfd7zXZ\0": "compressed with xz; decompress it first, as with `xz -dc`",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; decompress it first, as with `zstd -dc`",
    b"BZh91AY&SY": "compressed with bzip2; decompress it first, as with `bzip2 -dc`",
}
LOW = bytes(range(9))
"""Bytes that are rare in text. In UTF-16 every second byte of alphabetic text is one: 0 in Latin, 3 in Greek, 4 in
Cyrillic."""
FEWEST_LOW = 4
"""A line with fewer low bytes is text with stray control characters."""


def fault_of_line(raw: bytes, number: int) -> str | None:
    """The fault of a line that isn't UTF-8, with the remedy; None if it may be text. number: its number in the file;
    only line 1 can show a format."""
    if number == 1:
        for mark, encoding in MARKS.items():
            if raw.startswith(mark):
                return _to_convert(encoding)
        for beginning, meaning in FORMATS.items():
            if raw.startswith(beginning):
                return f"is {meaning}"
    low = len(raw) - len(raw.translate(None, LOW))
    if low < FEWEST_LOW or low * 3 < len(raw) or not raw.strip(LOW + b"\r\n"):
        return None
    odd = sum(place % 2 for place, byte in enumerate(raw) if byte in LOW) / low
    order = "" if number > 1 else "BE" if raw[0] in LOW else "LE"
    if not 0.1 < odd < 0.9:
        return _to_convert(f"UTF-16{order}")
    if low > 0.7 * len(raw) and not 0.4 < odd < 0.6:
        return _to_convert(f"UTF-32{order}")
    return "holds bytes that no text has; is it a text file?"


def _to_convert(encoding: str) -> str:
    return f"is {encoding}; convert the file, for example with `iconv -f {encoding} -t UTF-8`"
