"""Fields of a request, from JSON or a form, and access: keys and rates."""

import hashlib
import hmac
import ipaddress
import json
import math
import time
from codecs import BOM_UTF8
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from headway.errors import UserError
from headway.serving.schemas import FORMS, JSON
from headway.serving.settings import Settings
from headway.storage.untrusted import clipped
from headway.text.characters import HALF_PAIR, is_unicode

MOST_FIELDS = 100  # of a form
MINUTE = 60.0
MOST_KNOWN = 100_000  # keys and addresses of the last minute to remember; then the oldest are forgotten

Fields = TypeVar("Fields", bound=BaseModel)


class Access:
    """Keys and rates of one server."""

    def __init__(self, settings: Settings) -> None:
        self._keys = [*map(_digest, settings.api_keys)]
        self._rates = Rates(settings.rate_limit) if settings.rate_limit else None

    def admit(self, request: Request, key: object = None) -> None:
        """Raises HTTPException 429 for too many requests, 403 without a known key, in body or head, if needed."""
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = [key if isinstance(key, str) else "", bearer.strip() if scheme.lower() == "bearer" else ""]
        digests = map(_digest, given)  # each is compared with all keys, in constant time
        known = next((one for one in digests if sum(hmac.compare_digest(one, key) for key in self._keys)), None)
        if self._rates is not None:
            address = _network(request.client.host if request.client else "")
            wait = self._rates.wait(f"address {address}" if known is None else f"key {known.hex()}")
            if wait > 0:
                raise HTTPException(429, "too many requests", {"Retry-After": str(math.ceil(wait))})
        if self._keys and known is None:
            raise HTTPException(403, "a valid api_key is needed")

    async def fields(self, request: Request, kind: type[Fields]) -> Fields:
        """The fields of an admitted request. Raises UserError, HTTPException."""
        try:
            given = await _body(request)
        except (UserError, HTTPException):
            self.admit(request)  # unreadable requests count, too
            raise
        self.admit(request, given.get("api_key"))
        given = {name: value for name, value in given.items() if value is not None}
        try:
            return kind.model_validate(given, strict=_media_type(request) not in FORMS)
        except ValidationError as error:
            first = max(error.errors(), key=lambda one: len(one["loc"]))  # the most specific: an item of a list
            name, last = first["loc"][0], first["loc"][-1]
            item = f"item {last + 1}: " if isinstance(last, int) else ""
            raise UserError(f"{name}: {item}{first['msg']}") from None


class Rates:
    """Admits `most` requests a minute for each key or address."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()  # the latest is last

    def __len__(self) -> int:
        return len(self._times)

    def wait(self, who: str) -> float:
        """0 if a request is admitted now, else the seconds until it will be."""
        now = self._clock()
        while self._times and (len(self) > MOST_KNOWN or next(iter(self._times.values()))[-1] <= now - MINUTE):
            self._times.popitem(last=False)
        times = self._times.setdefault(who, deque(maxlen=self._most))
        if len(times) == self._most and times[0] > now - MINUTE:
            return times[0] + MINUTE - now
        times.append(now)
        self._times.move_to_end(who)
        return 0.0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()


def _network(address: str) -> str:
    """An IPv4 address, or the network of one IPv6 user."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


async def _body(request: Request) -> dict[str, Any]:
    """The fields as given; those of a form are text. Raises UserError, HTTPException."""
    media_type, body = _media_type(request), (await request.body()).removeprefix(BOM_UTF8)
    if media_type == JSON:
        try:
            document = from_json(body)
        except ValueError as error:
            missing = "" if request.headers.get("content-type") else "Content-Type: is missing; "
            encoding = json.detect_encoding(body)
            fault = f"is {encoding.upper()}; send UTF-8" if encoding != "utf-8" else f"is not JSON ({error})"
            raise UserError(_half_pair(body) or f"{missing}body: {fault}") from None
        if not isinstance(document, dict):
            raise UserError("body: must be a JSON object")
        return document
    if body.lstrip()[:1] == b"{":  # curl and urllib send JSON as a form unless told the type
        raise UserError(f"Content-Type: is {clipped(media_type)}, but the body looks like JSON; send {JSON}")
    if media_type not in FORMS:
        raise UserError(f"Content-Type: must be {JSON} or a form")
    try:
        if media_type == FORMS[0]:
            lists = parse_qs(body.decode("utf-8"), True, max_num_fields=MOST_FIELDS, errors="strict")
        else:
            async with request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=len(body) + 1) as form:
                lists: dict[str, list[Any]] = {name: form.getlist(name) for name in form}
    except ValueError:
        raise UserError("the body isn't what its Content-Type says") from None
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() or JSON


def _half_pair(body: bytes) -> str:
    """A message that names the field with half of a surrogate pair; empty without one."""
    with suppress(ValueError, TypeError, RecursionError):
        for name, value in dict(json.loads(body)).items():
            for number, one in enumerate(value if isinstance(value, list) else [value], start=1):
                if not is_unicode(json.dumps([name, one], ensure_ascii=False)):
                    item = f"item {number} " if isinstance(value, list) else ""
                    return f"{clipped(ascii(name)[1:-1])}: {item}{HALF_PAIR}"
    return ""
