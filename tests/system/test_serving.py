"""The server as people run it: a process, its clients, hostile connections, its end."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.load import Client, HealthWatch, ServerProcess, load, measure, soak

from tests.system.running import complaint, run_headway

pytest.importorskip("fastapi")
FIELDS = {"source": "src", "target": "tgt"}
KEY = "only-this-one"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server(trained):
    with ServerProcess(trained, "--cache", 0) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(trained, tmp_path_factory):
    """A server with keys."""
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text(f"{KEY}\nanother\n")
    with ServerProcess(trained, "--api-keys", keys) as server:
        yield server


@pytest.fixture(scope="module")
def expected(corpus, trained):
    """What `headway translate` makes of the test's lines."""
    lines = corpus.file("test.src").read_text().splitlines()
    outcome = run_headway("translate", trained, corpus.file("test.src"))
    return dict(zip(lines, outcome.out.splitlines(), strict=True))


def ask(server, path, fields=None):
    """A request by Python's own client: status and document."""
    body = None if fields is None else json.dumps(fields).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}{path}", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def gauge(server, name="headway_in_flight_requests"):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        return measure(answer.read().decode(), name)


def test_a_real_client_of_libretranslate(server, guarded, expected):
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(f"http://127.0.0.1:{server.port}/")
    assert client.languages() == [
        {"code": "src", "name": "src", "targets": ["tgt", "src"]},
        {"code": "tgt", "name": "tgt", "targets": ["tgt"]},
    ]
    text, wanted = next(iter(expected.items()))
    assert client.translate(text, "src", "tgt") == wanted
    assert client.detect(text)[0].keys() == {"confidence", "language"}
    with_key = LibreTranslateAPI(f"http://127.0.0.1:{guarded.port}/", api_key=KEY)
    assert with_key.translate(text, "src", "tgt") == wanted
    with pytest.raises(urllib.error.HTTPError, match="403"):
        LibreTranslateAPI(f"http://127.0.0.1:{guarded.port}/").translate(text, "src", "tgt")


def test_another_client_of_libretranslate(server, guarded, expected):
    from libretranslate_aio import AsyncLibreTranslate, ForbiddenError, LibreTranslate

    text, wanted = next(iter(expected.items()))

    async def asking():
        async with AsyncLibreTranslate(f"http://127.0.0.1:{server.port}") as client:
            found = await client.translate([text, text], "src", "tgt", alternatives=1)
            return [one.translated_text for one in found] if isinstance(found, list) else found.translated_text

    assert asyncio.run(asking()) == [wanted, wanted]
    with LibreTranslate(f"http://127.0.0.1:{guarded.port}", api_key=KEY) as client:
        assert client.translate(text, "src", "tgt").translated_text == wanted
        assert [one.code for one in client.languages()] == ["src", "tgt"]
        assert client.detect(text)[0].language in ("src", "tgt")
        assert client.frontend_settings().char_limit == 5000
    with LibreTranslate(f"http://127.0.0.1:{guarded.port}") as client, pytest.raises(ForbiddenError):
        client.translate(text, "src", "tgt")


IN_JAVASCRIPT = """
import { createRequire } from "node:module";
const require = createRequire(process.argv[1]);
const [, , url, text] = process.argv;
const { translate } = require("libretranslate");
const { libreTranslate } = require("libretranslate-ts");
libreTranslate.setApiEndpoint(url);
console.log(JSON.stringify({
  plain: await translate({ query: text, source: "src", target: "tgt", apiurl: url }),
  typed: await libreTranslate.translate(text, "src", "tgt", 2),
  languages: await libreTranslate.listLanguages(),
  detected: await libreTranslate.detect(text),
}));
"""


@pytest.mark.skipif(not (ROOT / "tests" / "node_modules").is_dir(), reason="packages of npm aren't installed")
def test_clients_of_libretranslate_in_javascript(server, expected, tmp_path):
    text, wanted = next(iter(expected.items()))
    script = ROOT / "tests" / "node_modules" / f".clients-{os.getpid()}.mjs"
    script.write_text(IN_JAVASCRIPT)
    try:
        command = ["node", str(script), f"http://127.0.0.1:{server.port}", text]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    finally:
        script.unlink()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["plain"] == found["typed"]["translatedText"] == wanted
    assert len(found["typed"]["alternatives"]) == 2
    assert [one["code"] for one in found["languages"]] == ["src", "tgt"]
    assert found["detected"]["language"] in ("src", "tgt")


