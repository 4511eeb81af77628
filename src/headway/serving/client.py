"""A client of LibreTranslate-compatible servers, headway's among them; needs no extra."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from headway.errors import UserError
from headway.languages import same_language
from headway.text.characters import is_unicode

KEY_VARIABLE = "HEADWAY_API_KEY"
TEXTS_AT_ONCE = 32  # in a request to a server that states no limit
TRIES = 20  # requests to a busy server
USUAL_WAIT, LONGEST_WAIT = 2, 60  # seconds between them


class ServerTranslator:
    """A direction of a server. The key, where the server needs one, is `$HEADWAY_API_KEY`."""

    def __init__(self, url: str, source: str | None = None, target: str | None = None) -> None:
        """Languages may be left out if the server has one direction. Raises UserError."""
        self._url = url.rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            raise UserError(f"--server {url}: must begin with http:// or https://")
        try:
            settings = self._ask("/frontend/settings")
            self.longest = _positive(settings.get("charLimit"))  # characters of a text; None without a limit
            self._at_once = _positive(settings.get("maxTexts")) or TEXTS_AT_ONCE
            self.source, self.target = self._direction(source, target)
        except (TypeError, KeyError, AttributeError):
            raise UserError(f"{self._url}: answers, but not as a translation server does") from None

    def translate(self, texts: Sequence[str], *, beam_size: int | None = None) -> list[str]:
        """The translation of each text, blank for a text longer than `longest`. Raises UserError for a refusal."""
        key = os.environ.get(KEY_VARIABLE) or None
        if key and not is_unicode(key):
            raise UserError(f"${KEY_VARIABLE}: is not UTF-8, so it is no key")
        given = {"source": self.source, "target": self.target, "beam_size": beam_size, "api_key": key}
        fields = {name: value for name, value in given.items() if value is not None}
        asked = ["" if self.is_too_long(text) else text for text in texts]
        found: list[str] = []
        for start in range(0, len(asked), self._at_once):
            some = asked[start : start + self._at_once]
            answer = self._ask("/translate", {"q": some, **fields})
            translations = answer.get("translatedText") if isinstance(answer, dict) else None
            if not isinstance(translations, list) or [*map(type, translations)] != [str] * len(some):
                raise UserError(f"{self._url}/translate: the server's answer isn't a translation of each text")
            found += translations
        return found

    def is_too_long(self, text: str) -> bool:
        return self.longest is not None and len(text) > self.longest

    def _direction(self, source: str | None, target: str | None) -> tuple[str, str]:
        languages = self._ask("/languages")
        codes = [one["code"] for one in languages]
        directions = ((one["code"], other) for one in languages for other in one.get("targets", codes))
        known = [(str(code), str(other)) for code, other in directions if code != other]
        if source not in (None, "auto"):
            source = same_language(source, [one for one, _ in known]) or source
        if target is not None:
            target = same_language(target, [one for _, one in known]) or target
        possible = [one for one in known if source in (None, "auto", one[0]) and target in (None, one[1])]
        if source == "auto":  # the server finds out, text by text
            possible = [("auto", one) for one in sorted({one for _, one in possible})]
        if len(possible) != 1:
            directions = ", ".join(f"{one} -> {other}" for one, other in known)
            raise UserError(f"{self._url} translates {directions}; choose with --source-language and --target-language")
        return possible[0]

    def _ask(self, path: str, fields: dict[str, Any] | None = None) -> Any:
        body = None if fields is None else json.dumps(fields, ensure_ascii=False).encode()
        tries = 0
        while True:
            tries += 1
            try:
                request = urllib.request.Request(f"{self._url}{path}", body, {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503) or tries == TRIES:
                    raise UserError(f"{self._url}{path}: {error.code}, {_reason(error)}") from None
                after = error.headers.get("Retry-After", "")  # it may also be a date, or missing
                time.sleep(min(LONGEST_WAIT, int(after)) if after.isdecimal() else USUAL_WAIT)
            except (OSError, ValueError, OverflowError, http.client.HTTPException) as error:
                reason = str(getattr(error, "reason", None) or error).strip()
                raise UserError(f"{self._url}: {reason or type(error).__name__}; is it a server?") from None


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return error.reason
