"""Runs the app on uvicorn: connection timeouts, a log in JSON, graceful shutdown."""

import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from types import FrameType
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.errors import UserError
from headway.serving.admission import Places, network_of
from headway.serving.app import make_app
from headway.serving.guard import LARGEST_HEAD, Metrics, access_log
from headway.serving.logs import LogWriter, places
from headway.serving.service import Service

log = logging.getLogger("headway.server")
Network = IPv4Network | IPv6Network

HEAD_TIMEOUT = 10.0  # seconds until the head of a request must have come
BACKLOG = 2048  # connections that may wait to be accepted
ACCEPTED_AT_ONCE = 64  # connections that the event loop accepts in one go, doing nothing else
KEEP_ALIVE = 15  # seconds that a connection may wait for its next request
STALL, SLOWEST = 15, 1000  # seconds between checks, and bytes per second of an answer that a client must read
SHARES = 4  # an address has at most 1/SHARES of the connections
MOST_CONNECTIONS = 8192
SPARE_FILES = 64 + 3 * ACCEPTED_AT_ONCE  # for everything else, and for connections that are about to be refused
TELL_EVERY = 60.0  # seconds between lines of the log about the same trouble
TOO_MANY = {"all": "too many connections", "share": "too many of an address"}
COLLECTING = (10_000, 20, 100)  # new objects, and collections of young ones, before one of the next older ones
SWITCH = 0.001  # seconds until a thread of the model yields; Python's 5 ms add up with every system call
DRAINING = 1.0  # seconds from SIGTERM, seen at /ready, to the last new connection
GRACE = 26  # seconds that accepted requests have after that; the others get 503


def bind(host: str, port: int) -> socket.socket:
    """A socket with the address, not yet listening. Raises UserError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, kind, protocol)
        if sys.platform != "win32":
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except (OSError, UnicodeError) as error:  # the latter for what can't be a name, such as one that is too long
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(f"{host}:{port}: {problem}; choose another --host or --port") from None
    return taken


def serve(service: Service, taken: socket.socket, proxies: Sequence[Network] = ()) -> None:
    """Answers requests until SIGTERM or Ctrl-C, trusting X-Forwarded-For from `proxies`."""
    writer = LogWriter(service.metrics.dropped.inc)
    for name, level in (("headway", logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [writer], False
        logger.setLevel(level)
    PromptProtocol.counted = Connections(service.metrics, proxies)
    sys.setswitchinterval(SWITCH)
    config = uvicorn.Config(
        make_app(service),
        http=PromptProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[*map(str, proxies)],
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
    for ending in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises the signal again when all is done
        signal.signal(ending, lambda *_: (writer.stop(), os._exit(0)))  # even if a call of the model never returns
    collect_rarely()
    GracefulServer(config, service).run([taken])


def collect_rarely() -> None:
    """Leaves what is there, such as the models, out of garbage collections, and makes those of old objects rare: with
    the sentences of many requests one stopped all threads for up to half a second, several times in ten."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTING)


