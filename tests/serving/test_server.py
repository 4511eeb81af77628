"""Connections, and the options of `headway serve`."""

import asyncio
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from headway.cli.serve import LOOPBACK, _is_loopback, _read_keys
from headway.errors import UserError
from headway.serving.server import KEEP_ALIVE, SLOWEST, PromptProtocol


@pytest.mark.parametrize(
    ("taken", "outcome"),
    [
        ([0], "aborted"),
        ([SLOWEST * KEEP_ALIVE - 1], "aborted"),
        ([SLOWEST * KEEP_ALIVE], "goes on"),
        ([200_000, 200_000], "goes on"),
        ([200_000, 0], "aborted"),
        ([200_000, 800_000], "closed"),
    ],
)
def test_a_client_may_read_slowly_but_not_stop(taken, outcome):
    """`taken`: bytes of a megabyte that it has read each time when the connection is looked at."""
    left, happened = [1_000_000], []

    async def reading():
        protocol = PromptProtocol(uvicorn.Config(lambda: None), ServerState(), {}, asyncio.get_running_loop())
        protocol.transport = SimpleNamespace(
            get_write_buffer_size=lambda: left[0],
            abort=lambda: happened.append("aborted"),
            close=lambda: happened.append("closed"),
            is_closing=lambda: bool(happened),
            resume_reading=lambda: None,
        )
        protocol.flow = SimpleNamespace(resume_reading=lambda: None)
        protocol.on_response_complete()
        for some in taken:
            left[0] -= some
            protocol.timeout_keep_alive_task.cancel()
            protocol.timeout_keep_alive_handler()
        if not happened:
            assert not protocol.timeout_keep_alive_task.cancelled()
            happened.append("goes on")

    asyncio.run(reading())
    assert happened == [outcome]


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ("one\ntwo\n", ("one", "two")),
        ("\ufeff# of Alice\n  one \r\n\n#two\n", ("one",)),
        ("a#b", ("a#b",)),
    ],
)
def test_keys_are_lines(tmp_path, content, keys):
    (tmp_path / "keys").write_text(content, encoding="utf-8", newline="")
    assert _read_keys(tmp_path / "keys") == keys


def test_a_key_with_white_space_is_refused_without_being_told(tmp_path):
    (tmp_path / "keys").write_text("# two keys\none\nmy long secret\n")
    with pytest.raises(UserError, match=r"keys:3: white space inside a key") as refused:
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
