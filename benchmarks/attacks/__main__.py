"""What do attackers cost the other clients of `headway serve`?

    python benchmarks/attacks MODEL SOURCE [--only NAME ...] [--seconds 20] [--keys] [--caddy] [--json FILE]
    python benchmarks/attacks MODEL SOURCE --soak MINUTES    all attacks at once, beside ordinary clients
    python benchmarks/attacks MODEL SOURCE --prices          the server's processor time for each unit, of dear requests

A victim at 127.0.0.1 asks for a sentence every 0.2 s, first alone, then beside an attacker at 127.0.0.2, which is a
process of its own. For each attack: the victim's requests that were answered, and those that were answered within three
times the time that 95% took when it was alone; what the server's memory and processor time did. With --keys both have
keys and limits; with --caddy a proxy as in deploy/Caddyfile stands between (Debian's package caddy).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from headway.bench.machine import versions
from load import Client, ServerProcess, measure, soak

VICTIM, ATTACKER = "127.0.0.1", "127.0.0.2"
EVERY = 0.2
"""Seconds between the victim's requests."""
LIMITS = "600/minute"


class Attack:
    """The side of the attacker."""

    def __init__(self, port: int, fields: dict[str, Any], key: str) -> None:
        self.port, self.fields, self.key = port, fields, key
        self.chooser = random.Random(1)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(VICTIM, self.port, local_addr=(ATTACKER, 0), limit=2**30)

    def head(self, path: str, length: int, more: str = "", kind: str = "application/json") -> bytes:
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        lines = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{key}Content-Type: {kind}\r\n{more}"
        return f"{lines}Content-Length: {length}\r\n\r\n".encode()

    async def ask(self, path: str, body: bytes, kind: str = "application/json") -> None:
        """Sends one request on a connection of its own, and reads the answer."""
        reader, writer = await self.connect()
        try:
            writer.write(self.head(path, len(body), "Connection: close\r\n", kind) + body)
            await writer.drain()
            await reader.read()
        finally:
            writer.close()

    def body(self, **fields: Any) -> bytes:
        return json.dumps({**self.fields, **fields}).encode()

    def words(self, count: int) -> str:
        """Lines that nobody has asked for before."""
        return "\n".join(f"{self.chooser.getrandbits(40):x}"[:8] for _ in range(count))


async def trickle(attack: Attack, start: bytes, more: bytes) -> None:
    """Sends the start of a request, then a little every second."""
    _, writer = await attack.connect()
    try:
        writer.write(start)
        while not writer.is_closing():
            await asyncio.sleep(1)
            writer.write(more)
            await writer.drain()
    finally:
        writer.close()


async def slow_bodies(attack: Attack) -> None:
    """A body of which a byte comes every second."""
    await trickle(attack, attack.head("/translate", 100) + b"{", b" ")


async def slow_heads(attack: Attack) -> None:
    """A head that doesn't end."""
    await trickle(attack, b"POST /translate HTTP/1.1\r\n", b"X-A: b\r\n")


async def short_lines(attack: Attack) -> None:
    """A request of 22 kB with thousands of different lines."""
    await attack.ask("/translate", attack.body(q=[attack.words(500) for _ in range(5)]))


async def allowed_lines(attack: Attack) -> None:
    """As many lines as a request may have."""
    await attack.ask("/translate", attack.body(q=[attack.words(500) for _ in range(3)]))


async def large_answers(attack: Attack) -> None:
    """240 kB that would be answered with 24 MB."""
    await attack.ask("/translate", attack.body(q=["a\n" * 2500] * 32, alternatives=15))


async def wrong_lists(attack: Attack) -> None:
    """Half a million mistakes."""
    await attack.ask("/translate", attack.body(q=[1] * 490_000))


async def wrong_forms(attack: Attack) -> None:
    """A megabyte of percent signs."""
    await attack.ask("/translate", b"%" * 999_000, "application/x-www-form-urlencoded")


async def unread_answers(attack: Attack) -> None:
    """Answers that nobody reads."""
    body = attack.body(q=[f"{attack.words(1)} " * 500] * 32)
    _, writer = await attack.connect()
    try:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(attack.head("/translate", len(body), "Connection: close\r\n") + body)
        await asyncio.sleep(40)
    finally:
        writer.transport.abort()


async def wide_beams(attack: Attack) -> None:
    """The widest beam over texts of the full length."""
    text = " ".join(attack.words(550).split("\n"))[:5000]
    await attack.ask("/translate", attack.body(q=text, beam_size=16, alternatives=15))


async def inspections(attack: Attack) -> None:
    """Records with analyses."""
    text = " ".join(attack.words(10).split("\n"))
    await attack.ask("/inspect", attack.body(q=text, analyses=["erasure", "contributions"], order=True))


ATTACKS: dict[str, tuple[Callable[[Attack], Coroutine[Any, Any, None]], int]] = {
    "slow_bodies": (slow_bodies, 256),
    "slow_heads": (slow_heads, 256),
    "short_lines": (short_lines, 8),
    "allowed_lines": (allowed_lines, 64),
    "large_answers": (large_answers, 4),
    "wrong_lists": (wrong_lists, 4),
    "wrong_forms": (wrong_forms, 4),
    "unread_answers": (unread_answers, 32),
    "wide_beams": (wide_beams, 32),
    "inspections": (inspections, 5),
}
"""Each with the number that are made side by side, again and again."""


