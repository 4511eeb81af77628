"""What the server counts, for Prometheus. No label ever holds a text, a key or an address."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64, 128)


class Metrics:
    """The measures of one server."""

    def __init__(self, queue_length: Callable[[], float]) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "headway_requests", "Requests that were answered.", ["route", "status"], registry=registry
        )
        self.latency = Histogram(
            "headway_request_seconds", "From the head to the answer.", ["route"], buckets=SECONDS, registry=registry
        )
        self.in_flight = Gauge("headway_in_flight_requests", "Requests that are worked on.", registry=registry)
        Gauge("headway_queue_sentences", "Sentences that wait for the model.", registry=registry).set_function(
            queue_length
        )
        self.batches = Histogram(
            "headway_batch_sentences", "Sentences of one call of the model.", buckets=SENTENCES, registry=registry
        )
        self.model_seconds = Histogram(
            "headway_model_seconds", "Time of one call of the model.", buckets=SECONDS, registry=registry
        )
        self.tokens = Counter("headway_tokens", "Tokens read and written.", ["side"], registry=registry)
        self.truncated = Counter(
            "headway_truncated_sentences", "Sentences whose translation was cut off at its longest.", registry=registry
        )
        self.failed_calls = Counter(
            "headway_failed_calls",
            "Calls of the model that failed and were tried sentence by sentence.",
            registry=registry,
        )
        self.cache_hits = Counter("headway_cache_hits", "Sentences whose answer was kept.", registry=registry)

    def page(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)
