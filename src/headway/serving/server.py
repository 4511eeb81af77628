"""Runs the app on uvicorn: connection timeouts, a log in JSON, graceful shutdown."""

import asyncio
import logging
import os
import signal
import socket
import sys
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.errors import UserError
from headway.serving.app import make_app
from headway.serving.guard import LARGEST_HEAD, JsonLines
from headway.serving.service import Service

log = logging.getLogger("headway.server")

HEAD_TIMEOUT = 10.0  # seconds until the head of a request must have come
BACKLOG = 2048  # connections that may wait to be accepted
ACCEPTED_AT_ONCE = 64  # connections that the event loop accepts in one go, doing nothing else
KEEP_ALIVE = 15  # seconds that a connection may wait for its next request
SLOWEST = 1000  # bytes per second of an answer that a client must read
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
    except OSError as error:
        raise UserError(f"{host}:{port}: {error.strerror}; choose another --host or --port") from None
    return taken


def serve(service: Service, taken: socket.socket, proxies: str = "") -> None:
    """Answers requests until SIGTERM or Ctrl-C, trusting X-Forwarded-For from `proxies`: addresses with commas."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("headway", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
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
        forwarded_allow_ips=proxies or None,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
    for ending in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises the signal again when all is done
        signal.signal(ending, lambda *_: os._exit(0))  # even if a call of the model never returns
    GracefulServer(config, service).run([taken])


class GracefulServer(uvicorn.Server):
    """Stops being ready at SIGTERM, but accepts connections a moment longer and answers all accepted requests."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
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


class PromptProtocol(H11Protocol):
    """Closes connections of slow clients, and refuses other protocols than HTTP in JSON."""

    _waiting: asyncio.TimerHandle | None = None
    _unsent = 0  # bytes of the answer that the client hadn't read at the last check

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch(ended=True)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        body = b'{"error":"this is no HTTP request"}'
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unsent = self.transport.get_write_buffer_size()

    def timeout_keep_alive_handler(self) -> None:
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if not self._unsent:
            super().timeout_keep_alive_handler()
        elif before - self._unsent < SLOWEST * KEEP_ALIVE:
            self.transport.abort()  # a client that doesn't read its answer
        else:
            self.timeout_keep_alive_task = self.loop.call_later(KEEP_ALIVE, self.timeout_keep_alive_handler)

    def _watch(self, ended: bool = False) -> None:
        """Limits the time until the next head, between two requests."""
        if ended or (self.cycle is not None and not self.cycle.response_complete):
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)
