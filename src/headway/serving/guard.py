"""What every request passes: hosts and origins, limits of size and time; and what becomes of an error.

A plain ASGI layer. It reads the body, so that no one waits inside for a client; ends the work when the client goes away
or the time is up; and answers every request once, in JSON, whatever happens inside.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.errors import UserError
from headway.serving.batcher import QueueFullError
from headway.serving.settings import Settings
from headway.serving.watch import Metrics, places

error_log = logging.getLogger("headway.errors")

LARGEST_HEAD = 32_768
"""Bytes of the names and values in the head of a request."""
PROBES = ("/health", "/ready")
"""Paths whose Host isn't looked at: who keeps the server alive asks by address."""
RETRY_AFTER = 2
"""Seconds after which a client that was refused may try again."""
CLOSE = {"Connection": "close"}


class _ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


class Guard:
    """Wraps the app, whose errors come here as exceptions."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._hosts = frozenset(name.lower() for name in settings.allowed_hosts)
        self._working = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun, is_head = False, scope["method"] == "HEAD"

        async def send_once(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        try:
            await self._answer({**scope, "method": "GET"} if is_head else scope, receive, send_once)
        except _ClientGoneError:
            return
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a library in Rust that panics raises no Exception
            answer = _told(error, scope["state"]["request_id"])
            if not has_begun:
                await answer(scope, receive, send_once)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check(scope)
        if scope["method"] in ("GET", "OPTIONS"):
            await self._app(scope, receive, send)
        else:
            await self._work(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raises HTTPException for a host or an origin that isn't allowed, a head that is too large, and a body of two
        lengths."""
        headers, allowed = Headers(scope=scope), self._settings.allowed_origins
        if sum(len(name) + len(value) for name, value in headers.raw) > LARGEST_HEAD:
            raise HTTPException(431, f"the head of the request has more than {LARGEST_HEAD:,} bytes")
        if "content-length" in headers and "transfer-encoding" in headers:  # two programs would read two requests
            raise HTTPException(400, "Content-Length and Transfer-Encoding exclude each other", CLOSE)
        if self._hosts and scope["path"] not in PROBES and _name(headers.get("host", "")) not in self._hosts:
            raise HTTPException(400, "this server isn't called so: see --allowed-host")
        is_read = scope["method"] in ("GET", "OPTIONS")
        if not is_read and _is_foreign(headers) and not {"*", headers.get("origin")} & set(allowed):
            raise HTTPException(403, "pages of another origin may not use this server: see --allow-origin")

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets the app work, where there is a place, as long as there is time. Raises HTTPException."""
        if self._working >= self._settings.max_requests:
            raise _busy()
        self._working += 1
        self._metrics.in_flight.inc()
        try:
            body = await self._body(scope, receive)
            async with asyncio.timeout(self._settings.timeout):
                await self._work_while_wanted(scope, receive, send, body)
        except TimeoutError:
            raise _busy("the answer took too long") from None
        finally:
            self._working -= 1
            self._metrics.in_flight.dec()

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of it. Raises HTTPException for one that is too large or too slow."""
        most = self._settings.max_body
        too_large = HTTPException(413, f"the body of a request may have {most:,} bytes", CLOSE)
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientGoneError
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise HTTPException(408, "the body of the request didn't come in time", CLOSE) from None

    async def _work_while_wanted(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        """The app, until it has answered or the client has gone."""
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_body() -> Message:
            if not unread:
                await asyncio.Event().wait()
            return unread.pop()

        async def work() -> None:
            await self._app(scope, receive_body, send)

        async def wait_for_the_end() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

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


def error_response(error: HTTPException) -> JSONResponse:
    """As LibreTranslate shapes errors: `{"error": "..."}` and a status."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _told(error: BaseException, request_id: str) -> JSONResponse:
    """What the client hears of an error."""
    match error:
        case HTTPException():
            return error_response(error)
        case UserError():
            return error_response(HTTPException(400, str(error)))
        case QueueFullError():
            return error_response(_busy())
        case asyncio.CancelledError():  # the time that a server which ends may take is over
            return error_response(_busy("the server is about to end"))
    error_log.error("defect", extra={"fields": {"request_id": request_id, **places(error)}})
    return error_response(HTTPException(500, "a defect of the server; its log has more"))


def _busy(message: str = "the server is busy") -> HTTPException:
    return HTTPException(503, message, {"Retry-After": str(RETRY_AFTER)})


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another origin asks. Browsers say so by themselves where a connection is to be trusted, with
    TLS or to this machine; else the origin is compared with the name that was asked for."""
    if "sec-fetch-site" in headers:
        return headers["sec-fetch-site"] in ("cross-site", "same-site")
    return "origin" in headers and headers["origin"].lower().partition("://")[2] != headers.get("host", "").lower()


def _name(host: str) -> str:
    """`Localhost:5000` to `localhost`, `[::1]:5000` to `[::1]`."""
    return re.sub(r":\d*$", "", host.lower()) if not host.endswith("]") else host.lower()
