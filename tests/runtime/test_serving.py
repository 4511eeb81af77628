"""The server and its page."""

import json
import urllib.error
import urllib.request

import pytest
from benchmarks.load import ServerProcess

from tests.runtime.conftest import GREEDY, MODEL, TEXTS

pytestmark = pytest.mark.runtime


@pytest.fixture(scope="module")
def server():
    with ServerProcess(MODEL, "--precision", "fp32") as server:
        yield server


def ask(server, path: str, fields: dict | None = None) -> tuple[int, bytes]:
    """Status and body of the answer."""
    body = None if fields is None else json.dumps({"source": "de", "target": "en", "beam_size": 1, **fields}).encode()
    address = f"http://127.0.0.1:{server.port}{path}"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, body, {"Content-Type": "application/json"}), timeout=30
        ) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_translations(server):
    status, body = ask(server, "/translate", {"q": TEXTS})
    assert (status, json.loads(body)["translatedText"]) == (200, [one["text"] for one in GREEDY])


def test_a_document(server):
    status, body = ask(server, "/translate", {"q": f"<b>{TEXTS[0]}</b>", "format": "html"})
    assert (status, json.loads(body)["translatedText"]) == (200, f"<b>{GREEDY[0]['text']}</b>")


def test_alignments(server):
    status, body = ask(server, "/align", {"q": TEXTS[0], "translation": GREEDY[0]["text"]})
    assert status == 200
    assert json.loads(body)["links"]


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/languages", "/ready", "/metrics"])
def test_pages(server, path):
    status, body = ask(server, path)
    assert status == 200
    assert body


def test_inspecting_says_what_it_needs(server):
    status, body = ask(server, "/inspect", {"q": TEXTS[0]})
    assert 400 <= status < 600
    assert "headway[torch]" in json.loads(body)["error"]
    assert ask(server, "/translate", {"q": TEXTS[0]})[0] == 200


def test_it_ends_when_asked():
    with ServerProcess(MODEL) as server:
        assert server.stop() == 0
