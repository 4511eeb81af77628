"""Files as segments: the texts of a file that are translated, and a function that writes it with their translations."""

import codecs
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from headway.documents.parsing import TextFormat
from headway.errors import UserError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and the encodings that they stand for."""
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
"""A line with its end; `findall` also gives an empty one at last."""


class Segment(NamedTuple):
    """A text of a file that is translated by itself, such as a paragraph, a cell or a message."""

    text: str
    format: TextFormat = "text"
    """In HTML the text may have inline tags, which come back in the translation, each once and beside its words."""


class Languages(NamedTuple):
    """The codes of the languages of a translation, for kinds that name them."""

    source: str
    """Empty if it isn't known yet."""
    target: str


Put: TypeAlias = Callable[[str], object]
"""Puts a translation in its place."""


class OpenedFile(NamedTuple):
    """The content of a file."""

    segments: Sequence[Segment]
    written: Callable[[Sequence[str]], bytes]
    """The file with a translation for each segment; all else is as it was."""

    @classmethod
    def of(
        cls, texts: Sequence[tuple[Segment, Put]], content: Callable[[], bytes], *, fills: bool = False
    ) -> "OpenedFile":
        """content: gives the file with the translations that were put into it. fills: whether translations have places
        of their own; else a text whose translation is the same stays as it is written."""

        def written(translations: Sequence[str]) -> bytes:
            for (segment, put), translation in zip(texts, translations, strict=True):
                if fills or translation != segment.text:
                    put(translation)
            return content()

        return cls([segment for segment, _ in texts], written)


class EncodedText(NamedTuple):
    """The text of a file and its encoding."""

    text: str
    encoding: str
    mark: bytes = b""

    def encoded(self, text: str, errors: str = "strict") -> bytes:
        """Another text in this encoding. errors: of characters that it lacks, as in `str.encode`."""
        return self.mark + text.encode(self.encoding, errors)


def decode_text(data: bytes, other: str = "") -> EncodedText:
    """The text of a file in UTF-8, in UTF-16 with a byte order mark, else in the other encoding. Raises UserError."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        return EncodedText(data[len(mark) :].decode(encoding), encoding, mark)
    except UnicodeDecodeError as error:
        if other:
            return EncodedText(data.decode(other), other)
        line = 1 + data.count(b"\n", 0, len(mark) + error.start)
        raise UserError(f"line {line} is not {encoding.upper()}; convert the file to UTF-8") from None
