"""Mail: EML, a message as it was sent."""

import re
from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from textwrap import TextWrapper
from typing import NamedTuple

from headway.documents.parsing import TextFormat
from headway.documents.segments import Languages, OpenedFile, Segment
from headway.errors import UserError

MOST_PARTS, LONGEST_HEADERS = 1_000, 65_536
"""Parts of a mail, and bytes of all its headers: Python's parser takes time with the square of both."""
_FORMATS: dict[str, TextFormat] = {"text/plain": "text", "text/html": "html"}
_KIND = re.compile(rb"^content-type:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)
_WRAPPER = TextWrapper(72, break_long_words=False, break_on_hyphens=False)


class _Flow(NamedTuple):
    """Lines of `format=flowed` (RFC 3676), where a space at the end says that the paragraph goes on."""

    params: dict[str, str]

    @classmethod
    def of(cls, part: EmailMessage) -> "_Flow | None":
        params = {name: str(part.get_param(name, "")).lower() for name in ("format", "delsp")}
        is_flowed = part.get_content_subtype() == "plain" and params["format"] == "flowed"
        return cls({name: value for name, value in params.items() if value}) if is_flowed else None

    @property
    def _soft(self) -> str:
        """The end of a line that goes on, after its last word and the space between words."""
        return " " if self.params.get("delsp") == "yes" else ""

    def joined(self, text: str) -> str:
        """The text with a line for each paragraph."""
        made: list[str] = []
        goes_on = None  # the quotation in which the last line has no end
        for line in re.split("\r?\n", text):
            quote, words = re.findall(r"\A(>*) ?(.*)\Z", line, re.DOTALL)[0]
            made += [] if quote == goes_on else ["\n" * bool(made), quote and f"{quote} "]
            goes_on = quote if words.endswith(" ") and words != "-- " else None
            made.append(words.removesuffix(self._soft) if goes_on is not None else words)
        return "".join(made)

    def broken(self, text: str) -> str:
        """The text with lines of at most 72 characters and the marks of their quotation."""
        made: list[str] = []
        for line in text.split("\n"):
            quote, words = re.findall(r"\A(>*)(.*)\Z", line, re.DOTALL)[0]
            lines = [words] if words == "-- " else _WRAPPER.wrap(words.strip() if quote else words) or [""]
            lines = [f"{quote}{' ' * bool(quote or one.startswith((' ', 'From ')))}{one}" for one in lines]
            made.append(f" {self._soft}\n".join(lines))
        return "\n".join(made)


def open_eml(data: bytes, _: Languages) -> OpenedFile:
    """The subject, and the text as plain text and as HTML. Attachments stay. Text comes back in UTF-8."""
    if data.count(b"\n--") > MOST_PARTS:
        raise UserError(f"has more than {MOST_PARTS:,} parts")
    too_long = UserError(f"has more than {LONGEST_HEADERS:,} bytes in its headers")
    if any(len(kind[0]) > LONGEST_HEADERS for kind in _KIND.finditer(data)):
        raise too_long
    message = message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    if sum(len(value) for part in message.walk() for _, value in part.raw_items()) > LONGEST_HEADERS:
        raise too_long
    if not message.keys():
        raise UserError("has no header")
    kinds = {part.get_content_type() for part in message.walk()}
    if kinds & {"multipart/signed", "multipart/encrypted", "application/pkcs7-mime"}:
        raise UserError("is signed or encrypted, which a translation can't be")
    parts = [
        part
        for part in message.walk()
        if isinstance(part, EmailMessage)
        and part.get_content_type() in _FORMATS
        and part.get_content_disposition() != "attachment"
    ]
    message.as_bytes()  # a damaged one can't be written, and is refused here
    flows = [_Flow.of(part) for part in parts]
    segments = [Segment(str(message["subject"] or ""))]
    segments += [
        Segment(
            part.get_content() if flow is None else flow.joined(part.get_content()), _FORMATS[part.get_content_type()]
        )
        for part, flow in zip(parts, flows, strict=True)
    ]

    def written(translations: Sequence[str]) -> bytes:
        subject, *texts = translations
        if message["subject"]:
            message.replace_header("subject", " ".join(subject.split()))
        for part, flow, text in zip(parts, flows, texts, strict=True):
            made, params = (text, None) if flow is None else (flow.broken(text), flow.params)
            part.set_content(made, subtype=part.get_content_subtype(), params=params)
        return message.as_bytes()

    return OpenedFile(segments, written)
