"""Mail: EML, a message as it was sent."""

import re
from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage

from headway.documents.segments import Languages, OpenedFile, Segment
from headway.errors import UserError

MOST_PARTS, LONGEST_HEADERS = 1_000, 65_536
"""Parts of a mail, and bytes of all its headers: Python's parser takes time with the square of both."""
_KIND = re.compile(rb"^content-type:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)


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
        and part.get_content_type() in ("text/plain", "text/html")
        and part.get_content_disposition() != "attachment"
    ]
    message.as_bytes()  # a damaged one can't be written, and is refused here
    segments = [Segment(str(message["subject"] or ""))]
    segments += [
        Segment(part.get_content(), "html" if part.get_content_subtype() == "html" else "text") for part in parts
    ]

    def written(translations: Sequence[str]) -> bytes:
        subject, *texts = translations
        if message["subject"]:
            message.replace_header("subject", " ".join(subject.split()))
        for part, text in zip(parts, texts, strict=True):
            part.set_content(text, subtype=part.get_content_subtype())
        return message.as_bytes()

    return OpenedFile(segments, written)
