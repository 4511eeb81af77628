"""Who may use the server, and how often."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from headway.serving.refusals import refusal
from headway.serving.settings import Settings

MINUTE = 60.0
MOST_KNOWN = 100_000
"""Keys and addresses of the last minute that are remembered; beyond, those are forgotten that came first."""


class Access:
    """Keys and rates of one server."""

    def __init__(self, settings: Settings) -> None:
        self._keys = [_digest(key) for key in settings.api_keys]
        self._rates = Rates(settings.rate_limit) if settings.rate_limit else None

    @property
    def needs_key(self) -> bool:
        return bool(self._keys)

    def admit(self, keys: Sequence[str], address: str | None) -> None:
        """Raises HTTPException 429 for one who comes too often, 403 for one without a key where keys are needed. `keys`
        are those that a request names, in its body and its head: one of them must be known."""
        known = next((one for one in map(_digest, keys) if self._is_known(one)), None)
        if self._rates is not None:
            wait = self._rates.wait(f"address {_network(address)}" if known is None else f"key {known.hex()}")
            if wait > 0:
                raise refusal(429, "too many requests", {"Retry-After": str(math.ceil(wait))})
        if self._keys and known is None:
            raise refusal(403, "a valid api_key is needed")

    def _is_known(self, given: bytes) -> bool:
        """In a time that tells nothing of the keys: digests are compared, each with all of them."""
        return sum(hmac.compare_digest(given, one) for one in self._keys) > 0


class Rates:
    """The times of what was admitted in the last minute, `most` for each."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        """Who came last is last."""

    def __len__(self) -> int:
        return len(self._times)

    def wait(self, who: str) -> float:
        """0 for one who is admitted now, else the seconds until he will be."""
        now = self._clock()
        while self._times and (len(self) > MOST_KNOWN or next(iter(self._times.values()))[-1] <= now - MINUTE):
            self._times.popitem(last=False)
        times = self._times.setdefault(who, deque())
        while times and times[0] <= now - MINUTE:
            times.popleft()
        if len(times) >= self._most:
            return times[0] + MINUTE - now
        times.append(now)
        self._times.move_to_end(who)
        return 0.0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()


def _network(address: str | None) -> str:
    """An IPv4 address, or the network that one user of IPv6 has."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    return str(found) if found.version == 4 else str(ipaddress.ip_network(f"{found}/64", strict=False))