def test_the_command_line_is_a_client(server, guarded, expected, corpus, tmp_path, monkeypatch):
    url = f"http://127.0.0.1:{server.port}"
    text = "".join(f"{line}\n" for line in [*expected, "", "ant"])
    outcome = run_headway("translate", "--server", url, input_=text)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[:-1] == [*expected.values(), ""]
    outcome = run_headway("translate", "--server", url, corpus.file("test.src"), "--output", tmp_path / "out")
    lines = corpus.file("test.src").read_text().splitlines()
    assert (tmp_path / "out").read_text().splitlines() == [expected[line] for line in lines], outcome.err
    key_needed = f"http://127.0.0.1:{guarded.port}"
    assert "403" in complaint("translate", "--server", key_needed, input_="ant\n")
    monkeypatch.setenv("HEADWAY_API_KEY", KEY)
    assert run_headway("translate", "--server", key_needed, input_="ant\n").code == 0
    assert "choose with" in complaint("translate", "--server", url, "--target-language", "xx")
    assert "--n-best is not for --server" in complaint("translate", "--server", url, "--n-best", 2)
    assert "is it a server?" in complaint("translate", "--server", "http://127.0.0.1:1")
    assert "must begin with http" in complaint("translate", "--server", "localhost:1")
    assert "only one FILE" in complaint("translate", "--server", url, tmp_path / "out", tmp_path / "out")


def test_a_line_that_is_too_long_for_the_server_is_left_blank(server):
    outcome = run_headway("translate", "--server", f"http://127.0.0.1:{server.port}", input_=f"\n{'ant ' * 1300}\n\n")
    assert (outcome.code, outcome.out) == (2, "\n\n\n")
    assert "line 2 has 5,200 characters, the server takes at most 5,000" in outcome.err


def test_what_is_wrong_at_the_start_is_one_line(server, trained, tmp_path):
    assert "in use" in complaint("serve", trained, "--port", server.port)
    (tmp_path / "keys").write_text("\n")
    assert "holds no key" in complaint("serve", trained, "--api-keys", tmp_path / "keys", "--port", 0)
    assert "No such file" in complaint("serve", trained, "--api-keys", tmp_path / "none", "--port", 0)
    for name in ("*", "https://translate.example.org", ":5000", "..", "bücher.de"):
        assert f"{name}: must be a host's name" in complaint("serve", trained, "--allowed-host", name)
    for origin in ("example.org", "https://example.org/", "https://Example.org", "https://*.a.org", "http://a.org:80"):
        assert f"{origin}: must be * or an origin" in complaint("serve", trained, "--allow-origin", origin)


GOOD = json.dumps({"q": "ant", **FIELDS}).encode()
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HOSTILE = {
    "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n" + GOOD,
    "a list of lengths": HEAD + b"Content-Length: 5, 50\r\n\r\n" + GOOD,
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n",
    "no number for a length": HEAD + b"Content-Length: 0x10\r\n\r\n" + GOOD,
    "an endless length": HEAD + b"Content-Length: " + b"9" * 200 + b"\r\n\r\n",
    "length and chunks": HEAD
    + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    "chunks of a strange size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
    "an endless chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 100 + b"\r\n",
    "another coding": HEAD + b"Transfer-Encoding: gzip\r\n\r\n" + GOOD,
    "a long header": HEAD + b"X-Long: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "many headers": HEAD + b"".join(b"X-%d: a\r\n" % number for number in range(100_000)) + b"\r\n",
    "a long path": b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a large body": HEAD + b"Content-Length: 2000000\r\n\r\n" + b"a" * 2_000_000,
    "large chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"80000\r\n" + b"a" * 0x80000 + b"\r\n") * 4,
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    "another host": b"GET /languages HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a header that is folded": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\x00\r\n\r\n",
    "a space before the colon": b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\n" + GOOD,
    "a name with a space": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX Y: a\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "lines that end in nothing": b"GET /health HTTP/1.1\rHost: localhost\r\r" + b"\r\n\r\n",
    "two slashes": HEAD.replace(b"/translate", b"//translate") + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD,
}


def whole_answer(connection):
    """The first answer; what has come of it where the connection ends before."""
    answer = b""
    while more := connection.recv(1 << 16):
        answer += more
        head = re.match(rb"(?s).*?content-length: (\d+)\r\n.*?\r\n\r\n", answer)
        if head and len(answer) >= head.end() + int(head[1]):
            break
    return answer


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused_and_the_next_is_served(server, name):
    start = time.perf_counter()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        try:
            connection.sendall(HOSTILE[name])
            answer = whole_answer(connection)
        except ConnectionError:
            answer = b""  # it was closed in our face
    assert time.perf_counter() - start < 3
    if answer:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert re.match(rb"HTTP/1.1 4\d\d ", head), answer[:200]
        assert set(json.loads(body)) == {"error"}
    assert ask(server, "/translate", {"q": "ant", **FIELDS})[0] == 200


