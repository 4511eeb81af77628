"""Runs `headway` as a person would, but in a process that is forked from one that has loaded torch already: that saves
the two seconds that most of the commands in these tests would otherwise spend on loading it."""

from __future__ import annotations

import atexit
import os
import runpy
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import BinaryIO

LOADED = ["headway.cli", "headway.evaluation", "headway.training.start", "headway.translator", "torch._dynamo"]
"""Modules that most commands need; torch's first optimizer loads the last one. Loading them starts no threads, so that
forking is safe."""


@dataclass
class Outcome:
    code: int
    out: str
    err: str


def run_headway(*arguments: object, input_: str | bytes = "", cwd: Path | None = None, timeout: float = 600) -> Outcome:
    """Runs `headway` with the arguments; the text of its two streams and its exit code."""
    return run_script(None, *arguments, input_=input_, cwd=cwd, timeout=timeout)


def run_script(
    script: Path | None, *arguments: object, input_: str | bytes = "", cwd: Path | None = None, timeout: float = 600
) -> Outcome:
    """Runs a script, or `headway`."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_bytes(input_.encode() if isinstance(input_, str) else input_)
        process = _forked(script, arguments, cwd, streams)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired([*map(str, arguments)], timeout)
        out, err = (stream.read_text(encoding="utf-8") if stream.exists() else "" for stream in streams[1:])
    return Outcome(process.exitcode, out, err)


class Begun:
    """`headway` at work, with what a `subprocess.Popen` of it would have; its standard error is a pipe."""

    def __init__(self, *arguments: object) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pipe = Path(folder) / "err"
            os.mkfifo(pipe)
            self._process = _forked(None, arguments, None, [Path(os.devnull), Path(os.devnull), pipe])
            self._arguments = arguments
            self.stderr = pipe.open(encoding="utf-8")
        self.pid = self._process.pid
        atexit.register(self._process.kill)  # which a test that failed may have left at work

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    poll = returncode.fget

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float | None = None) -> tuple[None, str]:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired([*map(str, self._arguments)], timeout or 0)
        with self.stderr:
            return None, self.stderr.read()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        self.stderr.close()
        if self.returncode is None:
            raise subprocess.TimeoutExpired([*map(str, self._arguments)], timeout or 0)
        return self.returncode


def _forked(script: Path | None, arguments: tuple[object, ...], cwd: Path | None, streams: list[Path]) -> BaseProcess:
    """Begins the process with these files as its standard streams."""
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    given = [str(one) for one in arguments]
    process = context.Process(target=_run, args=(script, given, environment, str(cwd or Path.cwd()), streams))
    process.start()
    return process


def complaint(*arguments: object, **options) -> str:
    """The one line of a run that the user has to mend: exit code 2, nothing on standard output, no traceback."""
    outcome = run_headway(*arguments, **options)
    assert outcome.code == 2, outcome
    assert "Traceback" not in outcome.err
    return outcome.err.strip().splitlines()[-1]


def _run(
    script: Path | None, arguments: list[str], environment: dict[str, str], folder: str, streams: list[Path]
) -> None:
    """In the new process: what `python -m headway`, or `python SCRIPT`, does with these files as standard streams."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin, sys.stdout, sys.stderr = (
        open(_stream(number, file), mode, buffering=1 if number == 2 else -1, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, (file, mode) in enumerate(zip(streams, "rww", strict=True))
    )
    sys.argv = [str(script or "headway"), *arguments]
    if script is None:
        runpy.run_module("headway", run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")


def _stream(number: int, file: Path) -> int:
    """Makes the file a standard stream."""
    opened: BinaryIO
    with file.open("wb" if number else "rb") as opened:
        os.dup2(opened.fileno(), number)
    return number