def _log_defect(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    log.error(context["message"], extra={"fields": {} if error is None else places(error)})


class GracefulServer(uvicorn.Server):
    """Stops being ready at SIGTERM, but accepts connections a moment longer and answers all accepted requests."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_defect)
        if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self.handle_exit, signal.SIGTERM, None)
        for one in sockets or ():
            one.listen(BACKLOG)
            host, port, *_ = one.getsockname()
            log.info("listening", extra={"fields": {"url": f"http://{f'[{host}]' if ':' in host else host}:{port}"}})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._service.close()
        if left := self.server_state.tasks:
            await asyncio.wait(left, timeout=1)  # they answer that the server is about to end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._service.draining or sig == signal.SIGINT:
            super().handle_exit(sig, frame)
            return
        self._service.draining = True
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(loop.call_later, DRAINING, super().handle_exit, sig, frame)


class Connections:
    """Open connections, counted by address."""

    def __init__(self, metrics: Metrics, proxies: Sequence[Network]) -> None:
        """proxies: addresses whose connections are those of many clients."""
        self._metrics, self._proxies = metrics, proxies
        most = min(MOST_CONNECTIONS, _most_files() - SPARE_FILES)
        self._open = Places(most, most // SHARES)
        self._told = -math.inf

    def enter(self, address: str) -> bool:
        """Whether another connection of the address may be used; then it must `leave`."""
        name = network_of(address)
        lack = self._open.lack(name)
        if lack is None or (lack == "share" and any(ip_address(address) in one for one in self._proxies)):
            self._open.count(name, 1)
            return True
        if lack == "all" and time.monotonic() - self._told > TELL_EVERY:
            self._told = time.monotonic()
            log.warning(TOO_MANY[lack], extra={"fields": {"open": self._open.taken}})
        self._metrics.refused.labels(TOO_MANY[lack]).inc()
        return False

    def note_refusal(self) -> None:
        """Counts and logs a request that was none."""
        self._metrics.requests.labels("other", 400).inc()
        access_log.info("request", extra={"fields": {"route": "other", "status": 400, "reason": "no HTTP"}})

    def leave(self, address: str) -> None:
        self._open.count(network_of(address), -1)


class MeteredTransport:
    """A transport that knows how much of what was written to it the other side has taken."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._written = 0
        self._before = 0, 0  # what was written and taken at the last look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._written += len(data)
        self._transport.write(data)

    def has_stalled(self) -> bool:
        """Whether too little of what was written at the last look, STALL seconds ago, has been taken since."""
        written, taken = self._before
        now = self._written - self._transport.get_write_buffer_size()
        self._before = self._written, now
        return now - taken < min(written - taken, SLOWEST * STALL)


class PromptProtocol(H11Protocol):
    """Closes connections of slow clients, and refuses other protocols than HTTP in JSON."""

    counted: ClassVar[Connections]
    _is_open = False
    _waiting: asyncio.TimerHandle | None = None
    _stalling: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        address, *_ = transport.get_extra_info("peername") or [""]
        if not self.counted.enter(address):
            transport.abort()
            return
        self._is_open, self._address = True, address
        metered = MeteredTransport(transport)
        super().connection_made(metered)  # type: ignore[arg-type]
        self._stalling = self.loop.call_later(STALL, self._check_reader, metered)
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._is_open:
            super().data_received(data)
            self._watch()

    def eof_received(self) -> None:
        if self._is_open:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self.counted.leave(self._address)
        if self._stalling is not None:
            self._stalling.cancel()
        self._watch(ended=True)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        body = b'{"error":"this is no HTTP request"}'
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self.counted.note_refusal()

    def _check_reader(self, transport: MeteredTransport) -> None:
        if transport.has_stalled():
            transport.abort()
        else:
            self._stalling = self.loop.call_later(STALL, self._check_reader, transport)

    def _watch(self, ended: bool = False) -> None:
        """Limits the time until the next head, between two requests."""
        if ended or (self.cycle is not None and not self.cycle.response_complete):
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)


def parse_proxies(names: str) -> list[Network]:
    """The networks, of names with commas between them, each also as IPv6 has it; `*`: all. Raises UserError."""
    found: list[Network] = []
    for name in filter(None, map(str.strip, names.split(","))):
        try:
            every = ("0.0.0.0/0", "::/0") if name == "*" else (name,)
            networks = [ip_network(one, strict=False) for one in every]
        except ValueError:
            raise UserError(f"--trusted-proxy {name}: must be an address, or a network such as 10.0.0.0/8") from None
        mapped = (f"::ffff:{one.network_address}/{96 + one.prefixlen}" for one in networks if one.version == 4)
        found += [*networks, *map(ip_network, mapped)]
    return found


def _most_files() -> int:
    """The number of files and connections that this process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return 2**31
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if most == resource.RLIM_INFINITY else most
