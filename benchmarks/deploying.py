"""How fast is headway where it translates, and what does it take?

    python benchmarks/deploying.py MODEL SOURCE [--lines 10000] [--beam-size N] [--rounds 9] [--json FILE]
    python benchmarks/deploying.py MODEL SOURCE --peers FOLDER     what `make bench-deploying` calls

`headway translate` with its defaults against a process that calls CTranslate2 directly, in turns, from start to end:
the same exported model, precision, beam and threads, and the best of a few batch sizes. For each: medians of the
rounds, the geometric mean of the rounds' ratios with its 95% interval (bootstrap). Then both from their start to the
first line, one sentence in a warm process, and `headway serve`: seconds until /health and the first translation, and
its memory.

With --peers: headway, LibreTranslate with an Argos export of the same model, and fxtranslate, each installed in an
environment of its own in FOLDER. fxtranslate reads only Marian's models with SSRU decoders, so it translates nothing
here. LibreTranslate gets whole sentences: it would fetch a model that splits them.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from headway.bench.machine import versions
from headway.data.corpus import read_lines
from headway.storage import find_model, load_model
from headway.text.tokenizer import CONTROL_PIECES
from revisions import interval

BATCHES = ((16, "examples"), (32, "examples"), (64, "examples"), (1024, "tokens"), (2048, "tokens"))
"""What the direct call chooses its batch size from."""
ALONE = 60
"""Sentences that a warm process translates one by one; the first half warms it."""
REQUESTS, LISTS, LIST = 100, 25, 32
"""Requests of one sentence, and lists of sentences, that a server gets."""
ENVIRONMENTS = ("headway", "headway-serve", "libretranslate", "fxtranslate")
"""The folders that --peers needs."""
DIRECT = """
import json, sys
import ctranslate2, sentencepiece
folder, pieces, end, compute_type, threads, source, output, options = sys.argv[1:]
pieces = sentencepiece.SentencePieceProcessor(model_file=pieces)
model = ctranslate2.Translator(folder, compute_type=compute_type, inter_threads=int(threads), intra_threads=1)
with open(source, encoding="utf-8", newline="\\n") as lines:
    texts = lines.read().splitlines()
sources = [[*text, end] for text in pieces.encode(texts, out_type=str)]
found = pieces.decode([one.hypotheses[0] for one in model.translate_batch(sources, **json.loads(options))])
with open(output, "w", encoding="utf-8", newline="\\n") as lines:
    lines.writelines(text + "\\n" for text in found)
"""
WARM = """
import json, statistics, sys, time
from headway.translator import Translator
translator = Translator.load(sys.argv[1], device="cpu")
seconds = []
for text in json.load(sys.stdin):
    start = time.perf_counter()
    translator.translate([text])
    seconds.append(time.perf_counter() - start)