def test_refusals_of_the_parser_are_counted_and_logged(server):
    """What h11 refuses gets an answer in JSON, a line in the log and a place in the metrics."""
    refused = 'headway_requests_total{route="other",status="400"}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n")
        head, _, body = whole_answer(connection).partition(b"\r\n\r\n")
        assert connection.recv(100) == b"", "it is closed"
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"error": "this is no HTTP request"}
    before = gauge(server, refused)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"\x00\x01\r\n\r\n")
        whole_answer(connection)
    assert gauge(server, refused) == before + 1
    lines = [line for line in server.log() if line.get("reason") == "no HTTP"]
    assert lines
    assert {line["status"] for line in lines} == {400}


@pytest.mark.parametrize("given", [b"bytes=x", b"bytes=", b"bytes=0-1", b"bytes=5-1,-", b"lines=1-2", b"\xff" * 50])
def test_a_range_changes_nothing(server, given):
    """Neither on the page, whose files could be sent in parts, nor elsewhere."""
    for path in (b"/", b"/page/docs.html", b"/health"):
        request = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(request + b"Range: " + given + b"\r\n\r\n")
            head, _, body = whole_answer(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), (path, head)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(request + b"\r\n")
            assert whole_answer(connection).partition(b"\r\n\r\n")[2] == body


def test_keys_hold_against_odd_requests(guarded):
    for key in ("", "only-this-on", "Only-this-one", "only-this-one,another", " only-this-one", "only-this-one\u0000"):
        for path in ("/translate", "//translate", "/translate/", "/./translate", "/TRANSLATE", "/%74ranslate"):
            status, _ = ask(guarded, path, {"q": "ant", **FIELDS, "api_key": key})
            assert status in (403, 404, 405), (path, key)
    body = json.dumps({"q": "ant", **FIELDS, "api_key": "no"}).encode()
    for host in ("evil", "127.0.0.1@evil", "localhost:1", "LOCALHOST"):
        request = HEAD.replace(b"localhost", host.encode()) + b"Content-Length: %d\r\n\r\n" % len(body) + body
        with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as connection:
            connection.sendall(request)
            assert connection.recv(100).split()[1] in (b"400", b"403")


def test_many_clients_get_the_answers_of_one(server, expected):
    report = asyncio.run(load(server.port, list(expected), expected, clients=30, seconds=4, fields=FIELDS))
    assert set(report.statuses) <= {200, 429, 503}
    assert report.sentences > 100
    assert not report.wrong


def test_a_burst_is_refused_at_once_and_leaves_nothing(server, expected):
    texts = list(expected)

    async def burst():
        clients = [Client(server.port) for _ in range(600)]
        answers = await asyncio.gather(
            *(client.post("/translate", {"q": texts[n % len(texts)], **FIELDS}) for n, client in enumerate(clients))
        )
        for client in clients:
            client.close()
        return answers

    server.forget_peak()
    before = server.memory
    with HealthWatch(server.port) as health:
        answers = asyncio.run(burst())
        growth = server.peak - before
    assert {answer.status for answer in answers} == {200, 429}
    refused = [answer for answer in answers if answer.status == 429]
    assert all("retry-after" in answer.headers for answer in refused)
    assert max(answer.seconds for answer in refused) < 10, (
        "the clients share the cores with it, and wait for each other"
    )
    assert set(health.statuses) == {200}
    assert max(health.seconds) < 2
    assert growth < 200e6
    status, answer = ask(server, "/translate", {"q": texts[0], **FIELDS})
    assert (status, answer["translatedText"]) == (200, expected[texts[0]])


def test_clients_that_vanish_leave_nothing(server, expected):
    body = json.dumps({"q": [" ".join(expected)] * 32, "beam_size": 16, **FIELDS}).encode()
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for connection in connections:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    deadline = time.perf_counter() + 10
    while gauge(server) < 20:
        assert time.perf_counter() < deadline
        time.sleep(0.02)
    for connection in connections:
        connection.close()
    gone = time.perf_counter()
    while gauge(server) > 0:
        assert time.perf_counter() - gone < 2
        time.sleep(0.05)
    assert gauge(server, "headway_queue_sentences") == 0


