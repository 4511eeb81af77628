"""A server in a process of its own, and clients, many at once, that take little time themselves: plain sockets on one
event loop."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def processor(process: subprocess.Popen[Any]) -> float:
    """Seconds of processor time that all its threads, and its children that have ended, have taken (Linux)."""
    times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """`headway serve` with these arguments at a free port, listening when it is entered, ended when it is left."""

    def __init__(self, *arguments: object) -> None:
        self._arguments = [*map(str, arguments), "--port", "0"]
        self.port = 0

    def __enter__(self) -> ServerProcess:
        self._log = tempfile.NamedTemporaryFile("w+")  # closed when the server ends
        self.process = subprocess.Popen([sys.executable, "-m", "headway", "serve", *self._arguments], stderr=self._log)
        while not (listening := [line for line in self.log() if line.get("message") == "listening"]):
            if self.process.poll() is not None:
                raise RuntimeError(Path(self._log.name).read_text())
            time.sleep(0.05)
        self.port = int(listening[0]["url"].rpartition(":")[2])
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._log.close()

    def log(self) -> list[dict[str, Any]]:
        """What it has said in JSON."""
        lines = Path(self._log.name).read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def other_lines(self) -> int:
        """Lines after the first in JSON that aren't, such as those of a traceback."""
        lines = Path(self._log.name).read_text(encoding="utf-8").splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("{"))
        return sum(not line.startswith("{") for line in lines[first:])

    def stop(self) -> int:
        """Asks it to end, and waits until it has; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(40)

    def forget_peak(self) -> None:
        """From now on `peak` counts anew (Linux)."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @property
    def peak(self) -> int:
        """The most bytes that it has had in memory (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))

    @property
    def processor(self) -> float:
        return processor(self.process)

    @property
    def memory(self) -> int:
        """Bytes that it has in memory now (Linux)."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Answer:
    """Of one request."""

    status: int
    body: bytes
    seconds: float
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection that is kept, and made anew where the server has closed it."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, fields: dict[str, Any]) -> Answer:
        body = json.dumps(fields).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        return await self.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def get(self, path: str) -> Answer:
        return await self.send(f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())

    async def send(self, request: bytes) -> Answer:
        """A whole request as it is; the answer. Raises OSError where there is none."""
        start = time.perf_counter()
        reader, writer = await self._connection()
        try:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status_line, *lines = head.rstrip("\r\n").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        except asyncio.IncompleteReadError as error:
            self.close()
            raise ConnectionResetError("the server has closed the connection") from error
        except asyncio.CancelledError:
            self.close()  # the answer would be taken for that of the next request
            raise
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(status_line.split()[1]), body, time.perf_counter() - start, headers)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None or self._streams[1].is_closing() or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        return self._streams