print(1000 * statistics.median(seconds[len(seconds) // 2 :]))
"""
LIBRETRANSLATE = """
import argostranslate.sbd, libretranslate.init
argostranslate.sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
libretranslate.init.check_and_install_models = lambda **options: None
from libretranslate.main import main
main()
"""
INSTALL = "import sys; from argostranslate import package; package.install_from_path(sys.argv[1])"
IMPORTING = "import fxtranslate; print(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])"
ROOT = Path(__file__).parent.parent
HEADWAY = {"PYTHONPATH": str(ROOT / "src")}
"""The environment variables of this code."""
Command = list[str]


def seconds(command: Command, *, environment: dict[str, str] = HEADWAY, line: str | None = None) -> float:
    """From the start of a process to its end, or to its first line where it gets one."""
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if line is not None:
            process.stdin.write(line + "\n")
            process.stdin.close()
            process.stdout.readline()
            return time.perf_counter() - start
        _, complaint = process.communicate()
        if process.returncode:
            raise SystemExit(complaint)
    return time.perf_counter() - start


class Pair:
    """`headway translate` with its defaults, and the direct call with the same settings."""

    def __init__(self, model: Path, beam_size: int | None, folder: Path) -> None:
        stored = load_model(model)
        self._model, self._folder = str(model), folder
        self._flags = [] if beam_size is None else ["--beam-size", str(beam_size)]
        self.precision = "int8" if stored.int8 is not None and stored.int8.accepted else "fp32"
        self.options: dict[str, Any] = {
            "beam_size": beam_size or stored.decoding.get("beam_size", 1),
            "length_penalty": stored.decoding.get("length_penalty", 1.0),
        }
        self._type = {"int8": "int8", "fp32": "float32"}[self.precision]
        export = f"headway export {model} --to ctranslate2 --output {folder / 'direct'} --quantization {self._type}"
        seconds([sys.executable, "-m", *export.split()])

    def headway(self, source: Path, output: Path | None = None) -> Command:
        written = [] if output is None else ["--output", str(output)]
        return [sys.executable, "-m", "headway", "translate", self._model, str(source), *written, *self._flags]

    def direct(self, source: Path, output: Path) -> Command:
        pieces = next(find_model(Path(self._model)).glob("*.spm"))
        threads = str(versions()["threads"])
        where = [str(self._folder / "direct"), str(pieces), CONTROL_PIECES[3], self._type, threads]
        return [sys.executable, "-c", DIRECT, *where, str(source), str(output), json.dumps(self.options)]

    def choose_batch(self, source: Path) -> None:
        """The best one for the direct call."""
        tried = {}
        for size, kind in BATCHES:
            self.options |= {"max_batch_size": size, "batch_type": kind}
            tried[size, kind] = min(seconds(self.direct(source, Path(os.devnull))) for _ in range(2))
        best = min(tried, key=lambda batch: tried[batch])
        self.options |= dict(zip(("max_batch_size", "batch_type"), best, strict=True))


def in_turns(name: str, ours: Command, theirs: Command, rounds: int, line: str | None = None) -> dict[str, float]:
    """Medians of both, and how many times as fast as the second the first is."""
    pairs = []
    for number in range(rounds + 1):
        order = (ours, theirs) if number % 2 else (theirs, ours)
        times = {command is ours: seconds(command, line=line) for command in order}
        pairs.append((times[True], times[False]))
    own, others = (statistics.median(column) for column in zip(*pairs[1:], strict=True))  # the first warms up
    ratio, low, high = interval([other / one for one, other in pairs[1:]])
    print(
        f"{name}: headway {own:.3f} s, CTranslate2 {others:.3f} s: {ratio:.3f} ({low:.3f} to {high:.3f}) of its speed"
    )
    return {"headway": own, "direct": others, "ratio": ratio, "low": low, "high": high}


def against_direct(model: Path, source: Path, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pair = Pair(model, options.beam_size, folder)
        text = folder / "source"
        text.write_text("".join(f"{one}\n" for one in islice(cycle(read_lines(source)), options.lines)), "utf-8")
        pair.choose_batch(text)
        print(f"{pair.precision}; directly with {pair.options}")
        ours, theirs = folder / "ours", folder / "theirs"
        whole = in_turns(
            f"{options.lines:,} lines", pair.headway(text, ours), pair.direct(text, theirs), options.rounds
        )
        both = zip(*(file.read_text(encoding="utf-8").split("\n") for file in (ours, theirs)), strict=True)
        whole["equal lines"] = sum(one == other for one, other in both) - 1
        print(f"{whole['equal lines']:,} of the lines are equal")
        stdin, stdout = Path("/dev/stdin"), Path("/dev/stdout")
        first = in_turns(
            "first line", pair.headway(Path("-")), pair.direct(stdin, stdout), options.rounds, next(read_lines(source))
        )
    return {"precision": pair.precision, "options": pair.options, "whole": whole, "first line": first}


def warm(model: Path, texts: Sequence[str]) -> float:
    """Milliseconds for one sentence in a process that has translated others."""
    worker = [sys.executable, "-c", WARM, str(model)]
    return float(subprocess.check_output(worker, input=json.dumps(texts), env={**os.environ, **HEADWAY}, text=True))


class Server:
    """A server of translations in a process of its own; entered, it is at work on a free port."""

    def __init__(self, command: Command, environment: dict[str, str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._command = [*command, "--port", str(self.port)]
        self._environment = {**os.environ, **environment}

    def __enter__(self) -> Server:
        self._start = time.perf_counter()
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(self._command, env=self._environment, stdout=quiet, stderr=quiet)
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self._is_healthy():
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(self._command)} ended")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self.process.terminate()
        self.process.wait()

    @property
    def age(self) -> float:
        return time.perf_counter() - self._start

    @property
    def memory(self) -> float:
        """MiB that it has in memory (Linux)."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def translate(self, texts: str | Sequence[str], direction: tuple[str, str]) -> None:
        body = json.dumps({"q": texts, "source": direction[0], "target": direction[1]})
        self._connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = json.load(self._connection.getresponse())
        if "translatedText" not in answer:
            raise SystemExit(f"{self._command[0]}: {answer['error']}")

    def _is_healthy(self) -> bool:
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            self._connection.request("GET", "/health")
            answer = self._connection.getresponse()
            answer.read()
            return answer.status == 200
        self._connection.close()
        return False


def served(
    command: Command, environment: dict[str, str], texts: list[str], direction: tuple[str, str]
) -> dict[str, float]:
    """What a server takes, and how fast it answers. No two of `texts` should be equal, since servers keep answers."""
    with Server(command, environment) as server:
        found = {"ready, s": server.age, "ready, MiB": server.memory}
        server.translate(texts[0], direction)
        found |= {"first translation, s": server.age, "first translation, MiB": server.memory}
        times = []
        for text in texts[1:REQUESTS]:
            start = time.perf_counter()
            server.translate(text, direction)
            times.append(time.perf_counter() - start)
        found |= {"one sentence, ms": 1000 * statistics.median(times), f"{REQUESTS} requests, MiB": server.memory}
        lists = [texts[first : first + LIST] for first in range(REQUESTS, REQUESTS + LISTS * LIST, LIST)]
        start = time.perf_counter()
        for some in lists:
            server.translate(some, direction)
        found["lines/s in lists"] = sum(map(len, lists)) / (time.perf_counter() - start)
        return found | {"lists, MiB": server.memory}


def median(name: str, rounds: list[dict[str, float]]) -> dict[str, float]:
    found = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    print(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in found.items()), flush=True)
    return found


def installed(environment: Path) -> float:
    """MiB of the packages in an environment, as `du` counts them."""
    [packages] = environment.glob("lib/python*/site-packages")
    return sum(file.lstat().st_blocks * 512 for file in packages.rglob("*")) / 2**20


def libretranslate(python: str, model: Path, folder: Path) -> tuple[Command, dict[str, str]]:
    """The command and environment variables of a LibreTranslate that has an Argos export of the model in `folder`."""
    package = folder / "model.argosmodel"
    homes = {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "CONFIG", "CACHE")}
    seconds([sys.executable, "-m", "headway", "export", str(model), "--to", "argos", "--output", str(package)])
    seconds([python, "-c", INSTALL, str(package)], environment=homes)
    return [python, "-c", LIBRETRANSLATE], homes


def beside_peers(
    model: Path, texts: list[str], direction: tuple[str, str], environments: Path, rounds: int
) -> dict[str, Any]:
    """What each takes in its own environment."""
    pythons = {name: str(environments / name / "bin" / "python") for name in ENVIRONMENTS}
    sizes = {name: {"installed, MiB": installed(environments / name)} for name in pythons}
    with tempfile.TemporaryDirectory() as temporary:
        servers = {
            "headway-serve": ([pythons["headway-serve"], "-m", "headway", "serve", str(model)], HEADWAY),
            "libretranslate": libretranslate(pythons["libretranslate"], model, Path(temporary)),
        }
        found: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
        for _ in range(rounds):
            line = [pythons["headway"], "-m", "headway", "translate", str(model), "-"]
            found["headway"].append({"first line, s": seconds(line, line=texts[0])})
            for name, (command, environment) in servers.items():
                found[name].append(served(command, environment, texts, direction))
            importing = {"import, s": seconds([pythons["fxtranslate"], "-c", IMPORTING], line="")}
            told = subprocess.check_output([pythons["fxtranslate"], "-c", IMPORTING], text=True)
            found["fxtranslate"].append({**importing, "import, MiB": int(told) / 1024})
    return {name: median(name, [{**sizes[name], **one} for one in some]) for name, some in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, default=10_000, help="SOURCE is repeated until it has so many")
    parser.add_argument("--beam-size", type=int, help="instead of the model's own")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = list(dict.fromkeys(text for text in read_lines(options.source) if text.strip()))
    stored = load_model(options.model)
    direction = stored.source_language, stored.target_language
    found: dict[str, Any] = versions("ctranslate2")
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    if options.peers is not None:
        found["peers"] = beside_peers(options.model, texts, direction, options.peers, options.rounds)
    else:
        found |= against_direct(options.model, options.source, options)
        alone = [{"one sentence, ms": warm(options.model, texts[:ALONE])} for _ in range(options.rounds)]
        found["warm process"] = median("warm process", alone)
        command = [sys.executable, "-m", "headway", "serve", str(options.model)]
        rounds = [served(command, HEADWAY, texts, direction) for _ in range(options.rounds)]
        found["headway serve"] = median("headway serve", rounds)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
