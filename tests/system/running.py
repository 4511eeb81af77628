"""Runs `headway` as a person would, but in a process that is forked from one that has loaded torch already: that saves
the two seconds that most of the commands in these tests would otherwise spend on loading it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import BinaryIO

LOADED = ["headway.cli", "headway.evaluation", "headway.training.start", "headway.translator"]
"""Modules that most commands need. Loading them starts no threads, so forking is safe."""


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
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    given = [str(one) for one in arguments]
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_bytes(input_.encode() if isinstance(input_, str) else input_)
        process = context.Process(target=_run, args=(script, given, environment, str(cwd or Path.cwd()), streams))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(given, timeout)
        out, err = (stream.read_text(encoding="utf-8") if stream.exists() else "" for stream in streams[1:])
    return Outcome(process.exitcode, out, err)


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
        open(_stream(number, file), mode, encoding="utf-8", closefd=False)  # noqa: SIM115
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
