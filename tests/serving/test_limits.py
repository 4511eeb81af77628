"""Who may come, how often, how many at once, for how long; and what is noted of it."""

import asyncio
import errno
import json
import logging
import os
import random
import threading
import time

import pytest
from benchmarks.load import measure
from starlette.exceptions import HTTPException

from headway.errors import UserError
from headway.serving import service as service_module
from headway.serving.admission import BODIES_OF_A_CLIENT, Rates, parse_limits
from headway.serving.logs import JsonLines, LogWriter
from headway.serving.looking_inside import MOST_CALLS, MOST_OF_A_CLIENT, SideThread
from headway.serving.pairs import Pairs
from headway.serving.service import LatestCache
from tests.serving.conftest import CopyingTranslator, at, until

GOOD = {"q": "Ein Hund.", "source": "de", "target": "en"}
KEYS = ("secret-one", "Geheim-zwei")


@pytest.mark.parametrize("path", ["/translate", "/detect", "/inspect", "/align"])
def test_keys_guard_what_works(serve, path):
    server = serve(api_keys=dict.fromkeys(KEYS))
    for wrong in (None, "", "Secret-one", "secret-on", "secret-one ", "secret-onee", "secret-one\x00", "geheim-zwei"):
        answer = server.post(path, json={**GOOD, "api_key": wrong})
        assert (answer.status_code, set(answer.json())) == (403, {"error"})
    good = {**GOOD, "translation": "A dog."}
    for key in KEYS:
        assert server.post(path, json={**good, "api_key": key}).status_code == 200
        assert server.post(path, json=good, headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert server.post(f"http://localhost/{path}", json={**GOOD, "api_key": "wrong"}).status_code == 404


def test_a_key_in_the_head(serve):
    server = serve(api_keys=dict.fromkeys(KEYS))
    for given, status in (
        ("Bearer secret-one", 200),
        ("bearer  secret-one", 200),
        ("secret-one", 403),
        ("Basic secret-one", 403),
        ("Bearer", 403),
    ):
        assert server.post("/detect", json=GOOD, headers={"authorization": given}).status_code == status, given
    both = {"json": {**GOOD, "api_key": "wrong"}, "headers": {"authorization": "Bearer secret-one"}}
    assert server.post("/detect", **both).status_code == 200


def test_a_head_that_is_too_large(serve):
    server = serve()
    for path in ("/translate", "/health"):
        answer = server.post(path, json=GOOD, headers={"x": "a" * 32_768})
        assert (answer.status_code, set(answer.json())) == (431, {"error"})
    assert server.post("/translate", json=GOOD, headers={"x": "a" * 32_000}).status_code == 200


def test_keys_come_before_what_is_asked(serve):
    server = serve(api_keys=dict.fromkeys(KEYS))
    for body in (b"{", b"[]", b'{"q": 1}', b'{"q": 1, "api_key": "wrong"}', b'{"q": 1, "api_key": ["secret-one"]}'):
        answer = server.post("/detect", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 403, body
    assert server.post("/detect", json={"q": 1, "api_key": KEYS[0]}).status_code == 400


def test_keys_guard_the_metrics_and_nothing_that_is_asked_by_machines(serve):
    server = serve(api_keys=dict.fromkeys(KEYS))
    assert server.get("/metrics").status_code == 403
    assert server.get("/metrics", headers={"authorization": "Bearer secret-one"}).status_code == 200
    for path in ("/health", "/ready", "/languages", "/", "/frontend/settings"):
        assert server.get(path).status_code == 200


def test_a_rate_for_each_key(serve):
    server = serve(api_keys=dict.fromkeys(KEYS), rate_limit=((60, 2),))
    statuses = [server.post("/detect", json={"q": "a", "api_key": KEYS[0]}).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert server.post("/detect", json={"q": "a", "api_key": KEYS[1]}).status_code == 200
    statuses = [server.post("/detect", json={"q": "a", "api_key": "guess"}).status_code for _ in range(3)]
    assert statuses == [403, 403, 429]
    refused = server.post("/detect", json={"q": "a", "api_key": KEYS[0]})
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    assert set(refused.json()) == {"error"}


def test_what_can_not_be_read_counts_too(serve):
    server = serve(rate_limit=((60, 2),))
    bodies = [{"json": {"q": 1}}, {"content": b"{"}, {"json": {"q": "a"}}]
    assert [server.post("/detect", **body).status_code for body in bodies] == [400, 400, 429]


def test_refusals_in_quick_succession_are_slowed_down(serve, monkeypatch):
    monkeypatch.setattr("headway.serving.admission.Rates", lambda: Rates(lambda: 0.5))
    monkeypatch.setattr("headway.serving.admission.REFUSALS_A_SECOND", 2)
    server = serve(rate_limit=((60, 1),))

    def seconds(number: int) -> float:
        began = time.perf_counter()
        server.post("/detect", json={"q": "a"}, **at(number))
        return time.perf_counter() - began

    assert server.post("/detect", json={"q": "a"}, **at(1)).status_code == 200
    assert max(seconds(1), seconds(1)) < 0.5 <= min(seconds(1), seconds(1))
    assert server.post("/detect", json={"q": "a"}, **at(2)).status_code == 200
    assert seconds(2) < 0.5, "another client's refusals are its own"


MINUTELY = ((60, 10),)


def test_after_its_wait_a_client_may_spend_and_not_before():
    """Whatever was spent when, and what it wants to spend."""
    chooser = random.Random(2)
    for _ in range(300):
        now = [chooser.uniform(0, 500)]
        rates, spent = Rates(lambda now=now: now[0]), []
        for _ in range(30):
            now[0] += chooser.expovariate(0.2)
            units = chooser.randint(1, 10)
            wait = rates.wait("a", units, MINUTELY)
            if wait:
                assert wait <= 120
                now[0] += wait - 0.01
                assert 0 < rates.wait("a", units, MINUTELY) <= 0.02
                now[0] += 0.02
                assert rates.wait("a", units, MINUTELY) == 0
            spent.append((now[0], units))
        for minute in range(12):
            assert sum(units for when, units in spent if when // 60 == minute) <= 10


def test_every_period_counts():
    now = [0.0]
    rates, limits = Rates(lambda: now[0]), ((60, 2), (3600, 3))
    assert [rates.wait("a", 1, limits) for _ in range(2)] == [0, 0]
    assert rates.wait("b", 2, limits) == 0
    now[0] = 120.0
    assert rates.wait("a", 1, limits) == 0
    assert 3480 <= rates.wait("a", 1, limits) <= 7200
    assert rates.wait("a", 1, ()) == 0


def test_rates_forget_who_is_gone(monkeypatch):
    now = [0.0]
    rates = Rates(lambda: now[0])
    for number in range(1000):
        now[0] += 1
        assert rates.wait(f"address {number}", 1, MINUTELY) == 0
        assert len(rates) <= 121
    monkeypatch.setattr("headway.serving.admission.MOST_KNOWN", 10)
    assert {rates.wait(f"address {number}", 10, MINUTELY) for number in range(2000, 3000)} == {0}
    assert len(rates) <= 11
    assert rates.wait("address 2999", 1, MINUTELY) > 0


def test_limits_are_read_as_they_are_written():
    assert parse_limits("120") == parse_limits(" 120/minute") == ((60, 120),)
    assert parse_limits("120/minute, 5000/day,9/hour") == ((60, 120), (86_400, 5000), (3600, 9))
    assert parse_limits("0") == parse_limits("") == ()
    for wrong in ("-1", "x", "12/week", "1.5", "120;5000/day"):
        with pytest.raises(UserError, match="must be a number, or such as"):
            parse_limits(wrong)


def test_a_request_is_charged_by_its_work(serve):
    """A unit for 1,000 characters times hypotheses: 4 of the model's own beam."""
    server = serve(rate_limit=((60, 10),), cache_size=0)

    def ask(**fields):
        return server.post("/translate", json={**GOOD, **fields})

    assert ask(q="a" * 2000).status_code == 200  # 8 units
    assert ask(q="a" * 501).status_code == 429  # 3
    assert ask(q="a" * 300, beam_size=1).status_code == 200
    assert ask(q="a").status_code == 429
    dear = serve(rate_limit=((60, 10),)).post("/translate", json={**GOOD, "q": "a" * 1000, "alternatives": 15})
    assert (dear.status_code, "16 units, the limit is 10 a minute" in dear.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "fields", "units"),
    [
        ("/translate", {"q": "a"}, 1),
        ("/translate", {"q": "\n".join("a" * 100), "beam_size": 10}, 22),  # 199 characters and 99 ends of lines
        ("/translate", {"q": "Ab. " * 250, "beam_size": 10}, 60),  # 1,000 characters and 250 ends of sentences
        ("/translate", {"q": "3.14,a.b" * 125, "beam_size": 10}, 10),
        ("/translate", {"q": "<br>a" * 100, "format": "html", "beam_size": 10}, 25),
        ("/translate", {"q": "a" * 1000, "glossary": {"b": "c"}}, 17),  # the places of a beam for 16 terms
        ("/detect", {"q": ["a" * 5000] * 5}, 3),
        ("/align", {"q": ["a"] * 3, "translation": ["a"] * 3}, 3),
        ("/align", {"q": "a" * 150, "translation": "a" * 150}, 2),
        ("/inspect", {"q": "a", "analyses": ["erasure"], "order": True}, 6),
        ("/inspect", {"q": "a", "analyses": ["contributions", {"kind": "faithfulness"}]}, 6),
    ],
)
def test_what_takes_more_counts_as_more(serve, path, fields, units):
    server = serve(rate_limit=((60, 100),), cache_size=0)
    direction = {"source": "de", "target": "en"} if path != "/detect" else {}
    answer = server.post(path, json={**direction, **fields})
    assert answer.status_code == 200, answer.text
    assert measure(server.service.metrics.page().decode(), "headway_units_total") == units


def test_a_key_has_limits_of_its_own(serve):
    server = serve(api_keys={"own": ((60, 1),), "free": (), "usual": None}, rate_limit=((60, 2),))

    def ask(key):
        return [server.post("/detect", json={"q": "a", "api_key": key}).status_code for _ in range(4)]

    assert ask("own") == [200, 429, 429, 429]
    assert ask("free") == [200] * 4
    assert ask("usual") == [200, 200, 429, 429]


def test_a_rate_for_each_address(serve):
    server = serve(rate_limit=((60, 1),))

    def ask(address):
        return server.post("/detect", json={"q": "a", "api_key": "any"}, headers={"x-address": address}).status_code

    assert [ask("10.0.0.1"), ask("10.0.0.1"), ask("10.0.0.2")] == [200, 429, 200]
    assert [ask("2001:db8::1"), ask("2001:db8::2"), ask("2001:db8:0:1::1")] == [200, 429, 200]
    assert [ask("::ffff:10.0.0.3"), ask("10.0.0.3"), ask("::ffff:10.0.0.4")] == [200, 429, 200]


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
    assert server.get("/languages", headers={"host": host}).status_code == status
    assert server.post("/detect", json={"q": "a"}, headers={"host": host}).status_code == status


def test_a_name_that_is_allowed_may_have_a_port(serve):
    server = serve(allowed_hosts=("Translate.example.org:8443", "[::1]:8080"))
    for host, status in (("translate.example.org", 200), ("[::1]:5000", 200), ("example.org:8443", 400)):
        assert server.get("/languages", headers={"host": host}).status_code == status


def test_probes_name_no_host(serve):
    server = serve(allowed_hosts=("translate.example.org",))
    for path, status in (("/health", 200), ("/ready", 200), ("/languages", 400), ("/", 400)):
        assert server.get(path, headers={"host": "127.0.0.1:5000"}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://192.168.1.5:5000", 200),
        ("http://192.168.1.5", 403),
        ("https://evil.example", 403),
        ("http://192.168.1.5:5000.evil.example", 403),
        ("null", 403),
        ("http://[", 403),
    ],
)
def test_pages_of_others_are_known_by_their_origin_too(serve, origin, status):
    """Without TLS browsers don't say whether a request is cross-site."""
    headers = {"host": "192.168.1.5:5000", "origin": origin}
    assert serve().post("/translate", data=GOOD, headers=headers).status_code == status


def test_a_preflight_is_watched_as_others_are(serve):
    server = serve(allowed_origins=("https://friend.example",), max_requests=0)
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,x-request-id"}
    for origin, status in (("https://friend.example", 200), ("https://evil.example", 400)):
        [answer] = server.ask(("OPTIONS", "/translate", {"headers": {"origin": origin, **asked}}))
        assert (answer.status_code, "x-request-id" in answer.headers) == (status, True)
    assert 'headway_requests_total{route="/translate",status="400"} 1.0' in server.service.metrics.page().decode()
    busy = server.post("/translate", json=GOOD, headers={"origin": "https://friend.example"})
    assert busy.status_code == 503
    assert busy.headers["access-control-allow-origin"] == "https://friend.example"
    assert "Retry-After" in busy.headers["access-control-expose-headers"]


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


def while_working(server, translator, work, requests=1):
    """Does `work(client)` while so many requests wait for the model or are refused; then they go on. Statuses."""

    async def running():
        translator.go_on.clear()
        async with server.client() as client:
            asked = [
                asyncio.create_task(client.post("/translate", json={**GOOD, "q": f"a{n}"}, **at(n)))
                for n in range(requests)
            ]
            try:
                await until(lambda: gauge(server) == requests or any(one.done() for one in asked))
                await until(lambda: translator.calls)
                await work(client)
            finally:
                translator.go_on.set()
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    return asyncio.run(running())


def gauge(server, name="headway_in_flight_requests"):
    return measure(server.service.metrics.page().decode(), name)


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


def test_an_accepted_request_is_not_refused_late(serve):
    """Where tags find no place there is a second pass, however full the queue is by then."""
    translator = CopyingTranslator()
    translator.aligns = False
    server, html = serve(translator, cache_size=0), "Ein <b>Hund</b> läuft"

    async def running():
        translator.go_on.clear()
        async with server.client() as client:
            first = asyncio.create_task(client.post("/translate", json={**GOOD, "q": html, "format": "html"}))
            await until(lambda: translator.calls)
            server.service.batcher._queue = 0
            translator.go_on.set()
            return await first, await client.post("/translate", json=GOOD)

    answer, other = asyncio.run(running())
    assert other.status_code == 503
    assert (answer.status_code, answer.json()["translatedText"]) == (200, html)
    assert len(translator.calls) > 1


def test_a_request_is_taken_whole_or_not_at_all(serve):
    german, korean = CopyingTranslator("de", "en"), CopyingTranslator("ko", "en")
    server = serve(german, korean, queue=8, batch_size=1, cache_size=0)

    async def running():
        for one in (german, korean):
            one.go_on.clear()
        async with server.client() as client:
            asked = [
                asyncio.create_task(client.post("/translate", json={**GOOD, "q": f"a{number}"}, **at(number)))
                for number in range(20)
            ]
            await until(lambda: server.service.batcher.is_full)
            several = {**GOOD, "source": "auto", "q": ["Eins", "Zwei", "Drei", "개가"]}
            assert (await client.post("/translate", json=several)).status_code == 503
            waiting = server.service.batcher.waiting
            for one in (german, korean):
                one.go_on.set()
            await asyncio.gather(*asked)
            return waiting

    assert asyncio.run(running()) == 8
    assert korean.calls == []
    assert ["Eins"] not in german.calls


def test_beyond_the_queue_too(serve):
    translator = CopyingTranslator()
    server = serve(translator, queue=2, batch_size=1)

    async def work(client):
        await until(lambda: server.service.batcher.is_full)
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
    assert server.service.batcher.waiting == 0


def test_a_body_that_does_not_come_is_not_waited_for(serve):
    server = serve(body_timeout=0.1)

    async def chunks():
        yield b'{"q": "a", '
        await asyncio.sleep(1)
        yield b'"source": "de", "target": "en"}'

    assert server.post("/translate", content=chunks(), headers={"content-type": "application/json"}).status_code == 408


def test_a_slow_body_is_no_slow_answer(serve):
    server = serve(timeout=0.1, body_timeout=0.3)

    async def chunks():
        yield b'{"q": "a", '
        await asyncio.sleep(1)

    assert server.post("/translate", content=chunks(), headers={"content-type": "application/json"}).status_code == 408


def test_who_is_cut_off_at_the_end_is_told(serve):
    """uvicorn cancels what isn't done when the time to end is over."""
    translator = CopyingTranslator()
    server = serve(translator)

    async def running():
        translator.go_on.clear()
        async with server.client() as client:
            asking = asyncio.create_task(client.post("/translate", json=GOOD))
            await until(lambda: translator.calls)
            asking.cancel()
            return await asking

    answer = asyncio.run(running())
    translator.go_on.set()
    assert (answer.status_code, set(answer.json())) == (503, {"error"})
    assert 'status="503"' in server.service.metrics.page().decode()
    assert gauge(server) == 0


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


class PanicException(BaseException):
    """As that of pyo3, which is no Exception."""


@pytest.mark.parametrize("kind", [PanicException, RuntimeError])
def test_a_defect_of_any_kind_is_answered_and_counted(serve, caplog, kind):
    def fail(text):
        raise kind("Geheimnis")

    server = serve(CopyingTranslator(change=fail))
    with caplog.at_level(logging.INFO):
        answer = server.post("/translate", json=GOOD)
    assert (answer.status_code, set(answer.json())) == (500, {"error"})
    log = "\n".join(JsonLines().format(record) for record in caplog.records)
    assert log.count(kind.__name__) == 1
    assert "Geheimnis" not in log
    assert 'headway_requests_total{route="/translate",status="500"} 1.0' in server.service.metrics.page().decode()


def test_a_shared_call_that_fails_is_noted(serve, caplog):
    def fail(text):
        if text == "Geheimnis":
            raise RuntimeError(text)
        return text

    server = serve(CopyingTranslator(change=fail))
    with caplog.at_level(logging.INFO):
        answers = server.ask(*(("POST", "/translate", {"json": {**GOOD, "q": q}}) for q in ("Geheimnis", "Hund")))
    assert [one.status_code for one in answers] == [500, 200]
    assert "headway_failed_calls_total 1.0" in server.service.metrics.page().decode()
    [line] = [JsonLines().format(one) for one in caplog.records if one.name == "headway.service"]
    assert "RuntimeError" in line
    assert "Geheimnis" not in line


@pytest.mark.parametrize(("engine", "sentences"), [("torch", 4), ("ctranslate2", 1)])
def test_warming_up_is_not_counted(serve, engine, sentences):
    translator = CopyingTranslator("en", tags=("de", "ko"))
    translator.engine = engine
    server = serve(translator, batch_size=4)
    server.service.warm_up()
    assert {len(call) for call in translator.calls} == {sentences}
    assert all(text.startswith(">>") for call in translator.calls for text in call)
    page = server.service.metrics.page().decode()
    assert "headway_batch_sentences_sum 0.0" in page
    assert "headway_tokens_total{" not in page


def test_log_and_metrics_hold_no_text_key_or_address(serve, caplog):
    server = serve(api_keys=dict.fromkeys(KEYS))
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
    assert 'headway_tokens_total{side="source"} 2.0' in page
    assert gauge(server, "headway_queue_sentences") == 0


def test_the_cache_is_bounded_and_knows_options(serve):
    translator = CopyingTranslator()
    server = serve(translator, cache_size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        server.translate(text)
    assert translator.calls == [["a"], ["b"], ["c"], ["b"]]
    server.translate("a", beam_size=1)
    assert len(translator.calls) == 5


def test_the_cache_keeps_nothing_with_a_glossary(serve):
    """Which may be large, and another in each request."""
    translator = CopyingTranslator()
    server = serve(translator)
    for _ in range(2):
        server.translate("a", glossary={"a": "b"})
    assert translator.calls == [["a"], ["a"]]
    assert len(server.service._cache) == 0


def test_the_cache_is_bounded_in_characters():
    cache = LatestCache(1000, characters=100)
    for number in range(50):
        cache.put(number, "value", 30)
    cache.put(49, "value", 40)
    assert len(cache) == 3
    cache.put("large", "value", 101)
    assert (len(cache), cache.get("large")) == (0, None)
    cache.put("small", "value", 100)
    assert cache.get("small") == "value"


def test_ready_until_it_ends_or_hangs(serve, monkeypatch):
    server = serve()
    assert server.get("/ready").status_code == 200
    server.service.draining = True
    assert server.get("/ready").status_code == 503
    assert server.get("/health").status_code == 200
    server.service.draining = False
    monkeypatch.setattr("headway.serving.service.STUCK_AFTER", 0.0)
    assert server.get("/ready").status_code == 503


def test_a_call_has_its_place_until_it_ends_though_its_client_is_gone():
    begun, ended = threading.Event(), threading.Event()

    def work():
        begun.set()
        return ended.wait(30)

    async def ask():
        side = SideThread("test")

        async def is_refused(client, status):
            with pytest.raises(HTTPException) as refused:
                await side.call(client, work)
            assert refused.value.status_code == status

        calls = [asyncio.create_task(side.call(f"client {number}", work)) for number in range(MOST_CALLS)]
        await asyncio.to_thread(begun.wait)
        await is_refused("another", 503)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        clients = ["one"] * MOST_OF_A_CLIENT + [
            f"client {number}" for number in range(MOST_CALLS - 2 - MOST_OF_A_CLIENT)
        ]
        waiting = [asyncio.create_task(side.call(client, work)) for client in clients]
        await asyncio.sleep(0)
        await is_refused("one", 429)
        waiting.append(asyncio.create_task(side.call("last", work)))
        await asyncio.sleep(0)
        await is_refused("another", 503)
        ended.set()
        assert await asyncio.gather(*waiting) == [True] * len(waiting)
        assert await side.call("another", int) == 0

    asyncio.run(ask())


def test_inspections_are_few_at_a_time(serve):

    class Slow(CopyingTranslator):
        def inspect(self, text, **options):
            self.calls.append([text])
            self.go_on.wait(30)
            return super().inspect(text, **options)

    translator = Slow()
    server = serve(translator, timeout=0.3)
    translator.go_on.clear()
    requests = [("POST", "/inspect", {"json": GOOD, **at(number)}) for number in range(MOST_CALLS + 1)]
    late = server.ask(*requests)
    assert {one.status_code for one in late} == {503}
    assert len(translator.calls) == 1
    own = server.ask(*[("POST", "/inspect", {"json": GOOD, **at(MOST_CALLS + 1)})] * (MOST_OF_A_CLIENT + 1))
    assert sorted(one.status_code for one in own) == [429] + [503] * MOST_OF_A_CLIENT
    aligned = {**GOOD, "translation": "A dog."}
    assert server.post("/align", json=aligned).status_code == 200, "which has a thread of its own"
    translator.go_on.set()
    server.service.inspecting.pool.submit(int).result()
    assert server.post("/inspect", json=GOOD).status_code == 200


def test_a_server_may_refuse_to_inspect(serve):
    server = serve(inspecting=False)
    assert server.post("/inspect", json=GOOD).status_code == 404
    assert "/inspect" not in server.get("/openapi.json").json()["paths"]
    assert server.post("/align", json={**GOOD, "translation": "A dog."}).status_code == 200


def test_a_client_has_no_more_than_its_share_of_the_places(serve):
    """Over it the client alone is refused, with another status than where the server is full."""
    translator = CopyingTranslator()
    server = serve(translator, max_requests=8)

    async def running():
        translator.go_on.clear()
        async with server.client() as client:
            asked = [
                asyncio.create_task(client.post("/translate", json={**GOOD, "q": f"a{n}"}, **at(1))) for n in range(6)
            ]
            await until(lambda: sum(one.done() for one in asked) == 4)
            other = asyncio.create_task(client.post("/translate", json=GOOD, **at(2)))
            await until(lambda: gauge(server) == 3)
            translator.go_on.set()
            return [answer.status_code for answer in await asyncio.gather(*asked, other)]

    *statuses, other = asyncio.run(running())
    assert sorted(statuses) == [200, 200, 429, 429, 429, 429]
    assert other == 200


@pytest.mark.parametrize(
    ("slow", "other"),
    [
        ([at(1)["headers"]], at(2)["headers"]),
        ([{"authorization": "Bearer secret-one"}], {"authorization": "Bearer Geheim-zwei"}),
        ([{"authorization": f"Bearer forged-{n}"} for n in range(3)], {"authorization": "Bearer Geheim-zwei"}),
    ],
    ids=["addresses", "keys behind one address", "forged keys, which count for their address"],
)
def test_a_body_that_is_under_way_holds_no_place(serve, slow, other):
    """Nor may one client send more than some at once; others are received meanwhile."""
    server = serve(max_requests=1, body_timeout=5.0, api_keys=dict.fromkeys(KEYS if "authorization" in other else ()))
    end = asyncio.Event()

    async def body():
        yield b'{"q": '
        await end.wait()
        yield b'"a", "source": "de", "target": "en"}'

    async def running():
        json_ = {"content-type": "application/json"}
        async with server.client() as client:
            sent = [
                asyncio.create_task(client.post("/detect", content=body(), headers={**json_, **slow[n % len(slow)]}))
                for n in range(BODIES_OF_A_CLIENT + 3)
            ]
            await until(lambda: sum(one.done() for one in sent) == 3)
            assert gauge(server) == 0
            answer = await client.post("/translate", json=GOOD, headers=other)
            end.set()
            return answer, await asyncio.gather(*sent)

    answer, answers = asyncio.run(running())
    assert answer.status_code == 200
    assert sum(one.status_code == 429 for one in answers) >= 3
    assert {one.headers.get("connection") for one in answers if "of your requests" in one.text} == {"close"}


def test_a_request_of_too_many_sentences_says_how_many_may_be(serve):
    server = serve(max_sentences=30)
    assert server.post("/translate", json={**GOOD, "q": ["a\n" * 10] * 3}).status_code == 200
    for fields, most in (
        ({"q": ["a\n" * 10] * 3 + ["b"]}, 30),
        ({"q": "a\n" * 11, "alternatives": 2}, 10),
        ({"q": "<b>a</b> " * 31, "format": "html"}, 30),
    ):
        answer = server.post("/translate", json={**GOOD, **fields})
        assert answer.status_code == 400
        assert f"more than {most} sentences" in answer.json()["error"]


def test_a_text_of_too_many_lines_is_not_parsed(serve, monkeypatch):
    def parsed(*_):
        raise AssertionError("it takes long")

    monkeypatch.setattr(service_module, "parse_document", parsed)
    answer = serve(max_sentences=30).post("/translate", json={**GOOD, "q": "a\n" * 31})
    assert answer.status_code == 400
    assert "more than 30 sentences" in answer.json()["error"]


def test_long_texts_of_a_client_are_parsed_one_after_the_other(serve, monkeypatch):
    """Another's are parsed between them."""
    server, order = serve(), []
    parse = service_module.parse_document

    def slow(text, *options, **others):
        order.append(text[0])
        time.sleep(0.02)
        return parse(text, *options, **others)

    monkeypatch.setattr("headway.serving.service.parse_document", slow)
    requests = [("POST", "/translate", {"json": {**GOOD, "q": "a " * 400}, **at(1)})] * 8
    requests.append(("POST", "/translate", {"json": {**GOOD, "q": "b " * 400}, **at(2)}))
    assert {one.status_code for one in server.ask(*requests)} == {200}
    assert order.index("b") <= 2


def test_a_wrong_list_is_refused_at_its_first_item(serve):
    """Half a million wrong items cost no more than one."""
    server, started = serve(), time.process_time()
    answer = server.post("/translate", json={**GOOD, "q": [1] * 490_000})
    assert (answer.status_code, answer.json()["error"].startswith("q: item 1")) == (400, True)
    assert time.process_time() - started < 0.5


def test_a_form_of_broken_escapes_is_refused_at_once(serve):
    server, started = serve(), time.process_time()
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert server.post("/translate", content=b"%" * 1_000_000, headers=form).status_code == 400
    assert time.process_time() - started < 0.1
    escaped = b"q=100%25&source=de&target=en"
    assert server.post("/translate", content=escaped, headers=form).json() == {"translatedText": "100%"}


def test_with_keys_no_cache_is_shared(serve):
    translator = CopyingTranslator()
    server = serve(translator, api_keys=dict.fromkeys(KEYS))
    for key in (KEYS[0], KEYS[0], KEYS[1]):
        server.translate("a", api_key=key)
    assert translator.calls == [["a"], ["a"]]


def test_an_ending_server_closes_its_connections(serve):
    server = serve()
    assert "connection" not in server.get("/health").headers
    server.service.draining = True
    assert server.get("/health").headers["connection"] == "close"


def test_a_log_that_nobody_reads_stops_nothing(monkeypatch):
    """Lines that have no place, and those of a full disk, are counted."""
    dropped, go_on = [], threading.Event()
    monkeypatch.setattr("headway.serving.logs.MOST_LINES", 5)

    def write(_, data):
        go_on.wait(30)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("headway.serving.logs.os.write", write)
    writer = LogWriter(lambda: dropped.append(1))
    record = logging.LogRecord("a", logging.INFO, "", 1, "text", (), None)
    started = time.monotonic()
    for _ in range(20):
        writer.emit(record)
    assert time.monotonic() - started < 10, "emit waited for the disk"
    assert 14 <= len(dropped) <= 15
    go_on.set()
    writer.stop()
    assert len(dropped) >= 19


def test_a_path_that_is_not_utf8_is_logged(monkeypatch):
    written = []
    monkeypatch.setattr("headway.serving.logs.os.write", lambda _, data: written.append(data) or len(data))
    writer = LogWriter(lambda: None)
    writer.emit(logging.LogRecord("a", logging.INFO, "", 1, "ä %s", (os.fsdecode(b"\xff"),), None))
    writer.stop()
    assert json.loads(written[0])["message"] == "ä \udcff"


def test_two_models_of_one_direction_are_refused():
    with pytest.raises(UserError, match="two models translate de into en"):
        Pairs([CopyingTranslator(), CopyingTranslator()])
