"""Fields of a request, from JSON or a form."""

import json
import re
from codecs import BOM_UTF8
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from headway.errors import UserError, said_briefly
from headway.serving.admission import Client, Clients
from headway.serving.schemas import FORMS, JSON, UploadedFile
from headway.storage.untrusted import clipped
from headway.text.characters import HALF_PAIR

MOST_FIELDS = 100  # of a form
LONGEST_NAME = 100  # characters of a file's name; those at the end are kept
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")

Fields = TypeVar("Fields", bound=BaseModel)


async def fields(request: Request, kind: type[Fields], clients: Clients) -> tuple[Fields, Client]:
    """The fields of a request, and the client that it is admitted for. Raises UserError, HTTPException."""
    try:
        given = await _body(request, files=int("file" in kind.model_fields))
    except (UserError, HTTPException):
        clients.admit(request)  # unreadable requests count, too
        raise
    client = clients.admit(request, given.get("api_key"))
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return kind.model_validate(given, strict=_media_type(request) not in FORMS), client
    except ValidationError as error:
        first = max(error.errors(), key=lambda one: len(one["loc"]))  # the most specific: an item of a list
        name, last = first["loc"][0], first["loc"][-1]
        item = f"item {last + 1}: " if isinstance(last, int) else ""
        raise UserError(f"{name}: {item}{said_briefly(first['msg'])}") from None


async def _body(request: Request, files: int) -> dict[str, Any]:
    """The fields as given; those of a form are text, or as many files. Raises UserError, HTTPException."""
    media_type, body = _media_type(request), (await request.body()).removeprefix(BOM_UTF8)
    if media_type == JSON:
        try:
            document = from_json(body)
        except ValueError as error:
            missing = "" if request.headers.get("content-type") else "Content-Type: is missing; "
            encoding = json.detect_encoding(body)
            fault = f"is {encoding.upper()}; send UTF-8" if encoding != "utf-8" else f"is not JSON ({error})"
            if re.search("surrogate|hex escape", str(error)):
                fault = f"{HALF_PAIR} ({error})"
            raise UserError(f"{missing}body: {fault}") from None
        if not isinstance(document, dict):
            raise UserError("body: must be a JSON object")
        return document
    if body.lstrip()[:1] == b"{":  # curl and urllib send JSON as a form unless told the type
        raise UserError(f"Content-Type: is {clipped(media_type)}, but the body looks like JSON; send {JSON}")
    if media_type not in FORMS:
        raise UserError(f"Content-Type: must be {JSON} or a form")
    try:
        if media_type == FORMS[0]:
            text = "" if _BROKEN_ESCAPE.search(body) else body.decode("utf-8")
            lists = parse_qs(text, True, bool(body), max_num_fields=MOST_FIELDS, errors="strict")
        else:
            async with request.form(max_files=files, max_fields=MOST_FIELDS, max_part_size=len(body) + 1) as form:
                lists: dict[str, list[Any]] = {name: [await _read(one) for one in form.getlist(name)] for name in form}
    except ValueError:
        raise UserError("the body isn't what its Content-Type says") from None
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}


async def _read(value: UploadFile | str) -> UploadedFile | str:
    """A field of a form; of a file the name without folders."""
    if isinstance(value, str):
        return value
    name = PurePosixPath((value.filename or "").replace("\\", "/")).name
    return UploadedFile("".join(filter(str.isprintable, name))[-LONGEST_NAME:] or "file", await value.read())


def _media_type(request: Request) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return JSON if not given or re.fullmatch(r"application/[\w.-]+\+json", given) else given
