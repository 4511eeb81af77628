"""Streams as other programs leave them: a pipe whose writer waits for the answer, and closed and full ones."""

import os
import re
import shlex
import subprocess
import sys
import threading

import pytest

from tests.cluster.conftest import model  # noqa: F401 - a fixture
from tests.system.conftest import QUICK as TRAINING

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


def run_shell(redirection: str, *arguments: object) -> tuple[int, str, str]:
    """The exit code of the command with these redirections, and what it tells where they let it."""
    command = shlex.join([sys.executable, "-m", "headway", *map(str, arguments)])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {redirection}"], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_lost_notices_lose_no_work(model, corpus, tmp_path, redirection):  # noqa: F811
    (tmp_path / "in").write_text("the cat\nx" + " x" * 300 + "\na dog\n")  # three notices
    command = ["translate", model, tmp_path / "in", *QUICK, "--output"]
    assert run_shell("", *command, tmp_path / "wanted")[0] == 2
    assert run_shell(redirection, *command, tmp_path / "out", "--resume")[0] == 2
    assert (tmp_path / "out").read_text() == (tmp_path / "wanted").read_text()
    run = tmp_path / "run"
    training = [*corpus.train_options, *TRAINING, "training.max_steps=2"]
    assert run_shell(redirection, "train", *training, "--out", run)[0] == 0
    assert (run / "best.json").exists()


def test_results_go_to_a_pipe_by_its_name(model, tmp_path):  # noqa: F811
    (tmp_path / "in").write_text("the cat\na dog\n")
    command = ["translate", model, tmp_path / "in", *QUICK]
    code, out, _ = run_shell("", *command)
    assert (code, len(out.splitlines())) == (0, 2)
    assert run_shell("| cat", *command, "--output", "/dev/stdout")[:2] == (0, out)


def test_a_lost_result_is_an_error_of_one_line(model, tmp_path):  # noqa: F811
    (tmp_path / "in").write_text("the cat\n" * 3)
    command = ["score", model, "--source", tmp_path / "in", "--target", tmp_path / "in"]
    assert run_shell("2>/dev/full", *command)[:2] == run_shell("", *command)[:2]
    for redirection, message in ((">&-", "standard output is closed; redirect it to"), (">/dev/full", "No space left")):
        code, out, err = run_shell(redirection, *command)
        assert (code, out) == (2, "")
        assert message in err.splitlines()[-1]
        assert "Traceback" not in err


@pytest.mark.parametrize("utf8_mode", [None, "0"])
def test_the_locale_changes_no_output(model, tmp_path, utf8_mode):  # noqa: F811
    text = tmp_path / "in"
    text.write_text("the cat {größe}\n`고양이` a dog\n" + "é 강 " * 100 + "\n", encoding="utf-8")
    places = ("PYTHONUTF8", "PYTHONIOENCODING", "PYTHONCOERCECLOCALE", "LANG", "LC_ALL", "LC_CTYPE")
    plain = {name: value for name, value in ENVIRONMENT.items() if name not in places}
    locale = {**plain, "LC_ALL": "C"} | ({} if utf8_mode is None else {"PYTHONUTF8": utf8_mode})
    command = [sys.executable, "-m", "headway", "translate", model, text, *QUICK]
    wanted, done = (
        subprocess.run([*map(str, command)], capture_output=True, env=environment, check=False)
        for environment in ({**plain, "PYTHONUTF8": "1"}, locale)
    )
    assert (done.returncode, done.stdout, done.stderr) == (wanted.returncode, wanted.stdout, wanted.stderr)
    assert "{größe}" in done.stdout.decode().splitlines()[0]
    assert "`고양이`" in done.stdout.decode().splitlines()[1]
