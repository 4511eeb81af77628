"""What every request passes, and what watches it: limits of size and time, hosts and origins, the log, the counts.

A plain ASGI layer, the outermost one. It reads the body, so that no one waits inside for a client; ends the work when
the client goes away or the time is up; and answers every request once, in JSON, whatever happens inside.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Collection
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.serving.metrics import Metrics
from headway.serving.refusals import busy, defect, error_response, refusal
from headway.serving.settings import Settings

access_log = logging.getLogger("headway.access")
error_log = logging.getLogger("headway.errors")

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class _ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class Guard:
    """Wraps the app whose routes have these paths; only such a path becomes a label or goes into the log."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, paths: Collection[str]) -> None:
        self._app, self._settings, self._metrics, self._paths = app, settings, metrics, frozenset(paths)
        self._hosts = frozenset(name.lower() for name in settings.allowed_hosts)
        self._working = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = self._request_id(Headers(scope=scope))
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        status = 499  # as nginx calls it: the client went away before there was an answer

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            error = await self._answer(scope, receive, send_noting)
            if error is not None and status == 499:
                await error_response(error)(scope, receive, send_noting)
        finally:
            self._note(scope, request_id, status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> HTTPException | None:
        """Lets the app answer; the error that is to be told where it didn't."""
        try:
            self._check(scope)
            if scope["method"] in ("GET", "HEAD", "OPTIONS"):
                await self._app(scope, receive, send)
            else:
                await self._work(scope, receive, send)
        except HTTPException as error:
            return error
        except _ClientGoneError:
            return None
        except Exception as error:
            _log_defect(error, scope["state"]["request_id"])
            return defect()
        return None

    def _check(self, scope: Scope) -> None:
        """Raises HTTPException for a host or an origin that isn't allowed, and for a body of two lengths."""
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:  # two programs would read two requests
            raise refusal(400, "Content-Length and Transfer-Encoding exclude each other", {"Connection": "close"})
        if self._hosts and _name(headers.get("host", "")) not in self._hosts:
            raise refusal(400, "this server isn't called so: see --allowed-host")
        allowed = self._settings.allowed_origins
        if (
            headers.get("sec-fetch-site") in ("cross-site", "same-site")
            and scope["method"] not in ("GET", "HEAD", "OPTIONS")
            and "*" not in allowed
            and headers.get("origin") not in allowed
        ):
            raise refusal(403, "pages of another origin may not use this server: see --allow-origin")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of it. Raises HTTPException for one that is too large or too slow."""
        most = self._settings.max_body
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > most:
            raise _too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientGoneError
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise _too_large(most)
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise refusal(408, "the body of the request didn't come in time", {"Connection": "close"}) from None

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets the app work, where there is a place, as long as there is time. Raises HTTPException."""
        if self._working >= self._settings.max_requests:
            raise busy()
        self._working += 1
        self._metrics.in_flight.inc()
        try:
            async with asyncio.timeout(self._settings.timeout):
                body = await self._body(scope, receive)
                await self._work_while_wanted(scope, receive, send, body)
        except TimeoutError:
            raise busy("the answer took too long") from None
        finally:
            self._working -= 1
            self._metrics.in_flight.dec()

    async def _work_while_wanted(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        """The app, until it has answered or the client has gone."""
        given = False

        async def receive_body() -> Message:
            nonlocal given
            if given:
                await asyncio.Event().wait()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def wait_for_the_end() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async def work() -> None:
            await self._app(scope, receive_body, send)

        working, watching = asyncio.create_task(work()), asyncio.create_task(wait_for_the_end())
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise _ClientGoneError
            await working
        finally:
            for task in (working, watching):
                task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await working

    def _request_id(self, headers: Headers) -> str:
        given = headers.get("x-request-id", "")
        return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        path = scope["path"]
        route = path if path in self._paths else "other"
        self._metrics.requests.labels(route, status).inc()
        self._metrics.latency.labels(route).observe(seconds)
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        access_log.info(
            "request",
            extra={
                "fields": {
                    "request_id": request_id,
                    "method": method,
                    "route": route,
                    "status": status,
                    "milliseconds": round(1000 * seconds, 1),
                }
            },
        )


class JsonLines(logging.Formatter):
    """One JSON object a line. Of an exception it has the kind and the places, not the message: it may quote a text."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= _places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def _log_defect(error: Exception, request_id: str) -> None:
    error_log.error("defect", extra={"fields": {"request_id": request_id, **_places(error)}})


def _places(error: BaseException) -> dict[str, object]:
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "places": [f"{one.filename}:{one.lineno} {one.name}" for one in frames]}


def _name(host: str) -> str:
    """`Localhost:5000` to `localhost`, `[::1]:5000` to `[::1]`."""
    return re.sub(r":\d*$", "", host.lower()) if not host.endswith("]") else host.lower()


def _too_large(most: int) -> HTTPException:
    return refusal(413, f"the body of a request may have {most:,} bytes", {"Connection": "close"})
