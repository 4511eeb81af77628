"""What a server allows, and how it works. The defaults are safe: nothing is open that nobody asked for."""

from dataclasses import dataclass

WIDEST_BEAM = 16
"""Beams, and translations of one text, that a request may ask for."""

LONGEST_INSPECTED = 128
"""Tokens of a text to inspect; a record grows with their square."""


@dataclass(frozen=True)
class Settings:
    """Limits and openings of one server."""

    max_body: int = 1_000_000
    """Bytes of a request's body."""
    max_characters: int = 5_000
    """Characters of a text."""
    max_texts: int = 32
    """Texts of a request."""
    timeout: float = 30.0
    """Seconds from a request's last byte to the end of its answer."""
    body_timeout: float = 10.0
    """Seconds until a request's body must have come."""
    max_requests: int = 256
    """Requests that are worked on at once; further ones get 503."""
    queue: int = 1024
    """Sentences that may wait for the model, an eighth of them of one request; where there is no place, requests get
    503."""
    batch_size: int = 64
    """Sentences of one call of the model; 1 turns batching off."""
    linger: float = 0.003
    """Seconds that an idle model waits for more sentences to join the first, eight times as long where more are
    likely."""
    cache_size: int = 10_000
    """Translated sentences that are kept, as far as their characters are few enough together; 0 keeps none."""
    rate_limit: int = 0
    """Requests a minute for each key, or address where there are no keys; 0: no limit."""
    api_keys: tuple[str, ...] = ()
    """Where any are set, translate, detect, inspect, align and metrics need one of them."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that a request's Host may have; none: any."""
    allowed_origins: tuple[str, ...] = ()
    """Origins whose pages may use the server from a browser; `*`: all."""
