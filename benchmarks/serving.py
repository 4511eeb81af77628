"""What does `headway serve` stand, and how fast is it?

    python benchmarks/serving.py MODEL SOURCE [--engine torch] [--beam N] [--seconds 60] [--only NAME ...] [--json FILE]
        [--libretranslate PYTHON]

The loads come from this process, which shares the cores with the server; its share is given. Answers are compared with
those that the same server gives when nothing else is asked. The parts:

steady    50 clients, one sentence each at a time; the same with --batch-size 1; `Translator.translate` of random
          batches of 25 in this run, and of all sentences, with the processor time of a sentence here and there;
          with --libretranslate the same clients of LibreTranslate, which the environment of PYTHON has, with an Argos
          export of the same model, whose beam is 4
lists     8 clients, lists of 32 sentences, against `Translator.translate` of all sentences in this run
burst     1,000 requests at once: refusals, memory, /health meanwhile, and the way back
vanish    20 clients that go away while they are worked for
slow      200 connections that never end their request: latency meanwhile, and when they are closed
soak      mixed load for --soak seconds, after five minutes of warming: memory before, and at the end
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deploying import Server, libretranslate
from headway.bench.machine import versions
from load import Client, HealthWatch, Report, ServerProcess, load, measure, processor, soak

CLIENTS, LIST, LIST_CLIENTS, BURST = 50, 32, 8, 1000
VANISHING, SLOW = 20, 200
TEXTS, ALONE = 400, 200
"""Sentences that are asked for, and those that are translated one by one for comparison."""
PARTS = ("steady", "lists", "burst", "vanish", "slow", "soak")
OFFLINE = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
import torch
from headway.translator import Translator
model, engine, alone, beam = sys.argv[1:5]
texts, options = json.load(sys.stdin), {"beam_size": int(beam)} if int(beam) else {}
translator = Translator.load(model, engine=engine)
translator.translate(texts, **options)
start, processor = time.perf_counter(), time.process_time()
for _ in range(3):
    translator.translate(texts, **options)
together = 3 * len(texts) / (time.perf_counter() - start)
processor = (time.process_time() - processor) / 3 / len(texts)
with ThreadPoolExecutor(torch.get_num_threads(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
    start = time.perf_counter()
    list(pool.map(lambda text: translator.translate([text], **options), texts[: int(alone)]))
    one_by_one = int(alone) / (time.perf_counter() - start)
    start = time.perf_counter()
    list(pool.map(lambda first: translator.translate(texts[first : first + 25], **options), range(0, len(texts), 25)))
    print(json.dumps([together, one_by_one, len(texts) / (time.perf_counter() - start), processor]))
"""
"""Each core with sentences of its own, each time."""
SOAK_WARMING = 300
"""Seconds in which memory comes to rest."""


