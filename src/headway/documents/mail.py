"""Mail: EML, a message as it was sent."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from textwrap import TextWrapper

from headway.documents.parsing import TextFormat
from headway.documents.segments import Languages, OpenedFile, Put, Segment
from headway.errors import UserError

MOST_PARTS, LONGEST_HEADERS = 1_000, 65_536
"""Parts of a mail, and bytes of all its headers: Python's parser takes time with the square of both."""
_FORMATS: dict[str, TextFormat] = {"text/plain": "text", "text/html": "html"}
_KIND = re.compile(rb"^content-type:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)
_OTHER = re.compile(r"content-(?!type$|transfer-encoding$)", re.IGNORECASE)
_WRAPPER = TextWrapper(72, break_long_words=False, break_on_hyphens=False)


def open_eml(data: bytes, _: Languages) -> OpenedFile:
    """The subject, and the text as plain text and as HTML. Attachments stay, and headers as they are folded. Text comes
    back in UTF-8."""
    if data.count(b"\n--") > MOST_PARTS:
        raise UserError(f"has more than {MOST_PARTS:,} parts")
    too_long = UserError(f"has more than {LONGEST_HEADERS:,} bytes in its headers")
    if any(len(kind[0]) > LONGEST_HEADERS for kind in _KIND.finditer(data)):
        raise too_long
    end = "\r\n" if b"\r\n" in data[: data.find(b"\n") + 1] else "\n"
    message = message_from_bytes(data, policy=policy.default.clone(refold_source="none", linesep=end))
    assert isinstance(message, EmailMessage)
    if sum(len(value) for part in message.walk() for _, value in part.raw_items()) > LONGEST_HEADERS:
        raise too_long
    if not message.keys():
        raise UserError("has no header")
    kinds = {part.get_content_type() for part in message.walk()}
    if kinds & {"multipart/signed", "multipart/encrypted", "application/pkcs7-mime"}:
        raise UserError("is signed or encrypted, which a translation can't be")
    message.as_bytes()  # a damaged one can't be written, and is refused here

    def put_subject(subject: str) -> None:
        if message["subject"]:
            message.replace_header("subject", " ".join(subject.split()))

    bodies = [
        _body(part)
        for part in message.walk()
        if isinstance(part, EmailMessage)
        and part.get_content_type() in _FORMATS
        and part.get_content_disposition() != "attachment"
    ]
    return OpenedFile.of([(Segment(str(message["subject"] or "")), put_subject), *bodies], message.as_bytes)


def _body(part: EmailMessage) -> tuple[Segment, Put]:
    text, kind = part.get_content(), part.get_content_subtype()
    params = {name: str(value) for name, value in part.get_params([])[1:] if name.isascii()}
    params.pop("charset", None)
    flowed, soft = (params.get(name, "").lower() == value for name, value in (("format", "flowed"), ("delsp", "yes")))
    is_flowed = flowed and kind != "html"

    def put(said: str) -> None:
        others = [(name, value) for name, value in part.raw_items() if _OTHER.match(name)]
        part.set_content(_broken(said, " " * soft) if is_flowed else said, subtype=kind, params=params)
        for name, value in others:  # which went with the content
            part.set_raw(name, value)

    return Segment(_joined(text, " " * soft) if is_flowed else text, _FORMATS[part.get_content_type()]), put


def _joined(text: str, soft: str) -> str:
    """The text of `format=flowed` (RFC 3676) with a line for each paragraph: a space at the end of a line says that the
    paragraph goes on. soft: the end of such a line, after its last word and the space between words."""
    made: list[str] = []
    goes_on = None  # the quotation in which the last line has no end
    for line in re.split("\r?\n", text):
        quote, words = re.findall(r"\A(>*) ?(.*)\Z", line, re.DOTALL)[0]
        made += [] if quote == goes_on else ["\n" * bool(made), quote and f"{quote} "]
        goes_on = quote if words.endswith(" ") and words != "-- " else None
        made.append(words.removesuffix(soft) if goes_on is not None else words)
    return "".join(made)


def _broken(text: str, soft: str) -> str:
    """The text with lines of at most 72 characters and the marks of their quotation."""
    made: list[str] = []
    for line in text.split("\n"):
        quote, words = re.findall(r"\A(>*)(.*)\Z", line, re.DOTALL)[0]
        lines = [words] if words == "-- " else _WRAPPER.wrap(words.strip() if quote else words) or [""]
        lines = [f"{quote}{' ' * bool(quote or one.startswith((' ', 'From ')))}{one}" for one in lines]
        made.append(f" {soft}\n".join(lines))
    return "\n".join(made)
