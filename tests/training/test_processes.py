"""Ranks of one machine: how they are started, watched and ended, with scripts in their place."""

import os
import signal
import socket
import sys
import tempfile
import threading
import time

import pytest

from headway.training import processes
from headway.training.processes import end_with_parent, free_port, launch


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Lets ranks run a script of the shell instead of `python -m headway`."""

    def install(script: str) -> None:
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))

    made = []

    def temporary_file():
        made.append(temporary())
        return made[-1]

    temporary = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", temporary_file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processes, "GRACE", 0.3)
    yield install
    for file in made:  # they stay open as long as the process that made them
        file.close()


def test_each_rank_knows_its_number_and_where_all_meet(scripted, tmp_path):
    scripted('echo "$LOCAL_RANK/$WORLD_SIZE/$LOCAL_WORLD_SIZE $* $MASTER_ADDR:$MASTER_PORT" > rank-$RANK')
    assert launch(["train", "recipe.yaml"], 3) == 0
    told = [(tmp_path / f"rank-{rank}").read_text().split() for rank in range(3)]
    assert [one[0] for one in told] == ["0/3/3", "1/3/3", "2/3/3"]
    assert [one[1:-1] for one in told] == [["-m", "headway", "train", "recipe.yaml"]] * 3
    [place] = {one[-1] for one in told}
    assert place.startswith("127.0.0.1:")
    assert int(place.removeprefix("127.0.0.1:")) > 0


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("[ $RANK = 0 ] || exit 0; exit 3", 3),
        ("[ $RANK = 2 ] || exit 0; exit 5", 5),
        ("[ $RANK = 1 ] || { sleep 0.5; exit 7; }; exit 6", 6),
        ("[ $RANK = 1 ] || exit 0; kill -KILL $$", 128 + 9),
    ],
)
def test_its_code_is_that_of_the_first_rank_that_failed(scripted, script, code):
    scripted(script)
    assert launch([], 3) == code


def test_ranks_that_do_not_notice_a_failed_one_are_ended(scripted):
    scripted("[ $RANK = 1 ] && exit 4; exec sleep 20")
    began = time.monotonic()
    assert launch([], 2) == 4
    assert 0.3 <= time.monotonic() - began < 15


@pytest.mark.parametrize(("code_of_first", "shown"), [(0, ["0", "1"]), (2, ["0"])])
def test_another_ranks_complaints_are_shown_where_it_is_the_one_that_failed(scripted, capfd, code_of_first, shown):
    """Those of the first are always shown; if it fails by itself, its own are enough."""
    scripted(f'echo "$RANK" >&2; [ $RANK = 0 ] && exit {code_of_first}; sleep 0.3; [ $RANK = 1 ] && exit 1; exit 0')
    assert launch([], 3) == (code_of_first or 1)
    assert capfd.readouterr().err.split() == shown


def test_nothing_of_other_ranks_is_shown_where_all_goes_well(scripted, capfd):
    scripted('echo "$RANK" >&2')
    assert launch([], 3) == 0
    assert capfd.readouterr().err.split() == ["0"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_every_rank(scripted, tmp_path, number):
    name = number.name.removeprefix("SIG")
    waiting = "touch ready-$RANK; for _ in $(seq 200); do sleep 0.05; done"
    scripted(f"trap 'touch told-$RANK; exit {128 + number}' {name}; {waiting}")
    before = signal.getsignal(number)

    def send() -> None:
        while len(list(tmp_path.glob("ready-*"))) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()
    assert launch([], 2) == 128 + number
    assert sorted(path.name for path in tmp_path.glob("told-*")) == ["told-0", "told-1"]
    assert signal.getsignal(number) is before


def test_a_rank_ends_with_the_process_that_started_it(monkeypatch):
    told = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: told.set())
    reading, writing = os.pipe()
    try:
        monkeypatch.delenv(processes.PARENT, raising=False)
        end_with_parent()
        monkeypatch.setenv(processes.PARENT, str(reading))
        end_with_parent()
        assert not told.wait(0.2)
        os.close(writing)
        deadline = time.monotonic() + 20
        while not told.wait(0.02) and time.monotonic() < deadline:
            pass
        assert told.is_set()
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(reading)


def test_a_free_port_can_be_taken():
    with socket.socket() as one:
        one.bind(("127.0.0.1", free_port()))
