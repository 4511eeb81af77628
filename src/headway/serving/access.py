"""Who may use the server, and how often."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from headway.serving.refusals import refusal
from headway.serving.settings import Settings


class Access:
    """Keys and rates of one server."""

    def __init__(self, settings: Settings) -> None:
        self._keys = [_digest(key) for key in settings.api_keys]
        self._rate = RateLimitItemPerMinute(settings.rate_limit) if settings.rate_limit else None
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    @property
    def needs_key(self) -> bool:
        return bool(self._keys)

    def admit(self, key: str | None, address: str | None) -> None:
        """Raises HTTPException 429 for one who comes too often, 403 for one without a key where keys are needed."""
        known = self._is_known(key)
        if self._rate is not None:
            who = f"key {_digest(key or '').hex()}" if known else f"address {_network(address)}"
            if not self._limiter.hit(self._rate, who):
                wait = self._limiter.get_window_stats(self._rate, who).reset_time - time.time()
                raise refusal(429, "too many requests", {"Retry-After": str(max(1, math.ceil(wait)))})
        if self._keys and not known:
            raise refusal(403, "a valid api_key is needed")

    def _is_known(self, key: str | None) -> bool:
        """In a time that tells nothing of the keys: digests are compared, each with all of them."""
        given = _digest(key or "")
        return sum(hmac.compare_digest(given, one) for one in self._keys) > 0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="replace")).digest()


def _network(address: str | None) -> str:
    """An IPv4 address, or the network that one user of IPv6 has."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    return str(found) if found.version == 4 else str(ipaddress.ip_network(f"{found}/64", strict=False))
