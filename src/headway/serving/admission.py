"""Admits clients, each known by its key or address, within limits by minute, hour and day, and on requests at once."""

import hashlib
import hmac
import ipaddress
import math
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from headway.errors import UserError
from headway.serving.settings import Limits, Settings

SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
MOST_KNOWN = 100_000  # clients whose units are remembered; then the oldest are forgotten
SHARES = 4  # a client has at most 1/SHARES of the places for requests
MOST_BODIES, BODIES_OF_A_CLIENT = 512, 32  # that are being received: of all, and of one client
REFUSALS_A_SECOND = 10  # that a client gets at once
RETRY_AFTER = 2  # seconds until a refused client may try again


@dataclass(frozen=True)
class Client:
    """Who asks."""

    name: str
    limits: Limits


def parse_limits(text: str) -> Limits:
    """Units by seconds, of `120`, which is a minute's, or `120/minute,5000/day`; `0` is no limit. Raises UserError."""
    found = []
    for one in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,12})(?:/(minute|hour|day))?", one.strip())
        if match is None:
            raise UserError(f"limit {one!r}: must be a number, or such as 120/minute, 2000/hour, 10000/day")
        if int(match[1]):
            found.append((SECONDS[match[2] or "minute"], int(match[1])))
    return tuple(found)


class Places:
    """Places for what is under way, of which a client has a share, and never more than are free."""

    def __init__(self, most: int, share: int) -> None:
        self._most, self._share = most, max(1, share)
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()  # they may be given back in any thread

    @property
    def taken(self) -> int:
        return self._taken.total()

    def lack(self, client: str) -> Literal["all", "share"] | None:
        """`all` if no place is free, `share` if none is left of the client's share; None if it may take one."""
        free = self._most - self.taken
        if free > 0:
            return "share" if self._taken[client] >= min(self._share, free) else None
        return "all"

    def count(self, client: str, by: int) -> None:
        with self._lock:
            self._taken[client] += by
            if not self._taken[client]:
                del self._taken[client]

    def take(self, client: str, refused: str, *, close: bool = False) -> None:
        """Raises HTTPException 429 if the client has its share, 503 if no place is left."""
        if lack := self.lack(client):
            raise busy(close=close) if lack == "all" else HTTPException(429, refused, refusal(close=close))
        self.count(client, 1)

    @contextmanager
    def kept(self, client: str, refused: str, *, close: bool = False) -> Iterator[None]:
        """While the client has a place; raises as `take` does."""
        self.take(client, refused, close=close)
        try:
            yield
        finally:
            self.count(client, -1)