async def attacking(name: str, attack: Attack) -> None:
    """Until the process is ended."""
    once, count = ATTACKS[name]
    print("attacking", flush=True)

    async def again() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await once(attack)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(again() for _ in range(count)))


async def ask_as_victim(port: int, texts: list[str], fields: dict[str, Any], seconds: float) -> list[float]:
    """Seconds of each request, infinite for those that weren't answered with a translation."""
    found: list[float] = []
    asking: set[asyncio.Task[None]] = set()

    async def ask(text: str) -> None:
        client = Client(port)
        started = time.perf_counter()
        try:
            answer = await asyncio.wait_for(client.post("/translate", {"q": text, **fields}), 30)
            found.append(time.perf_counter() - started if answer.status == 200 else float("inf"))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, IndexError, ValueError):
            found.append(float("inf"))
        finally:
            client.close()

    started, number = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        asking.add(asyncio.create_task(ask(texts[number % len(texts)])))
        number += 1
        await asyncio.sleep(EVERY)
    await asyncio.gather(*asking)
    return found


@contextmanager
def behind_caddy(port: int) -> Iterator[int]:
    """The port of a proxy in front of the server."""
    with tempfile.TemporaryDirectory() as folder:
        front = port + 1 if port < 65_000 else port - 1
        file = Path(folder) / "Caddyfile"
        file.write_text(f"{{\n\tadmin off\n}}\n:{front} {{\n\treverse_proxy 127.0.0.1:{port}\n}}\n")
        command = ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
        environment = {**os.environ, "HOME": folder}
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
        try:
            until = time.monotonic() + 30
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    socket.create_connection((VICTIM, front)).close()
                    break
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit("caddy doesn't listen")
                time.sleep(0.05)
            yield front
        finally:
            process.terminate()
            process.wait()


