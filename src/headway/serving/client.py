"""Translates with a server of LibreTranslate's shapes, ours or another; needs no extra."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from headway.errors import UserError

KEY_VARIABLE = "HEADWAY_API_KEY"
TEXTS_AT_ONCE = 32
"""Of one request: what servers of ours allow."""
TRIES = 20
"""Times that a server which is busy is asked."""


class ServerTranslator:
    """A direction of a server. The key, where the server needs one, is `$HEADWAY_API_KEY`."""

    def __init__(self, url: str, source: str | None = None, target: str | None = None) -> None:
        """Languages that are left out are the server's own, where it has one direction. Raises UserError."""
        self._url = url.rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            raise UserError(f"--server {url}: must begin with http:// or https://")
        self.source, self.target = self._direction(source, target)

    def translate(self, texts: Sequence[str], *, beam_size: int | None = None) -> list[str]:
        """The translation of each text. Raises UserError for what the server refuses."""
        fields: dict[str, Any] = {"source": self.source, "target": self.target}
        if beam_size is not None:
            fields["beam_size"] = beam_size
        if key := os.environ.get(KEY_VARIABLE):
            fields["api_key"] = key
        found: list[str] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            found += self._ask("/translate", {"q": list(texts[start : start + TEXTS_AT_ONCE]), **fields})[
                "translatedText"
            ]
        return found

    def _direction(self, source: str | None, target: str | None) -> tuple[str, str]:
        known = [(one["code"], target) for one in self._ask("/languages") for target in one["targets"]]
        possible = [one for one in known if source in (None, one[0]) and target in (None, one[1])]
        if len(possible) != 1:
            directions = ", ".join(f"{one} -> {other}" for one, other in known)
            raise UserError(f"{self._url} translates {directions}; choose with --source-language and --target-language")
        return possible[0]

    def _ask(self, path: str, fields: dict[str, Any] | None = None) -> Any:
        body = None if fields is None else json.dumps(fields).encode()
        request = urllib.request.Request(f"{self._url}{path}", body, {"Content-Type": "application/json"})
        for tries in range(1, TRIES + 1):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503) or tries == TRIES:
                    raise UserError(f"{self._url}{path}: {error.code}, {_reason(error)}") from None
                time.sleep(float(error.headers.get("Retry-After", 1)))
            except (OSError, ValueError) as error:
                raise UserError(f"{self._url}: {getattr(error, 'reason', None) or error}; is it a server?") from None
        raise AssertionError


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return json.loads(error.read())["error"]
    except (ValueError, KeyError, TypeError):
        return error.reason