class Clients:
    """Knows clients by their keys and addresses, and charges them."""

    def __init__(self, settings: Settings, on_charge: Callable[[int], None]) -> None:
        """on_charge: called with the units that a client is charged with."""
        self._keys = {_digest(key): limits for key, limits in settings.api_keys.items()}
        self._metrics_key = _digest(settings.metrics_key) if settings.metrics_key else None
        self._limits = settings.rate_limit
        self._rates, self._refusals, self._on_charge = Rates(), Rates(), on_charge
        self.places = Places(settings.max_requests, settings.max_requests // SHARES)
        self._bodies = Places(MOST_BODIES, BODIES_OF_A_CLIENT)
        self._salt = secrets.token_bytes()

    def admit(self, request: HTTPConnection, key: object = None) -> Client:
        """The client, charged with one unit. Raises HTTPException 429 over its limits, 403 without a known key, in body
        or head, if one is needed."""
        known = self._known(request, key)
        limits = None if known is None else self._keys[known]
        client = Client(_name(request, known), self._limits if limits is None else limits)
        label = hmac.digest(self._salt, client.name.encode(), "sha256").hex()[:12]
        request.scope.setdefault("state", {})["client"] = label  # for the log, which tells clients apart and no more
        self.charge(client, 1)
        if self._keys and known is None:
            raise HTTPException(403, "a valid api_key is needed")
        return client

    def admit_to_metrics(self, request: HTTPConnection) -> None:
        """Raises HTTPException 403 without the key for metrics; if there is none, admits any client."""
        if self._metrics_key is None:
            self.admit(request)
        elif not hmac.compare_digest(_digest(_bearer(request)), self._metrics_key):
            raise HTTPException(403, "the key for metrics is needed")

    def charge(self, client: Client, units: int, paid: int = 0) -> None:
        """Charges the client with units, of which some are paid. Raises HTTPException 429 if it hasn't so many left,
        UserError if it never has."""
        for seconds, most in client.limits:
            if units > most:
                period = next(name for name, value in SECONDS.items() if value == seconds)
                raise UserError(f"the request counts as {units:,} units, the limit is {most:,} a {period}; send less")
        if (wait := self._rates.wait(client.name, units - paid, client.limits)) > 0:
            raise HTTPException(429, "too many requests", {"Retry-After": str(math.ceil(wait))})
        self._on_charge(units - paid)

    def pause_of_refusal(self, request: HTTPConnection) -> float:
        """Seconds to wait before a client is refused, at most 1: refusals in quick succession would take the time of
        others."""
        who = request.scope["state"].get("client") or _name(request, None)
        return self._refusals.wait(who, 1, ((1, REFUSALS_A_SECOND),))

    def _known(self, request: HTTPConnection, key: object = "") -> bytes | None:
        """The digest of the known key in body or head; each is compared with all keys, in constant time."""
        digests = [_digest(key if isinstance(key, str) else ""), _digest(_bearer(request))]
        return next((one for one in digests if sum(hmac.compare_digest(one, key) for key in self._keys)), None)

    def receiving(self, request: HTTPConnection) -> AbstractContextManager[None]:
        """While a body is received. It counts for a known key in the head, so that clients behind one address have
        places of their own, else for the address. Raises HTTPException 429 if too many count so, 503 if all do."""
        name = _name(request, self._known(request))
        return self._bodies.kept(name, "too many of your requests are being sent at once", close=True)


class Rates:
    """Units that clients were charged with in the last minute, hour and day. A period counts as it does in a sliding
    window: the last whole one by the part of it that is within the window, as if its units were spread evenly."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spent: OrderedDict[str, tuple[float, dict[int, tuple[int, int, int]]]] = OrderedDict()
        """By client, the latest last: the time until which it is remembered, and for each length of a period in seconds
        the number of the latest one, its units, and those of the one before."""

    def __len__(self) -> int:
        return len(self._spent)

    def wait(self, who: str, units: int, limits: Limits) -> float:
        """0 if the client may spend the units now, else the seconds until it may."""
        now = self._clock()
        if not limits:
            return 0.0
        while self._spent and (len(self) > MOST_KNOWN or next(iter(self._spent.values()))[0] <= now):
            self._spent.popitem(last=False)
        _, before = self._spent.get(who, (now, {}))
        periods = {seconds: _at(now, seconds, before.get(seconds, (0, 0, 0))) for seconds, _ in limits}
        if wait := max(_wait(now, seconds, most - units, periods[seconds]) for seconds, most in limits):
            return wait
        after = {seconds: (number, now_ + units, last) for seconds, (number, now_, last) in periods.items()}
        self._spent[who] = now + 2 * max(periods), after
        self._spent.move_to_end(who)
        return 0.0


def _at(now: float, seconds: int, period: tuple[int, int, int]) -> tuple[int, int, int]:
    """The period that is now: its number, its units, and those of the one before."""
    number, (known, units, before) = int(now // seconds), period
    return number, units if number == known else 0, {0: before, 1: units}.get(number - known, 0)


def _wait(now: float, seconds: int, left: int, period: tuple[int, int, int]) -> float:
    """Seconds until no more than `left` units are in the window."""
    _, units, before = period
    passed = now % seconds
    if before * (1 - passed / seconds) + units <= left:
        return 0.0
    if units <= left:
        return seconds * (1 - (left - units) / before) - passed
    return seconds - passed + seconds * (1 - left / units)


def refusal(*, close: bool = False) -> dict[str, str]:
    """Headers of an answer to a client that may come again."""
    return {"Retry-After": str(RETRY_AFTER), **({"Connection": "close"} if close else {})}


def busy(message: str = "the server is busy", *, close: bool = False) -> HTTPException:
    """The answer where the server can't do what a client may ask for."""
    return HTTPException(503, message, refusal(close=close))


def _name(request: HTTPConnection, known: bytes | None) -> str:
    """The name of the client with the known key, or else of the address."""
    if known is not None:
        return f"key {known.hex()}"
    return f"address {network_of(request.client.host if request.client else '')}"


def network_of(address: str) -> str:
    """An IPv4 address, or the network of 64 bits of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.ip_network((found, 64), strict=False))
        found = found.ipv4_mapped
    return str(found)


def _bearer(request: HTTPConnection) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()
