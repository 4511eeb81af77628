"""The layers around the app that every request passes, as plain ASGI.

`Watch` gives each request its id, log entry and counts for Prometheus, and each answer its headers. `Guard` checks
hosts and origins, receives the body before the app starts, ends the work when the client goes away or the time is up,
and answers every request once, in JSON, whatever happens inside.
"""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.errors import LostModelError, UserError
from headway.serving.admission import Clients, busy
from headway.serving.batcher import QueueFullError
from headway.serving.logs import places
from headway.serving.settings import Settings

access_log, error_log = logging.getLogger("headway.access"), logging.getLogger("headway.errors")

ANSWER_HEADERS = {
    "Cache-Control": "no-cache",  # all modules of the page must be of one version
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # buckets of histograms
SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64, 128)
LARGEST_HEAD = 32_768  # bytes of the names and values in the head of a request
PROBES = ("/health", "/ready")  # paths for any Host: probes ask by address
CLOSE = {"Connection": "close"}
READING = ("GET", "OPTIONS")  # methods of requests that need no work


class Metrics:
    """The measurements of one server."""

    def __init__(self, queue_length: Callable[[], float]) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.requests = counter("headway_requests", "Requests that were answered.", ["route", "status"])
        self.latency = histogram("headway_request_seconds", "From the head to the answer.", ["route"], buckets=SECONDS)
        self.in_flight = gauge("headway_in_flight_requests", "Requests that are worked on.")
        gauge("headway_queue_sentences", "Sentences that wait for the model.").set_function(queue_length)
        self.batches = histogram("headway_batch_sentences", "Sentences of one call of the model.", buckets=SENTENCES)
        self.model_seconds = histogram("headway_model_seconds", "Time of one call of the model.", buckets=SECONDS)
        self.tokens = counter("headway_tokens", "Tokens read and written.", ["side"])
        cut_off = "Sentences whose translation was cut off at its longest."
        self.truncated = counter("headway_truncated_sentences", cut_off)
        failed = "Calls of the model that failed and were tried sentence by sentence."
        self.failed_calls = counter("headway_failed_calls", failed)
        self.cache_hits = counter("headway_cache_hits", "Sentences whose answer was kept.")
        self.refused = counter("headway_refused_connections", "Connections that were closed unread.", ["reason"])
        self.units = counter("headway_units", "Units that requests counted as.")
        self.dropped = counter("headway_dropped_log_lines", "Log lines that couldn't be written.")

    def page(self) -> bytes:
        """All measurements in Prometheus' text format."""
        return generate_latest(self._registry)


