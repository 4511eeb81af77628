"""Connections, and the options of `headway serve`."""

from types import SimpleNamespace

import pytest

from headway.cli.serve import LOOPBACK, _is_loopback, _read_keys
from headway.errors import UserError
from headway.serving.guard import Metrics
from headway.serving.server import SLOWEST, SPARE_FILES, STALL, Connections, MeteredTransport


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
    connections = Connections(metrics, "10.0.0.0/8, 192.168.1.9")
    assert [connections.enter("1.1.1.1") for _ in range(4)] == [True, True, True, False]
    assert [connections.enter("::ffff:1.1.1.1"), connections.enter("1.1.1.2")] == [False, True]
    connections.leave("1.1.1.1")
    assert connections.enter("1.1.1.1")
    assert [connections.enter("10.1.2.3") for _ in range(9)] == [True] * 8 + [False]
    page = metrics.page().decode()
    assert 'reason="too many of an address"} 2.0' in page
    assert 'reason="too many connections"} 1.0' in page


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