@contextmanager
def running(options: argparse.Namespace, *more: object) -> Iterator[tuple[ServerProcess, int, dict[str, Any]]]:
    """A server of its own, the port to ask at, and its languages."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "keys.txt").write_text(f"victim {LIMITS}\nattacker {LIMITS}\n")
        more += ("--api-keys", folder / "keys.txt") if options.keys else ()
        more += ("--trusted-proxy", VICTIM) if options.caddy else ()
        server = stack.enter_context(ServerProcess(options.model, "--cache", 0, "--allowed-host", VICTIM, *more))
        port = stack.enter_context(behind_caddy(server.port)) if options.caddy else server.port
        known = asyncio.run(Client(port).get("/languages")).json
        source = next(one["code"] for one in known if len(one["targets"]) > 1)
        target = next(code for one in known if one["code"] == source for code in one["targets"] if code != source)
        yield server, port, {"source": source, "target": target}


@contextmanager
def attacked(names: list[str], port: int, fields: dict[str, Any], options: argparse.Namespace) -> Iterator[None]:
    """Each of the attacks in a process of its own."""
    key = "attacker" if options.keys else ""
    commands = [[sys.executable, __file__, "--attack", name, str(port), json.dumps(fields), key] for name in names]
    attackers = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for one in commands]
    try:
        for attacker in attackers:
            assert attacker.stdout is not None
            assert attacker.stdout.readline(), "an attacker has ended"
        time.sleep(2)
        yield
    finally:
        for attacker in attackers:
            attacker.kill()
            attacker.wait()


def measured(name: str, options: argparse.Namespace, texts: list[str]) -> dict[str, Any]:
    """One attack on a server of its own."""
    with running(options) as (server, port, fields):
        own = {**fields, "api_key": "victim"} if options.keys else fields
        asyncio.run(ask_as_victim(port, texts, own, min(3, options.seconds)))  # to warm up
        quiet = asyncio.run(ask_as_victim(port, texts, own, options.seconds))
        server.forget_peak()
        before, worked, began = server.memory, server.processor, time.perf_counter()
        with attacked([name], port, fields, options):
            beside = asyncio.run(ask_as_victim(port, texts, own, options.seconds))
            spent = server.processor - worked
            return {
                "attack": name,
                **shares(quiet, beside),
                "memory, MB": round((server.peak - before) / 1e6),
                "processor time": round(spent / (time.perf_counter() - began), 2),
                "errors": sum("error" in line for line in server.log()),
            }


def shares(quiet: list[float], beside: list[float]) -> dict[str, Any]:
    """What a victim got when it was alone, and beside an attacker. Both: seconds of each request, infinite if it wasn't
    answered."""
    usual = statistics.quantiles(quiet, n=20)[-1]
    answered = [one for one in beside if one != float("inf")]
    return {
        "quiet, ms": round(1000 * statistics.median(quiet), 1),
        "quiet, 95%, ms": round(1000 * usual, 1),
        "beside it, ms": round(1000 * statistics.median(answered), 1) if answered else None,
        "answered": round(len(answered) / len(beside), 3),
        "answered in time": round(sum(one <= 3 * usual for one in answered) / len(beside), 3),
    }


def all_at_once(options: argparse.Namespace, texts: list[str]) -> dict[str, Any]:
    """All attacks together beside 20 ordinary clients, for --soak minutes after a tenth of them to warm up."""
    with running(options) as (server, port, fields), attacked(options.only, port, fields, options):
        own = {**fields, "api_key": "victim"} if options.keys else fields
        seconds = 60 * options.soak
        found = asyncio.run(soak(server, texts[:400], own, seconds / 10, seconds))
        lines = server.log()
        errors = [line for line in lines if line.get("level") == "error"]
        return {**found, "errors": len(errors), "lines that are no JSON": server.other_lines(), "log lines": len(lines)}


def dear_requests(texts: list[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Requests that take much for their size: path and fields of each."""
    from headway.insight.analyses import names_by_sentence

    text, wide = " ".join(texts)[:5000], {"beam_size": 16}
    lines = "\n".join(chr(97 + n % 26) + chr(97 + n // 26 % 26) for n in range(300))
    letters = " ".join(chr(97 + n % 26) for n in range(100))
    tags = "".join(f"<i>{word}</i> " for word in text.split()[:250])
    return {
        "a sentence": ("/translate", {"q": texts[0]}),
        "a text": ("/translate", {"q": text}),
        "a wide beam": ("/translate", {"q": text, **wide}),
        "alternatives": ("/translate", {"q": text[:1000], "alternatives": 15}),
        "tags": ("/translate", {"q": tags, "format": "html"}),
        "empty tags": ("/translate", {"q": "<b></b><br>" * 450, "format": "html"}),
        "a glossary": ("/translate", {"q": text[:500], "glossary": dict.fromkeys(set(text[:500].split()), "x")}),
        "placeholders": ("/translate", {"q": " ".join(f"{{n{n}}} {word}" for n, word in enumerate(text.split()[:40]))}),
        "letters": ("/translate", {"q": letters, **wide}),
        "short lines": ("/translate", {"q": lines}),
        "short lines, a wide beam": ("/translate", {"q": lines, **wide}),
        "a list of short texts": ("/translate", {"q": lines.split("\n")[:32], **wide}),
        "an unknown script": ("/translate", {"q": "\u4f60\u597d\u4e16\u754c" * 60}),
        "detect": ("/detect", {"q": [text] * 32}),
        "align": ("/align", {"q": texts[:32], "translation": texts[:32]}),
        "align long texts": ("/align", {"q": [text[:1000]] * 8, "translation": [text[:1000]] * 8}),
        "inspect": ("/inspect", {"q": text[:150], "arrays": "none"}),
        **{
            f"inspect, {name}": ("/inspect", {"q": text[:100], "arrays": "none", "analyses": [name]})
            for name in (*names_by_sentence(), "head_importance")
        },
        "inspect, order": ("/inspect", {"q": text[:150], "arrays": "none", "order": True}),
        "inspect, all arrays": ("/inspect", {"q": text[:300]}),
    }


def prices(options: argparse.Namespace, texts: list[str]) -> list[dict[str, Any]]:
    """Processor time of the server for each unit that a request counts as."""
    if options.keys:
        raise SystemExit("--prices reads /metrics, which takes a key of its own: leave out --keys")
    rows = []
    with running(options, "--timeout", 600) as (server, port, fields):

        async def ask(path: str, asked: dict[str, Any]) -> tuple[int, float, float]:
            client = Client(port)
            answer = await client.post(path, {**fields, **asked})
            page = (await client.get("/metrics")).body.decode()
            client.close()
            return answer.status, measure(page, "headway_units_total"), server.processor

        for name, (path, asked) in dear_requests(texts).items():
            _, units, seconds = asyncio.run(ask("/detect", {"q": "a"}))
            status, units_after, seconds_after = asyncio.run(ask(path, asked))
            spent, charged = seconds_after - seconds, round(units_after - units) - 1  # one is for the metrics
            row = {"request": name, "status": status, "units": charged, "processor, s": round(spent, 2)}
            rows.append({**row, "seconds a unit": round(spent / charged, 3)})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    if sys.argv[1:2] == ["--attack"]:
        name, port, fields, key = sys.argv[2:]
        asyncio.run(attacking(name, Attack(int(port), json.loads(fields), key)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keys", action="store_true")
    parser.add_argument("--caddy", action="store_true")
    parser.add_argument("--soak", type=float, default=0, help="minutes of all attacks at once, beside ordinary clients")
    parser.add_argument("--prices", action="store_true", help="processor time of a unit, of dear requests; no attack")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = [line for line in options.source.read_text(encoding="utf-8").split("\n") if line.strip()]
    rows: list[dict[str, Any]] = []
    if options.prices:
        rows = prices(options, texts)
    for one in () if options.prices else ["soak"] if options.soak else options.only:
        rows.append(all_at_once(options, texts) if options.soak else measured(one, options, texts))
        print(json.dumps(rows[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps({**versions(), "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
