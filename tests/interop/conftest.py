"""No export or import opens a connection, and exports check themselves quickly."""

import socket

import pytest


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Neither a test nor what it calls, whatever the package; HF_HUB_OFFLINE is not set, as users have it."""

    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch):
    """Every export checks itself; here with few and short sentences, the tests have more and longer ones."""
    monkeypatch.setattr("headway.decoding.faithful.LENGTHS", (1, 257))
    monkeypatch.setattr("headway.decoding.faithful.LONGEST_TRANSLATION", 3)