@dataclass
class Report:
    """What a load has shown."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of each answer 200."""
    sentences: int = 0
    """That were translated."""
    wall: float = 0.0
    processor: float = 0.0
    """Seconds of the clients' own."""
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    """Texts whose answer isn't the expected one: text, answer, expected."""

    def quantile(self, part: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")

    @property
    def rate(self) -> float:
        """Sentences a second."""
        return self.sentences / self.wall


async def load(
    port: int,
    texts: list[str],
    expected: dict[str, str],
    *,
    clients: int,
    seconds: float,
    size: int = 0,
    fields: dict[str, Any],
) -> Report:
    """So many clients ask for a text after the other, or for lists of `size`, and come back when they were refused."""
    report = Report()
    started, processor = time.perf_counter(), _processor()
    position = 0

    async def work() -> None:
        nonlocal position
        client = Client(port)
        while time.perf_counter() - started < seconds:
            chosen = [texts[(position + place) % len(texts)] for place in range(max(1, size))]
            position += len(chosen)
            answer = await client.post("/translate", {"q": chosen if size else chosen[0], **fields})
            report.statuses[answer.status] += 1
            if answer.status != 200:
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
                continue
            report.seconds.append(answer.seconds)
            report.sentences += len(chosen)
            found = answer.json["translatedText"]
            for text, translation in zip(chosen, found if size else [found], strict=True):
                if expected and translation != expected[text]:
                    report.wrong.append((text, translation, expected[text]))
        client.close()

    await asyncio.gather(*(work() for _ in range(clients)))
    report.wall = time.perf_counter() - started
    report.processor = _processor() - processor
    return report


HEALTH = """
import http.client, sys, threading, time
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
while not ended.wait(0.02):
    start = time.perf_counter()
    connection.request("GET", "/health")
    answer = connection.getresponse()
    answer.read()
    print(answer.status, time.perf_counter() - start, flush=True)
"""


class HealthWatch:
    """Asks for /health again and again, in a process of its own, so that the load doesn't delay it; the statuses and
    seconds when it is left."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.statuses: list[int] = []
        self.seconds: list[float] = []

    def __enter__(self) -> HealthWatch:
        command = [sys.executable, "-c", HEALTH, str(self._port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun
        return self

    def __exit__(self, *_: object) -> None:
        out, _err = self._process.communicate()
        answers = [line.split() for line in out.splitlines()]
        self.statuses, self.seconds = [int(status) for status, _ in answers], [float(time_) for _, time_ in answers]


async def soak(
    server: ServerProcess, texts: list[str], fields: dict[str, Any], warming: float, seconds: float
) -> dict[str, Any]:
    """All kinds of requests by 20 clients: single sentences, lists, HTML, long texts, wrong ones, some that are given
    up. What the server's memory does in these seconds, after those of warming, half of which have the large ones alone;
    lost: requests that weren't answered in 60 s, or whose connection broke."""
    kinds: list[dict[str, Any]] = [
        {"q": "".join(f"<p>{text} <b>{text}</b></p>" for text in texts[:10]), "format": "html"},
        {"q": " ".join(texts)[:5000]},
        {"q": texts[:16], "alternatives": 3},
        {"q": texts[0], "beam_size": 99},
        {"q": "x" * 5001},
    ]
    before: list[int] = []
    after: list[int] = []
    statuses: Counter[int] = Counter()
    lost = 0
    start = time.perf_counter()

    async def work(number: int) -> None:
        nonlocal lost
        client, chooser = Client(server.port), random.Random(number)
        while (now := time.perf_counter() - start) < warming + seconds:
            kind = (
                chooser.choice(kinds) if now < warming / 2 or chooser.random() < 0.2 else {"q": chooser.choice(texts)}
            )
            patience = 0.05 if chooser.random() < 0.05 else 60
            try:
                answer = await asyncio.wait_for(client.post("/translate", {**fields, **kind}), patience)
            except (OSError, TimeoutError):  # which isn't lost if it was given up
                lost += patience == 60
                continue
            statuses[answer.status] += 1
            if answer.status in (429, 503):
                await asyncio.sleep(float(answer.headers["retry-after"]))
        client.close()

    async def watch() -> None:
        while (now := time.perf_counter() - start) < warming + seconds:
            (before if now < warming else after).append(server.memory)
            await asyncio.sleep(seconds / 200)

    await asyncio.gather(watch(), *(work(number) for number in range(20)))
    warm = max(before)
    return {
        "seconds": seconds,
        "statuses": dict(statuses),
        "lost": lost,
        "memory, MB": [round(one / 1e6) for one in after[:: max(1, len(after) // 20)]],
        "memory when warm, MB": round(warm / 1e6),
        "growth after, MB": round((statistics.median(after[-10:]) - warm) / 1e6, 1),
    }


def measure(page: str, name: str) -> float:
    """What a page of metrics has under this name, labels and all."""
    return float(next(line.split()[-1] for line in page.splitlines() if line.startswith(f"{name} ")))


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
