"""A local Ray of two workers: the lines of a single process, whatever is killed."""

import gzip
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.cluster.conftest import texts
from tests.cluster.works import OPTIONS, work

pytestmark = pytest.mark.ray


def headway(*arguments):
    command = [sys.executable, "-m", "headway", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def joined(folder):
    return "".join(file.read_text() for file in sorted(folder.glob("part-*.txt")))


def options():
    return ["--beam-size", OPTIONS.search["beam_size"], "--max-length", OPTIONS.search["max_length"]]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Ten shards, with a line that is too long."""
    lines = texts(20_000, 1)
    lines[3000] = "x " * 300
    path = tmp_path_factory.mktemp("source") / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def with_line(source, number, text, folder):
    """A copy of the source in which line `number`, from 0, is the text."""
    lines = source.read_text().splitlines()
    lines[number] = text
    changed = folder / "in.txt"
    changed.write_text("".join(f"{line}\n" for line in lines))
    return changed


@pytest.fixture(scope="module")
def alone(model, source):
    """What one process writes."""
    output = source.with_name("alone")
    assert headway("translate", model, source, "--output", output, *options()).returncode == 2
    return output.read_text()


def test_the_lines_of_a_single_process(model, source, alone, tmp_path):
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    command = ["translate", model, source, packed, "--output", tmp_path / "out", "--cluster", "local", "--threads", 2]
    done = headway(*command, *options())
    assert done.returncode == 2
    assert joined(tmp_path / "out") == alone * 2
    assert f"{source}: line 3001 has" in done.stderr
    assert f"{packed}: line 3001 has" in done.stderr
    assert "20 of 20 shards, 40,000 of 40,000 lines" in done.stderr
    told = re.compile(r"headway: |counting the lines of |\d+ of 20 shards, ")
    others = [line for line in done.stderr.splitlines() if not told.match(line)]
    assert all("has constructor arguments in the object store" in line for line in others), others  # Ray always says it
    assert done.stdout == ""
    again = headway(*command, *options())
    assert (again.returncode, again.stderr) == (2, "")
    assert "other settings: options" in headway(*command).stderr


class Driver:
    """A job with troubles, in a process of its own."""

    def __init__(self, model, source, folder):
        self.folder, self.pids = folder / "out", folder / "pids"
        self.pids.mkdir(exist_ok=True)
        command = ["-m", "tests.cluster.works", model, source, self.folder, self.pids]
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def wait_for_shards(self, count):
        deadline = time.monotonic() + 120
        while len(list(self.folder.glob("part-*.txt"))) < count:
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def workers(self):
        return {int(file.name) for file in self.pids.iterdir()}

    def end(self):
        return self.process.communicate(timeout=240)[0].splitlines()


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_worker_and_a_poisoned_line(model, source, alone, tmp_path):
    driver = Driver(model, with_line(source, 7000, "poison", tmp_path), tmp_path)
    driver.wait_for_shards(2)
    before = driver.workers()
    os.kill(min(before), signal.SIGKILL)
    said = driver.end()
    assert said[-1] == "2"
    assert any("line 7001 can't be translated (FloatingPointError: not finite)" in line for line in said)
    assert driver.workers() - before, "nobody took the place of the killed one"
    wanted = alone.splitlines()
    wanted[7000] = ""
    assert joined(driver.folder).splitlines() == wanted


def test_a_killed_driver(model, source, alone, tmp_path):
    first = Driver(model, source, tmp_path)
    first.wait_for_shards(3)
    first.process.kill()
    first.process.communicate()
    deadline = time.monotonic() + 60
    while any(map(is_alive, first.workers())):
        assert time.monotonic() < deadline, "a worker lives on without its driver"
        time.sleep(0.1)
    done = {file.name: file.stat().st_mtime_ns for file in first.folder.glob("part-*.txt")}
    assert 3 <= len(done) < 10
    second = Driver(model, source, tmp_path)
    assert second.end()[-1] == "1"
    assert joined(second.folder) == alone
    assert all((second.folder / name).stat().st_mtime_ns == time_ for name, time_ in done.items())
    assert not list(second.folder.glob("*.partial"))


def test_a_line_that_kills_every_worker_is_given_up_and_the_others_are_not(model, alone, source, tmp_path):
    driver = Driver(model, with_line(source, 9000, "bomb", tmp_path), tmp_path)
    said = driver.end()
    assert driver.process.returncode == 1
    assert any("part-00004: killed its worker 3 times" in line for line in said)
    names = {file.name for file in driver.folder.glob("part-*.txt")}
    assert names == {f"part-{number:05}.txt" for number in range(10)} - {"part-00004.txt"}
    assert work(model).load()  # nothing is wrong with the model
