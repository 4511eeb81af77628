"""Signals that ask a run to stop: remembered, or acted on at once where that is asked for."""

import os
import signal

import pytest

from headway.training.processes import Interrupted, StopRequests


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture
def heard():
    """What somebody else's handler of SIGTERM gets; it is put back after the test."""
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    yield got
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_request_is_remembered(number):
    before = signal.signal(number, signal.SIG_DFL)  # a shell's background or nohup may have it ignored
    try:
        stop = StopRequests()
        with stop.listening():
            assert stop() is None
            send(number)
            assert stop() == number
    finally:
        signal.signal(number, before)


def test_a_second_one_is_somebody_elses_and_so_are_all_afterwards(heard):
    stop = StopRequests()
    with stop.listening():
        send(signal.SIGTERM)
        assert heard == []
        send(signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    send(signal.SIGTERM)
    assert heard == [signal.SIGTERM] * 2
    with StopRequests().listening():
        pass
    send(signal.SIGTERM)
    assert heard == [signal.SIGTERM] * 3


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = StopRequests()
        with stop.listening():
            send(signal.SIGHUP)
            assert stop() is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_at_once_it_is_acted_on_where_it_comes(heard):
    stop, reached = StopRequests(), []

    def be_asked() -> None:
        with stop.interruptible():
            send(signal.SIGTERM)
            reached.append("the end")

    with stop.listening():
        with pytest.raises(Interrupted, match="SIGTERM") as interrupted:
            be_asked()
        assert interrupted.value.signal_number == signal.SIGTERM
        assert stop() == signal.SIGTERM
    assert reached == []


def test_at_once_one_that_came_before_is_acted_on_first(heard):
    stop, reached = StopRequests(), []
    with stop.listening():
        send(signal.SIGTERM)
        with pytest.raises(Interrupted), stop.interruptible():
            reached.append("the inside")
    assert reached == []


def test_afterwards_requests_are_remembered_again(heard):
    stop = StopRequests()
    with stop.listening():
        with stop.interruptible():
            pass
        send(signal.SIGTERM)
        assert stop() == signal.SIGTERM