class Bench:
    """One model and its sentences."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        lines = options.source.read_text(encoding="utf-8").split("\n")
        texts = [line for line in dict.fromkeys(lines) if line.strip()]
        random.Random(1).shuffle(texts)
        self.texts = texts[:TEXTS]
        self.fields: dict[str, Any] = {}
        self.expected: dict[str, str] = {}

    def server(self, *arguments: object) -> ServerProcess:
        return ServerProcess(self.options.model, "--cache", 0, "--engine", self.options.engine, *arguments)

    async def learn(self, port: int) -> None:
        """The direction of the model, and the answer to each text when it is asked for alone."""
        client = Client(port)
        direction = next(one for one in (await client.get("/languages")).json if one["targets"])
        self.fields = {"source": direction["code"], "target": direction["targets"][0]}
        if self.options.beam:
            self.fields["beam_size"] = self.options.beam
        if not self.expected:
            for text in self.texts:
                answer = await client.post("/translate", {"q": text, **self.fields})
                self.expected[text] = answer.json["translatedText"]
        client.close()

    def offline(self) -> tuple[float, float, float, float]:
        """Sentences a second of `Translator.translate`: all together, each in a call of its own, and random batches of
        25, which is what each core gets from 50 clients; and seconds of processor time of a sentence, all together."""
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                OFFLINE,
                self.options.model,
                self.options.engine,
                str(ALONE),
                str(self.options.beam),
            ],
            input=json.dumps(self.texts),
            capture_output=True,
            text=True,
            check=True,
        )
        together, alone, batches, processor = json.loads(done.stdout)
        return together, alone, batches, processor

    def steady(self) -> dict[str, Any]:
        with self.server() as server:
            asyncio.run(self.learn(server.port))
            before = server.processor
            batching = asyncio.run(self.load(server.port, self.options.seconds))
            here = (server.processor - before) / batching.sentences
        with self.server("--batch-size", 1) as server:
            single = asyncio.run(self.load(server.port, min(20, self.options.seconds)))
        together, alone, batches, there = self.offline()
        gain, offline_gain = batching.rate / single.rate, together / alone
        beside = self.libretranslate(batching.rate) if self.options.libretranslate else {}
        return {
            "batching": shown(batching),
            "without": shown(single),
            "gain": round(gain, 2),
            "offline": {"together": round(together, 1), "one by one": round(alone, 1), "gain": round(offline_gain, 2)},
            "part of the offline gain": round(gain / offline_gain, 2),
            "random batches of 25": round(batches, 1),
            "part of those": round(batching.rate / batches, 2),
            "processor time of a sentence, ms": {"server": round(1000 * here, 2), "offline": round(1000 * there, 2)},
            "times that of offline": round(here / there, 2),
            **beside,
        }

    def libretranslate(self, rate: float) -> dict[str, Any]:
        """What LibreTranslate answers to the same clients, and how many times as many sentences a second `rate` is."""
        with TemporaryDirectory() as folder:
            command = libretranslate(self.options.libretranslate, self.options.model, Path(folder))
            with Server(*command) as server:
                server.translate(self.texts[0], (self.fields["source"], self.fields["target"]))
                before = processor(server.process)
                asked = load(
                    server.port, self.texts, {}, clients=CLIENTS, seconds=self.options.seconds, fields=self.fields
                )
                report = asyncio.run(asked)
                spent = (processor(server.process) - before) / report.sentences
        times = {"ms of processor time": round(1000 * spent, 2), "headway, times": round(rate / report.rate, 2)}
        return {"LibreTranslate": shown(report) | times}

    def lists(self) -> dict[str, Any]:
        with self.server() as server:
            asyncio.run(self.learn(server.port))
            report = asyncio.run(self.load(server.port, self.options.seconds, clients=LIST_CLIENTS, size=LIST))
        together, *_ = self.offline()
        part = round(report.rate / together, 2)
        return {"lists": shown(report), "offline": round(together, 1), "part of offline": part}

    def burst(self) -> dict[str, Any]:
        with self.server() as server:
            asyncio.run(self.learn(server.port))
            return asyncio.run(self._burst(server))

    async def _burst(self, server: ServerProcess) -> dict[str, Any]:
        usual = await self.one_by_one(server.port)
        server.forget_peak()
        before = server.memory
        clients = [Client(server.port) for _ in range(BURST)]
        with HealthWatch(server.port) as health:
            answers = await asyncio.gather(
                *(
                    client.post("/translate", {"q": self.texts[number % len(self.texts)], **self.fields})
                    for number, client in enumerate(clients)
                )
            )
            end, peak = time.perf_counter(), server.peak
            while await self.one_by_one(server.port, 5) > 2 * usual and time.perf_counter() < end + 60:
                pass
            back = time.perf_counter() - end
        for client in clients:
            client.close()
        refused = [answer.seconds for answer in answers if answer.status in (429, 503)]
        return {
            "statuses": dict(Counter(answer.status for answer in answers)),
            "slowest refusal, s": round(max(refused, default=0.0), 2),
            "slowest answer, s": round(max(answer.seconds for answer in answers), 2),
            "memory at its peak, MB": round((peak - before) / 1e6, 1),
            "normal again after, s": round(back, 2),
            "health p99, ms": round(1000 * statistics.quantiles(health.seconds, n=100)[98], 1),
            "health statuses": dict(Counter(health.statuses)),
        }

    def vanish(self) -> dict[str, Any]:
        with self.server() as server:
            asyncio.run(self.learn(server.port))
            return asyncio.run(self._vanish(server.port))

    async def _vanish(self, port: int) -> dict[str, Any]:
        fields = {"q": [" ".join(self.texts[:20])] * 8, "beam_size": 16, **self.fields}
        asking = [asyncio.create_task(Client(port).post("/translate", fields)) for _ in range(VANISHING)]
        watcher = Client(port)
        while await in_flight(watcher) < VANISHING:
            await asyncio.sleep(0.02)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        start = time.perf_counter()
        while await in_flight(watcher) > 0:
            await asyncio.sleep(0.02)
        watcher.close()
        return {"in flight is 0 after, s": round(time.perf_counter() - start, 2)}

    def slow(self) -> dict[str, Any]:
        with self.server() as server:
            asyncio.run(self.learn(server.port))
            return asyncio.run(self._slow(server.port))

    async def _slow(self, port: int) -> dict[str, Any]:
        usual = await self.one_by_one(port, 40)
        opened = time.perf_counter()
        connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(SLOW)]
        for _, writer in connections:
            writer.write(b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        latency = await self.one_by_one(port, 40)
        await asyncio.gather(*(until_closed(reader) for reader, _ in connections))
        return {
            "latency before, ms": round(1000 * usual, 1),
            "meanwhile, ms": round(1000 * latency, 1),
            "all closed after, s": round(time.perf_counter() - opened, 1),
        }

    def soak(self) -> dict[str, Any]:
        with self.server() as server:
            asyncio.run(self.learn(server.port))
            return asyncio.run(soak(server, self.texts, self.fields, SOAK_WARMING, self.options.soak))

    async def load(self, port: int, seconds: float, clients: int = CLIENTS, size: int = 0) -> Report:
        return await load(
            port, self.texts, self.expected, clients=clients, seconds=seconds, size=size, fields=self.fields
        )

    async def one_by_one(self, port: int, count: int = 20) -> float:
        """Median seconds of an answer."""
        client = Client(port)
        answers = [await client.post("/translate", {"q": text, **self.fields}) for text in self.texts[:count]]
        client.close()
        return statistics.median(answer.seconds for answer in answers)


async def in_flight(client: Client) -> float:
    return measure((await client.get("/metrics")).body.decode(), "headway_in_flight_requests")


async def until_closed(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        pass


def shown(report: Report) -> dict[str, Any]:
    return {
        "sentences/s": round(report.rate, 1),
        "statuses": dict(report.statuses),
        "wrong": len(report.wrong),
        "p50, ms": round(1000 * report.quantile(0.5)),
        "p99, ms": round(1000 * report.quantile(0.99)),
        "load generator's share of two cores": round(report.processor / report.wall / 2, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--beam", type=int, default=0, help="beam size; 0: the model's own")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--soak", type=float, default=120)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--libretranslate", metavar="PYTHON", help="an interpreter that has it, for the steady load")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    bench = Bench(options)
    found: dict[str, Any] = {"versions": versions("fastapi", "uvicorn", "ctranslate2"), "engine": options.engine}
    for part in options.only:
        found[part] = getattr(bench, part)()
        print(part)
        for name, value in found[part].items():
            print(f"  {name}: {value}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
