"""Who may come, how often, how many at once, for how long; and what is noted of it."""

import asyncio
import json
import logging

import httpx
import pytest

from headway.errors import UserError
from headway.serving.guard import JsonLines
from headway.serving.pairs import Pairs
from tests.serving.conftest import CopyingTranslator

GOOD = {"q": "Ein Hund.", "source": "de", "target": "en"}
KEYS = ("secret-one", "Geheim-zwei")


@pytest.mark.parametrize("path", ["/translate", "/detect", "/inspect"])
def test_keys_guard_what_works(serve, path):
    server = serve(api_keys=KEYS)
    for wrong in (None, "", "Secret-one", "secret-on", "secret-one ", "secret-onee", "secret-one\x00", "geheim-zwei"):
        answer = server.post(path, json={**GOOD, "api_key": wrong})
        assert (answer.status_code, set(answer.json())) == (403, {"error"})
    for key in KEYS:
        assert server.post(path, json={**GOOD, "api_key": key}).status_code == 200
        assert server.post(path, json=GOOD, headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert server.post(f"http://localhost/{path}", json={**GOOD, "api_key": "wrong"}).status_code == 404


def test_keys_guard_the_metrics_and_nothing_that_is_asked_by_machines(serve):
    server = serve(api_keys=KEYS)
    assert server.get("/metrics").status_code == 403
    assert server.get("/metrics", headers={"authorization": "Bearer secret-one"}).status_code == 200
    for path in ("/health", "/ready", "/languages", "/", "/frontend/settings"):
        assert server.get(path).status_code == 200


def test_a_rate_for_each_key(serve):
    server = serve(api_keys=KEYS, rate_limit=2)
    statuses = [server.post("/detect", json={"q": "a", "api_key": KEYS[0]}).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert server.post("/detect", json={"q": "a", "api_key": KEYS[1]}).status_code == 200
    statuses = [server.post("/detect", json={"q": "a", "api_key": "guess"}).status_code for _ in range(3)]
    assert statuses == [403, 403, 429]
    refused = server.post("/detect", json={"q": "a", "api_key": KEYS[0]})
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert set(refused.json()) == {"error"}


def test_a_rate_for_each_address(serve):
    server = serve(rate_limit=1)

    def ask(address):
        async def asking():
            transport = httpx.ASGITransport(server.app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return (await client.post("/detect", json={"q": "a", "api_key": "any"})).status_code

        return asyncio.run(asking())

    assert [ask("10.0.0.1"), ask("10.0.0.1"), ask("10.0.0.2")] == [200, 429, 200]
    assert [ask("2001:db8::1"), ask("2001:db8::2"), ask("2001:db8:0:1::1")] == [200, 429, 200]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:5000", 200),
        ("127.0.0.1:5000", 200),
        ("[::1]:5000", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
        ("localhost:5000@evil.example", 400),
        ("", 400),
    ],
)
def test_only_names_that_are_ours(serve, host, status):
    server = serve(allowed_hosts=("localhost", "127.0.0.1", "[::1]"))
    assert server.get("/health", headers={"host": host}).status_code == status
    assert server.post("/detect", json={"q": "a"}, headers={"host": host}).status_code == status


def test_pages_of_others_may_not_ask(serve):
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    server = serve()
    assert server.post("/translate", data=GOOD, headers=foreign).status_code == 403
    assert server.post("/translate", json=GOOD, headers={"sec-fetch-site": "same-origin"}).status_code == 200
    assert "access-control-allow-origin" not in server.get("/languages", headers=foreign).headers
    opened = serve(allowed_origins=("https://friend.example",))
    assert opened.post("/translate", data=GOOD, headers=foreign).status_code == 403
    friend = {"origin": "https://friend.example", "sec-fetch-site": "cross-site"}
    answer = opened.post("/translate", data=GOOD, headers=friend)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://friend.example")


async def until(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never was so")


def while_working(server, translator, work, requests=1):
    """Does `work(client)` while so many requests wait for the model; then they go on. Their statuses."""

    async def running():
        translator.go_on.clear()
        async with server.client() as client:
            asked = [
                asyncio.create_task(client.post("/translate", json={**GOOD, "q": f"a{n}"})) for n in range(requests)
            ]
            try:
                await until(lambda: gauge(server) == requests)
                await until(lambda: translator.calls)
                await work(client)
            finally:
                translator.go_on.set()
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    return asyncio.run(running())


def gauge(server, name="headway_in_flight_requests"):
    lines = server.service.metrics.page().decode().splitlines()
    return float(next(line.split()[-1] for line in lines if line.startswith(f"{name} ")))


def test_beyond_its_places_a_request_is_refused_at_once(serve):
    translator = CopyingTranslator()
    server = serve(translator, max_requests=3)

    async def work(client):
        refused = await client.post("/translate", json=GOOD)
        assert (refused.status_code, int(refused.headers["retry-after"]) > 0) == (503, True)
        assert set(refused.json()) == {"error"}
        assert (await client.get("/health")).status_code == 200

    assert while_working(server, translator, work, requests=3) == [200, 200, 200]
    assert gauge(server) == 0
    assert server.translate("a") == {"translatedText": "a"}


def test_beyond_the_queue_too(serve):
    translator = CopyingTranslator()
    server = serve(translator, queue=2, batch_size=1)

    async def work(client):
        await until(lambda: server.service.is_full)
        refused = await client.post("/translate", json=GOOD)
        assert refused.status_code == 503

    statuses = while_working(server, translator, work, requests=8)
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) >= 3


def test_the_time_is_bounded(serve):
    translator = CopyingTranslator()
    server = serve(translator, timeout=0.2)

    async def work(client):
        late = await client.post("/translate", json=GOOD)
        assert (late.status_code, "too long" in late.json()["error"]) == (503, True)

    while_working(server, translator, work)
    assert gauge(server) == 0
    assert server.service._batcher.waiting == 0


def test_a_body_that_does_not_come_is_not_waited_for(serve):
    server = serve(body_timeout=0.1)

    async def chunks():
        yield b'{"q": "a", '
        await asyncio.sleep(1)
        yield b'"source": "de", "target": "en"}'

    assert server.post("/translate", content=chunks(), headers={"content-type": "application/json"}).status_code == 408


def test_a_client_that_goes_away_frees_its_place(serve):
    translator = CopyingTranslator()
    server = serve(translator, batch_size=1)

    async def work(client):
        gone = [asyncio.create_task(abandoned(server.app)) for _ in range(20)]
        await until(lambda: gauge(server) == 21)
        await until(lambda: gauge(server) == 1)
        await asyncio.gather(*gone)
        await until(lambda: gauge(server, "headway_queue_sentences") == 0)

    assert while_working(server, translator, work) == [200]
    assert 'status="499"' in server.service.metrics.page().decode()


async def abandoned(app):
    """A request whose connection ends before the answer."""
    messages = [{"type": "http.request", "body": json.dumps({**GOOD, "q": "gone"}).encode(), "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    async def send(message):
        raise AssertionError("there is nobody to answer")

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/translate", "headers": headers, "query_string": b""}
    await app({**scope, "client": ("127.0.0.1", 1), "root_path": "", "raw_path": b"/translate"}, receive, send)


def test_a_defect_is_told_without_the_text(serve, caplog):
    def fail(text):
        raise RuntimeError(f"can't do {text}")

    server = serve(CopyingTranslator(change=fail))
    with caplog.at_level(logging.INFO):
        answer = server.post("/translate", json={**GOOD, "q": "Geheimnis"})
    assert (answer.status_code, set(answer.json())) == (500, {"error"})
    log = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert "RuntimeError" in log
    assert "Geheimnis" not in log + answer.text
    assert answer.headers["x-request-id"] in log


def test_log_and_metrics_hold_no_text_key_or_address(serve, caplog):
    server = serve(api_keys=KEYS)
    with caplog.at_level(logging.INFO):
        server.post("/translate?q=Frage", json={**GOOD, "q": "Geheimnis", "api_key": KEYS[0]})
        server.get("/Pfad/Geheimnis", headers={"x-request-id": "mine-1"})
        server.post("/translate", json={**GOOD, "q": "Geheimnis", "api_key": "falsch"})
    lines = [json.loads(JsonLines().format(one)) for one in caplog.records if one.name == "headway.access"]
    assert [(line["route"], line["status"]) for line in lines] == [
        ("/translate", 200),
        ("other", 404),
        ("/translate", 403),
    ]
    assert lines[1]["request_id"] == "mine-1"
    everything = json.dumps(lines) + server.service.metrics.page().decode()
    for secret in ("Geheimnis", "Frage", "Pfad", KEYS[0], "falsch", "127.0.0.1"):
        assert secret not in everything


def test_a_strange_request_id_is_replaced(serve):
    given = serve().get("/health", headers={"x-request-id": 'a"b\tc'}).headers["x-request-id"]
    assert given.isalnum()


def test_what_is_counted(serve):
    server = serve()
    server.translate(["Eins", "Zwei", "Eins"])
    server.translate("Eins")
    page = server.service.metrics.page().decode()
    assert 'headway_requests_total{route="/translate",status="200"} 2.0' in page
    assert "headway_batch_sentences_sum 2.0" in page
    assert "headway_cache_hits_total 1.0" in page
    assert 'headway_tokens_total{side="source"} 8.0' in page
    assert gauge(server, "headway_queue_sentences") == 0


def test_the_cache_is_bounded_and_knows_options(serve):
    translator = CopyingTranslator()
    server = serve(translator, cache_size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        server.translate(text)
    assert translator.calls == [["a"], ["b"], ["c"], ["b"]]
    server.translate("a", beam_size=1)
    assert len(translator.calls) == 5


def test_ready_until_it_ends_or_hangs(serve, monkeypatch):
    server = serve()
    assert server.get("/ready").status_code == 200
    server.service.draining = True
    assert server.get("/ready").status_code == 503
    assert server.get("/health").status_code == 200
    server.service.draining = False
    monkeypatch.setattr("headway.serving.service.STUCK_AFTER", 0.0)
    assert server.get("/ready").status_code == 503


def test_inspections_are_few_at_a_time(serve, monkeypatch):
    server = serve()
    monkeypatch.setattr("headway.serving.service.MOST_INSPECTIONS", 0)
    assert server.post("/inspect", json=GOOD).status_code == 503


def test_two_models_of_one_direction_are_refused():
    with pytest.raises(UserError, match="two models translate de into en"):
        Pairs([CopyingTranslator(), CopyingTranslator()])
