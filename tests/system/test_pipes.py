"""A program that writes a line to a pipe and waits for the answer gets it."""

import os
import re
import subprocess
import sys
import threading

import pytest

from tests.cluster.conftest import model  # noqa: F401 - a fixture

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
QUICK = ["--beam-size", "1", "--max-length", "3"]
PATIENCE = 60
"""Seconds until a program that gives no answer is killed."""


def answers(arguments: list[object], asked: list[str]) -> list[str]:
    """What `headway` answers to each text before it gets the next one."""
    command = [sys.executable, "-m", "headway", *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    ) as process:
        assert process.stdin
        assert process.stdout
        alarm = threading.Timer(PATIENCE, process.kill)
        alarm.start()
        found = []
        for text in asked:
            process.stdin.write(text.encode())
            process.stdin.flush()
            found += [process.stdout.readline().decode() for _ in range(text.count("\n"))]
        process.stdin.close()
        rest = process.stdout.read()
        alarm.cancel()
    assert (process.returncode, rest) == (0, b"")
    return found


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "MODEL", *QUICK],
        ["translate", "MODEL", "-", "--json", *QUICK],
        ["translate", "MODEL", "-", "--split", *QUICK],
        ["translate", "MODEL", "/dev/stdin", "--alignments", *QUICK],
        ["score", "MODEL", "--source", "/dev/stdin", "--target", "TARGET"],
        ["perturb", "upper"],
    ],
    ids=" ".join,
)
def test_each_line_is_answered_before_the_next_one_comes(model, tmp_path, command):  # noqa: F811
    asked = ["the cat\n", "a dog ran\nthe mat", " sat\n"]
    (tmp_path / "target").write_text("a dog\n" * 3)
    places = {"MODEL": model, "TARGET": tmp_path / "target"}
    command = [places.get(word, word) for word in command]
    (tmp_path / "in").write_text("".join(asked))
    whole = [tmp_path / "in" if word in ("-", "/dev/stdin") else word for word in command]
    if whole == command:
        whole.append(tmp_path / "in")
    done = subprocess.run(
        [sys.executable, "-m", "headway", *map(str, whole)], capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    numbers = re.compile(r"-\d+\.\d+")  # the last digits depend on the company
    assert numbers.sub("#", "".join(answers(command, asked))) == numbers.sub("#", done.stdout)
