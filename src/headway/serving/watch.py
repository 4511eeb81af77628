"""What watches every request, the outermost layer: its id, the log, the headers that every answer has, and the counts
for Prometheus. No label ever holds a text, a key or an address."""

from __future__ import annotations

import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Callable, Collection
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

access_log = logging.getLogger("headway.access")

ANSWER_HEADERS = {
    "Cache-Control": "no-cache",  # modules of the page of one version belong together
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64, 128)


class Metrics:
    """The measures of one server."""

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

    def page(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)


class Watch:
    """Wraps the app whose routes have these paths; only such a path becomes a label or goes into the log."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        self._app, self._metrics, self._paths = app, metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        status = 499  # as nginx calls it: the client went away before there was an answer

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                for name, value in ANSWER_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            self._note(scope, request_id, status, time.perf_counter() - started)

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        path = scope["path"]
        route = path if path in self._paths else "other"
        self._metrics.requests.labels(route, status).inc()
        self._metrics.latency.labels(route).observe(seconds)
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        fields = {"request_id": request_id, "method": method, "route": route, "status": status}
        access_log.info("request", extra={"fields": {**fields, "milliseconds": round(1000 * seconds, 1)}})


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
            line |= places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def places(error: BaseException) -> dict[str, object]:
    """What the log may have of an exception: its kind, and the places in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "places": [f"{one.filename}:{one.lineno} {one.name}" for one in frames]}