class Watch:
    """Observes an app; only these paths of its routes become labels or go into the log."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str], is_ending: Callable[[], bool]) -> None:
        """is_ending: whether connections are to be closed after their answers."""
        self._app, self._metrics, self._paths, self._is_ending = app, metrics, frozenset(paths), is_ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        status = 499  # nginx's code for a client that went away before the answer

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                if self._is_ending():
                    headers["Connection"] = "close"
                for name, value in ANSWER_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            seconds = time.perf_counter() - started
            route = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.requests.labels(route, status).inc()
            self._metrics.latency.labels(route).observe(seconds)
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
            fields = {"request_id": request_id, "method": method, "route": route, "status": status}
            if client := scope["state"].get("client"):
                fields["client"] = client
            access_log.info("request", extra={"fields": {**fields, "milliseconds": round(1000 * seconds, 1)}})


class Guard:
    """Limits the requests of an app, and answers its exceptions."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, clients: Clients) -> None:
        self._app, self._settings, self._clients = app, settings, clients
        self._hosts = frozenset(map(host_name, settings.allowed_hosts))
        metrics.in_flight.set_function(lambda: clients.places.taken)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun, is_head = False, scope["method"] == "HEAD"
        headers = [one for one in scope["headers"] if one[0] != b"range"]  # no answer is worth having in parts
        asked = {**scope, "method": "GET" if is_head else scope["method"], "headers": headers}

        async def send_once(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send({**message, "body": b""} if is_head and message["type"] == "http.response.body" else message)

        try:
            self._check(asked)
            answer = self._app if asked["method"] in READING else self._work
            await answer(asked, receive, send_once)
        except ClientDisconnect:
            return
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in a library in Rust is no Exception
            fault = _http_error(error, scope["state"]["request_id"])
            status, refused = fault.status_code, JSONResponse({"error": fault.detail}, fault.status_code, fault.headers)
        else:
            return
        if not has_begun:
            if status == 429:
                await asyncio.sleep(self._clients.pause_of_refusal(HTTPConnection(scope)))
            await refused(scope, receive, send_once)

    def _check(self, scope: Scope) -> None:
        """Raises HTTPException for a forbidden host or origin, a head that is too large, and a body of two lengths."""
        headers, allowed = Headers(scope=scope), self._settings.allowed_origins
        if sum(len(name) + len(value) for name, value in headers.raw) > LARGEST_HEAD:
            raise HTTPException(431, f"the head of the request has more than {LARGEST_HEAD:,} bytes")
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy could read other requests
            raise HTTPException(400, "Content-Length and Transfer-Encoding exclude each other", CLOSE)
        if self._hosts and scope["path"] not in PROBES and host_name(headers.get("host", "")) not in self._hosts:
            raise HTTPException(400, "this server doesn't answer to that host name: see --allowed-host")
        is_friend = "*" in allowed or headers.get("origin") in allowed
        if scope["method"] not in READING and _is_foreign(headers) and not is_friend:
            raise HTTPException(403, "pages of another origin may not use this server: see --allow-origin")

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the app with the whole body, until the time is up. Raises HTTPException."""
        with self._clients.receiving(HTTPConnection(scope)):
            body = await self._body(scope, receive)
        try:
            async with asyncio.timeout(self._settings.timeout):
                await self._work_while_wanted(scope, receive, send, body)
        except TimeoutError:
            raise busy("the answer took too long") from None

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body. Raises HTTPException if it is too large or too slow."""
        most = self._settings.max_body
        too_large = HTTPException(413, f"the body of a request may have at most {most:,} bytes", CLOSE)
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                async for chunk in Request(scope, receive).stream():
                    body += chunk
                    if len(body) > most:
                        raise too_large
        except TimeoutError:
            raise HTTPException(408, "the body of the request didn't come in time", CLOSE) from None
        return bytes(body)

    async def _work_while_wanted(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        """Runs the app until it has answered or the client has gone. Raises ClientDisconnect."""

        async def receive_body() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def wait_for_the_end() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        working = asyncio.ensure_future(self._app(scope, receive_body, send))
        watching = asyncio.create_task(wait_for_the_end())
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ClientDisconnect
            await working
        finally:
            for task in (working, watching):
                task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await working


def _http_error(error: BaseException, request_id: str) -> HTTPException:
    """The answer to the client for an error, which is logged if it isn't the client's."""
    match error:
        case HTTPException():
            return error
        case LostModelError():
            error_log.error(str(error), extra={"fields": {"request_id": request_id}})
            return HTTPException(500, "the model can't be read any more; the server's log has more")
        case UserError():
            return HTTPException(400, str(error))
        case QueueFullError():
            return busy()
        case asyncio.CancelledError():  # the time for shutdown is over
            return busy("the server is about to end")
    error_log.error("defect", extra={"fields": {"request_id": request_id, **places(error)}})
    return HTTPException(500, "a defect of the server; its log has more")


def host_name(host: str) -> str:
    """The name in a Host header, in lower case: `Example.org.:8080` -> `example.org`."""
    return re.sub(r"\.?(:\d*)?$", "", host.lower())


def _is_foreign(headers: Headers) -> bool:
    """Whether the request is from a page of another origin. Browsers say so on trusted connections, with TLS or to this
    machine; otherwise the origin is compared with the requested host."""
    if "sec-fetch-site" in headers:
        return headers["sec-fetch-site"] in ("cross-site", "same-site")
    return "origin" in headers and headers["origin"].lower().partition("://")[2] != headers.get("host", "").lower()
