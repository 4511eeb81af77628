"""The body of a request: the fields of a JSON object or of a form."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request
from pydantic_core import from_json

from headway.serving.refusals import refusal
from headway.storage.untrusted import clipped
from headway.text.characters import HALF_PAIR, is_unicode

JSON = "application/json"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
MOST_FIELDS = 100
"""Most fields of a form."""


def is_form(request: Request) -> bool:
    """Whether its body is a form, whose values are all text."""
    return _media_type(request) in FORMS


async def read_body(request: Request) -> dict[str, Any]:
    """The fields. Raises HTTPException."""
    media_type, body = _media_type(request), (await request.body()).removeprefix(BOM_UTF8)
    if media_type == JSON:
        try:
            document = from_json(body)
        except ValueError as error:
            missing = "" if request.headers.get("content-type") else "Content-Type: is missing; "
            encoding = json.detect_encoding(body)
            fault = f"is {encoding.upper()}; send UTF-8" if encoding != "utf-8" else f"is not JSON ({error})"
            raise refusal(400, _half_pair(body) or f"{missing}body: {fault}") from None
        if not isinstance(document, dict):
            raise refusal(400, "body: must be a JSON object")
        return document
    if body.lstrip()[:1] == b"{":  # as curl and urllib send what they aren't told the type of
        raise refusal(400, f"Content-Type: is {clipped(media_type)}, but the body looks like JSON; send {JSON}")
    try:
        if media_type == FORMS[0]:
            pairs = parse_qs(body.decode("utf-8"), True, max_num_fields=MOST_FIELDS, errors="strict")
            return _single(pairs)
        if media_type == FORMS[1]:
            async with request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=len(body) + 1) as form:
                return _single({name: form.getlist(name) for name in form})
    except ValueError:
        raise refusal(400, "the body isn't what its Content-Type says") from None
    raise refusal(400, f"Content-Type: must be {JSON} or a form")


def _half_pair(body: bytes) -> str:
    """The field of a JSON object with half of a surrogate pair, in its name or value, as a message; empty without
    one."""
    with suppress(ValueError, TypeError, RecursionError):
        for name, value in dict(json.loads(body)).items():
            for number, one in enumerate(value if isinstance(value, list) else [value], start=1):
                if not is_unicode(json.dumps([name, one], ensure_ascii=False)):
                    item = f"item {number} " if isinstance(value, list) else ""
                    return f"{clipped(ascii(name)[1:-1])}: {item}{HALF_PAIR}"
    return ""


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() or JSON


def _single(form: dict[str, list[Any]]) -> dict[str, Any]:
    """The form with each field that is given once as a plain value, not a list."""
    return {name: values[0] if len(values) == 1 else values for name, values in form.items()}