def test_slow_connections_are_closed(server, expected):
    """Half a head, half a second head, half a body, and nothing at all."""
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD
    starts = [b"POST /trans", whole + b"POST /trans", whole[:-5], b""]
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    for number, connection in enumerate(connections):
        connection.sendall(starts[number % 4])
    opened = time.perf_counter()
    slowest = 0.0
    for text, translation in list(expected.items())[:20]:
        start = time.perf_counter()
        assert ask(server, "/translate", {"q": text, **FIELDS})[1]["translatedText"] == translation
        slowest = max(slowest, time.perf_counter() - start)
    assert slowest < 2
    for connection in connections:
        connection.settimeout(30 - (time.perf_counter() - opened))
        try:
            while connection.recv(4096):
                pass
        except ConnectionError:
            pass
        connection.close()
    assert time.perf_counter() - opened < 30


def test_memory_stays_under_mixed_load(trained, expected):
    """`make soak` does the same for half an hour."""
    with ServerProcess(trained, "--cache", 0) as server:
        found = asyncio.run(soak(server, list(expected), FIELDS, 10, 12))
    assert set(found["statuses"]) <= {200, 400, 429, 503}
    assert found["statuses"][200] > 200
    assert found["growth after, MB"] < 30


def test_sigterm_ends_it_when_all_is_answered(trained, expected):
    texts = [" ".join(list(expected)[:6])] * 8
    with ServerProcess(trained, "--cache", 0) as server:
        answers = []
        asking = [
            threading.Thread(
                target=lambda: answers.append(ask(server, "/translate", {"q": texts, "beam_size": 16, **FIELDS}))
            )
            for _ in range(6)
        ]
        for thread in asking:
            thread.start()
        while gauge(server) < 6 and not answers:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        start = time.perf_counter()
        time.sleep(0.1)
        assert ask(server, "/ready") == (503, {"status": "ending"})
        for thread in asking:
            thread.join()
        assert [status for status, _ in answers] == [200] * 6
        assert server.process.wait(30) == 0
        assert time.perf_counter() - start < 30
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", server.port)).close()


def test_sigterm_before_it_listens_ends_it_at_once(trained, tmp_path):
    keys = tmp_path / "keys"
    os.mkfifo(keys)
    command = [sys.executable, "-m", "headway", "serve", trained, "--port", "0", "--api-keys", keys]
    with subprocess.Popen(command) as process, keys.open("w"):  # it waits for its keys
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def test_a_full_disk_at_the_start_ends_nothing(trained):
    """Neither the lines of the command nor the log can be written."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "headway", "serve", trained, "--port", str(port)]
    with open("/dev/full", "w") as full, subprocess.Popen(command, stdout=full, stderr=full) as process:
        server, deadline = SimpleNamespace(port=port), time.perf_counter() + 60
        while True:
            try:
                assert ask(server, "/translate", {"q": "ant", **FIELDS})[0] == 200
                break
            except OSError:
                assert process.poll() is None
                assert time.perf_counter() < deadline
                time.sleep(0.1)
        assert gauge(server, "headway_dropped_log_lines_total") >= 1
        process.terminate()
        assert process.wait(30) == 0


STUCK = """
import sys
from headway.serving import server
from headway.serving.pairs import Pairs
from headway.serving.service import Service
from headway.serving.settings import Settings
from tests.serving.conftest import CopyingTranslator
translator = CopyingTranslator("src", "tgt")
translator.go_on.wait = lambda _: __import__("time").sleep(3600)
server.GRACE = 1
server.serve(Service(Pairs([translator]), Settings()), server.bind("127.0.0.1", int(sys.argv[1])))
"""


def test_a_model_that_never_answers_does_not_keep_it_alive():
    """Who waits for it is told, in JSON, and the process ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", STUCK, str(port)], cwd=ROOT, stderr=log, text=True) as process:
        assert "listening" in process.stderr.readline()
        stuck, answers = SimpleNamespace(port=port), []
        asking = threading.Thread(target=lambda: answers.append(ask(stuck, "/translate", {"q": "ant", **FIELDS})))
        asking.start()
        while gauge(stuck) < 1:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        asking.join()
        said = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert answers == [(503, {"error": "the server is about to end"})]
    assert [line["status"] for line in said if line.get("route") == "/translate"] == [503]


def test_what_is_said_holds_no_text(server, expected):
    """After all the tests above."""
    said = json.dumps(server.log())
    assert "message" in said
    for text in expected:
        assert text not in said or " " not in text
    assert not [line for line in server.log() if line["level"] == "error"]


def test_help_without_the_packages_says_what_to_install(trained):
    script = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['headway', 'serve', sys.argv[1]]; "
        "from headway.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script, trained], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'headway[serve]'" in done.stderr
