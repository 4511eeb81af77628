"""`headway translate --server`: whatever is at the address, an answer or one line."""

import http.server
import json
import socket
import threading

import pytest

from headway.errors import UserError
from headway.serving.client import ServerTranslator

SETTINGS = {"charLimit": 100, "maxTexts": 2}
LANGUAGES = [{"code": "de", "name": "German", "targets": ["en"]}]


class Fake(http.server.ThreadingHTTPServer):
    """Answers each path with what it was given: a document, or (status, headers, document)."""

    def __init__(self, **answers):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {"/frontend/settings": SETTINGS, "/languages": LANGUAGES, **answers}
        self.asked = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        length = int(self.headers.get("content-length", 0))
        fields = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.path, fields))
        answer = self.server.answers[self.path]
        answer = answer(fields) if callable(answer) else answer
        status, headers, document = answer if isinstance(answer, tuple) else (200, {}, answer)
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  # http.server's name

    def log_message(self, *_):
        pass


@pytest.fixture
def fake():
    servers = []

    def make(**answers):
        servers.append(Fake(**answers))
        return servers[-1]

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


def upper(fields):
    return {"translatedText": [text.upper() for text in fields["q"]]}


def test_as_many_texts_as_the_server_takes(fake):
    server = fake(**{"/translate": upper})
    translator = ServerTranslator(server.url + "/")
    assert (translator.source, translator.target, translator.longest) == ("de", "en", 100)
    assert translator.translate(["a", "ä😀", "c"], beam_size=3) == ["A", "Ä😀", "C"]
    fields = {"source": "de", "target": "en", "beam_size": 3}
    assert server.asked[2:] == [("/translate", {"q": ["a", "ä😀"], **fields}), ("/translate", {"q": ["c"], **fields})]


def test_a_line_that_is_too_long_is_left_blank(fake):
    translator = ServerTranslator(fake(**{"/translate": upper}).url)
    assert translator.translate(["a", "b" * 101, "c" * 100]) == ["A", "", "C" * 100]
    assert translator.is_too_long("b" * 101)


@pytest.mark.parametrize(
    "answer", [{"translatedText": ["A"]}, {"translatedText": "AB"}, {}, [], {"translatedText": [1, 2]}]
)
def test_an_answer_that_is_not_one_for_each_text(fake, answer):
    translator = ServerTranslator(fake(**{"/translate": answer}).url)
    with pytest.raises(UserError, match="isn't a translation of each text"):
        translator.translate(["a", "b"])


@pytest.mark.parametrize("answer", [{"a": 1}, "text", 5, [1], [{"name": "German"}], [{"code": "de", "targets": 5}]])
def test_something_else_at_the_address(fake, answer):
    with pytest.raises(UserError, match="not as a translation server does"):
        ServerTranslator(fake(**{"/languages": answer}).url)


def test_an_old_server_does_not_name_targets(fake):
    languages = [{"code": "de", "name": "German"}, {"code": "en", "name": "English"}]
    server = fake(**{"/languages": languages, "/frontend/settings": {"charLimit": -1}})
    translator = ServerTranslator(server.url, source="de")
    assert (translator.source, translator.target, translator.longest) == ("de", "en", None)


def test_the_source_may_be_left_to_the_server(fake):
    languages = [{"code": code, "targets": ["en"]} for code in ("de", "fr")]
    server = fake(**{"/languages": languages, "/translate": upper})
    assert ServerTranslator(server.url, source="auto").translate(["ein"]) == ["EIN"]
    assert server.asked[-1][1]["source"] == "auto"
    languages[0]["targets"] = ["en", "ko"]
    with pytest.raises(UserError, match="choose with --source-language"):
        ServerTranslator(server.url, source="auto")
    assert ServerTranslator(server.url, source="auto", target="ko").target == "ko"


def test_the_languages_of_a_server_in_other_codes(fake):
    languages = [{"code": "zh-Hans", "targets": ["en"]}, {"code": "zh-Hant", "targets": ["en", "ko"]}]
    url = fake(**{"/languages": languages}).url
    for given in (("zh_CN", None), ("zho", "EN"), ("ZH-hans", "en-US")):
        translator = ServerTranslator(url, *given)
        assert (translator.source, translator.target) == ("zh-Hans", "en")
    assert ServerTranslator(url, target="kor").source == "zh-Hant"
    for unknown in (("yue", None), ("zh-CN", "fr")):
        with pytest.raises(UserError, match="choose with --source-language"):
            ServerTranslator(url, *unknown)


@pytest.mark.parametrize("after", ["Wed, 21 Oct 2026 07:28:00 GMT", "", "-5", "1e9", "999999999"])
def test_a_busy_server_is_asked_again(fake, monkeypatch, after):
    slept = []
    monkeypatch.setattr("headway.serving.client.time.sleep", slept.append)
    answers = iter([(503, {"Retry-After": after}, {"error": "busy"}), {"translatedText": ["A"]}])
    translator = ServerTranslator(fake(**{"/translate": lambda _: next(answers)}).url)
    assert translator.translate(["a"]) == ["A"]
    assert len(slept) == 1
    assert 0 <= slept[0] <= 60


def test_a_refusal_is_told(fake):
    server = fake(**{"/translate": (403, {}, {"error": "a key is needed"})})
    with pytest.raises(UserError, match="403, a key is needed"):
        ServerTranslator(server.url).translate(["a"])


def test_a_key_that_is_not_utf8(fake, monkeypatch):
    translator = ServerTranslator(fake(**{"/translate": upper}).url)
    monkeypatch.setenv("HEADWAY_API_KEY", "key\udcff")
    with pytest.raises(UserError, match=r"\$HEADWAY_API_KEY: is not UTF-8"):
        translator.translate(["a"])


@pytest.mark.parametrize("url", ["http://a b", "http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://["])
def test_an_address_that_is_none(url):
    with pytest.raises(UserError, match="is it a server"):
        ServerTranslator(url)


def test_no_http_at_the_address():
    def greet(server):
        with server.accept()[0] as connection:
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=greet, args=(server,), daemon=True).start()
        with pytest.raises(UserError, match="is it a server"):
            ServerTranslator(f"http://127.0.0.1:{server.getsockname()[1]}")
