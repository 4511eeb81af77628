"""The standard streams: a notice that can't be written is lost alone, a result that can't is an error."""

import io
import logging
import os
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console

from headway.cli.files import input_bytes, prepare_streams
from headway.errors import UserError
from headway.training.reporter import Reporter


@pytest.fixture
def streams(monkeypatch):
    """A function that puts these in the place of the standard streams, and makes them ready."""

    def prepare(out, err) -> None:
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        prepare_streams()

    return prepare


class Terminal(io.TextIOWrapper):
    """A terminal that is gone."""

    def isatty(self) -> bool:
        return True


class Gone(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data, /):
        raise OSError(5, "Input/output error")


def tell() -> None:
    """In all ways in which anything is told."""
    typer.echo("headway: a notice", err=True)
    print("a complaint" * 5000, file=sys.stderr, flush=True)
    Console(stderr=True).print("[b]a table[/b]")
    with Reporter() as reporter:
        reporter.line("a line")
        reporter.step(1, "loss 2.000", 3.0, 0.5, 1.0)
    logging.StreamHandler(sys.stderr).emit(logging.makeLogRecord({"msg": "a record"}))
    sys.stderr.flush()


@pytest.mark.parametrize("kind", ["full", "gone", "closed"])
def test_notices_are_lost_alone(streams, kind):
    out = io.StringIO()
    if kind == "closed":
        streams(out, None)
        tell()
    else:
        opened = open("/dev/full", "wb") if kind == "full" else io.BufferedWriter(Gone())  # noqa: SIM115
        err = (io.TextIOWrapper if kind == "full" else Terminal)(opened)
        streams(out, err)
        tell()
        with pytest.raises(OSError, match=r"space|output"):
            err.close()
    assert out.getvalue() == ""


def test_notices_arrive_at_once_whatever_they_hold(streams, tmp_path):
    with open(tmp_path / "err", "w", encoding="ascii") as err:
        streams(io.StringIO(), err)
        for text in ("한 글\n", "\udcff.txt\n"):
            sys.stderr.write(text)
        assert (tmp_path / "err").read_text(encoding="utf-8") == "한 글\n\\udcff.txt\n"
        assert sys.stderr.fileno() == err.fileno()


def test_a_result_has_nowhere_to_go(streams):
    streams(None, io.StringIO())
    sys.stdout.flush()
    with pytest.raises(UserError, match="standard output is closed"):
        typer.echo("a result")


@pytest.mark.skipif(not Path("/dev/fd/0").exists(), reason="has no names of open pipes")
def test_a_document_may_come_through_a_pipe_with_a_name(tmp_path):
    reading, writing = os.pipe()
    try:
        with open(writing, "wb") as pipe:
            pipe.write(b"<p>Ein Hund</p>")
        assert input_bytes(f"/dev/fd/{reading}") == b"<p>Ein Hund</p>"
    finally:
        os.close(reading)
    for path, problem in ((tmp_path, "is a folder"), (tmp_path / "none", "no such file")):
        with pytest.raises(UserError, match=problem):
            input_bytes(str(path))
