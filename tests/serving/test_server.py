"""Connections, and the options of `headway serve`."""

import asyncio
import gc
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from headway.cli.serve import LOOPBACK, MOST_NAMED, _is_loopback, _loaded, _read_keys
from headway.errors import UserError
from headway.serving.guard import Metrics
from headway.serving.server import (
    SLOWEST,
    SPARE_FILES,
    STALL,
    Connections,
    MeteredTransport,
    PromptProtocol,
    bind,
    collect_rarely,
    parse_proxies,
)


def test_many_language_pairs_take_one_line():
    pairs = [(str(number), "en") for number in range(MOST_NAMED)]
    assert _loaded(pairs)[:2] == ["0 -> en is loaded", "1 -> en is loaded"]
    assert len(_loaded(pairs)) == MOST_NAMED
    assert _loaded([*pairs, ("de", "en")]) == [f"{MOST_NAMED + 1} language pairs are loaded"]


@pytest.mark.parametrize(
    ("moments", "stalls"),
    [
        ([(0, 0), (1_000_000, 0), (0, 0)], [False, False, True]),
        ([(1_000_000, 0), (0, SLOWEST * STALL - 1)], [False, True]),
        ([(1_000_000, 0), (0, SLOWEST * STALL), (0, 0)], [False, False, True]),
        ([(1_000_000, 200_000), (0, 200_000), (0, 600_000), (0, 0)], [False] * 4),
        ([(5, 0), (1_000_000, 5), (0, 0)], [False, False, True]),
        ([(5, 0), (1_000_000, 4)], [False, True]),
        ([(500_000, 0), (800_000, 500_000), (0, 20_000)], [False, False, False]),
        ([(0, 0)] * 3, [False] * 3),
    ],
)
def test_a_client_may_read_slowly_but_not_stop(moments, stalls):
    """moments: bytes that are written, then those that the client takes, before each look."""
    waiting = [0]
    fake = SimpleNamespace(write=lambda data: None, get_write_buffer_size=lambda: waiting[0])
    transport, found = MeteredTransport(fake), []
    for written, taken in moments:
        transport.write(b"x" * written)
        waiting[0] += written - taken
        found.append(transport.has_stalled())
    assert found == stalls


def test_an_address_has_its_share_of_the_connections(monkeypatch):
    monkeypatch.setattr("headway.serving.server._most_files", lambda: SPARE_FILES + 12)
    metrics = Metrics(lambda: 0)
    connections = Connections(metrics, parse_proxies("10.0.0.0/8, 192.168.1.9"))
    assert [connections.enter("1.1.1.1") for _ in range(4)] == [True, True, True, False]
    assert [connections.enter("::ffff:1.1.1.1"), connections.enter("1.1.1.2")] == [False, True]
    connections.leave("1.1.1.1")
    assert connections.enter("1.1.1.1")
    assert [connections.enter("::ffff:10.1.2.3") for _ in range(6)] == [True] * 6
    assert [connections.enter("1.1.1.4"), connections.enter("1.1.1.4")] == [True, False], "a last place for others"
    assert [connections.enter("10.1.2.3") for _ in range(2)] == [True, False]
    page = metrics.page().decode()
    assert 'reason="too many of an address"} 3.0' in page
    assert 'reason="too many connections"} 1.0' in page


def test_proxies_are_networks():
    assert [*map(str, parse_proxies("10.0.0.1, 172.28.0.0/24"))] == [
        *("10.0.0.1/32", "::ffff:a00:1/128", "172.28.0.0/24", "::ffff:ac1c:0/120")
    ]
    assert [*map(str, parse_proxies("*"))][:2] == ["0.0.0.0/0", "::/0"]
    assert parse_proxies("") == []
    for wrong in ("caddy", "10.0.0.0/33", "10.0.0.1;10.0.0.2"):
        with pytest.raises(UserError, match="must be an address"):
            parse_proxies(wrong)


def test_the_protocol_answers_and_gives_connections_back(monkeypatch):
    """On real sockets; what is no HTTP is refused in JSON, and counted."""
    metrics = Metrics(lambda: 0)
    monkeypatch.setattr(PromptProtocol, "counted", Connections(metrics, []), raising=False)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def ask(port, request):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def running():
        config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None)
        config.load()
        loop, state = asyncio.get_running_loop(), ServerState()
        server = await loop.create_server(lambda: PromptProtocol(config, state, {}), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        answers = [await ask(port, head), await ask(port, b"\x16\x03\x01 hello\r\n\r\n")]
        await asyncio.sleep(0.05)
        server.close()
        return answers

    good, wrong = asyncio.run(running())
    assert good.endswith(b"ok")
    assert wrong.startswith(b"HTTP/1.1 400")
    assert wrong.endswith(b'{"error":"this is no HTTP request"}')
    assert PromptProtocol.counted._open.taken == 0
    assert 'headway_requests_total{route="other",status="400"} 1.0' in metrics.page().decode()


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ("one\ntwo\n", {"one": None, "two": None}),
        ("\ufeff# of Alice\n  one \r\n\n#two\n", {"one": None}),
        ("a#b", {"a#b": None}),
        ("one 120/hour, 9\ntwo 0\n", {"one": ((3600, 120), (60, 9)), "two": ()}),
    ],
)
def test_keys_are_lines(tmp_path, content, keys):
    (tmp_path / "keys").write_text(content, encoding="utf-8", newline="")
    assert _read_keys(tmp_path / "keys") == keys


def test_a_key_with_white_space_is_refused_without_being_told(tmp_path):
    (tmp_path / "keys").write_text("# two keys\none\nmy long secret\n")
    with pytest.raises(UserError, match=r"keys:3: only limits may follow a key") as refused:
        _read_keys(tmp_path / "keys")
    assert "secret" not in str(refused.value)
    (tmp_path / "keys").write_text("# none\n")
    with pytest.raises(UserError, match="holds no key"):
        _read_keys(tmp_path / "keys")


def test_what_is_loopback():
    for host in ("127.0.0.1", "127.0.0.2", "::1", "localhost", "LOCALHOST"):
        assert _is_loopback(host), host
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org"):
        assert not _is_loopback(host), host
    assert set(LOOPBACK) == {"localhost", "127.0.0.1", "[::1]"}


def test_a_large_heap_is_left_out_of_collections():
    thresholds, heap = gc.get_threshold(), [[number] for number in range(100_000)]
    try:
        collect_rarely()
        assert gc.get_freeze_count() >= len(heap)
        assert all(now > then for now, then in zip(gc.get_threshold(), thresholds, strict=True))
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def test_a_host_that_can_be_no_name_is_told():
    with pytest.raises(UserError, match=r"label too long.*; choose another --host or --port"):
        bind("x" * 64, 0)


def test_a_key_stands_on_one_line(tmp_path):
    """Else the later line would lift the limits of the earlier one; the message doesn't quote the key."""
    (tmp_path / "keys").write_text("alice 2/minute\n\nalice\n")
    with pytest.raises(UserError, match=r"keys:3: this key stands on an earlier line") as refusal:
        _read_keys(tmp_path / "keys")
    assert "alice" not in str(refusal.value)
