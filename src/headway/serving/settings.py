"""Limits and permissions of a server. The defaults are safe: access beyond this machine must be asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

WIDEST_BEAM = 16  # beams, and translations of one text, that a request may ask for
LONGEST_INSPECTED = 128  # tokens of a text to inspect; a record grows with their square

Limits = tuple[tuple[int, int], ...]
"""Lengths of periods in seconds, each with the units that a client may spend in it."""


@dataclass(frozen=True)
class Settings:
    """Settings of one server."""

    max_body: int = 1_000_000  # bytes of a request's body
    max_characters: int = 5_000  # of a text
    max_texts: int = 32  # of a request
    max_sentences: int = 2_000  # of a request, each times its translations
    timeout: float = 30.0  # seconds from a request's last byte to the end of its answer
    body_timeout: float = 10.0  # seconds until a request's body must have come
    max_requests: int = 256  # in progress, a quarter of them from one client; further ones get 503
    queue: int = 1024  # sentences that may wait for the model, an eighth of them from one client
    batch_size: int = 64  # sentences in one call of the model; 1 turns batching off
    linger: float = 0.003  # seconds that an idle model waits for more sentences, eight times as long if more are likely
    cache_size: int = 10_000  # cached sentences, within a limit of characters; 0: no cache
    rate_limit: Limits = ()  # of each key without limits of its own, or of each address; none: no limit
    api_keys: Mapping[str, Limits | None] = field(default_factory=dict)
    """If any, translate, detect, inspect, align and metrics need one of them. None: `rate_limit`."""
    metrics_key: str = ""  # that /metrics needs; none: any of `api_keys`
    inspecting: bool = True  # whether translations may be inspected
    allowed_hosts: tuple[str, ...] = ()  # names that a request's Host may have; none: any
    allowed_origins: tuple[str, ...] = ()  # whose pages may use the server from a browser; `*`: all
